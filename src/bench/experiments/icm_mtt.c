/* How many translations the adapter keeps: messages go round buffers that are registered one by
 * one, on both sides. */
#include "scaling.h"

static void describe(struct flow_spec *spec, unsigned int regions)
{
    spec->slots = regions;
    spec->buffers = regions;
    spec->mr_per_buffer = true;
}

static int run(struct bench *bench)
{
    /* Each buffer that is sent or received is a region; two more hold all the memory. */
    uint64_t limit = (bench->adapter->limits.max_mr - 2) / 2;

    return scaling_of_flow(bench,
                           (struct scaling){ .axis = "regions",
                                             .numbers = &bench->settings->regions,
                                             .limit = limit,
                                             .limiter = "pairs of memory regions" },
                           describe);
}

const struct experiment experiment_icm_mtt = {
    .name = "icm-mtt",
    .group = "scaling",
    .title = "Does it matter how many memory regions are in use?",
    .source = "Mem/MemFree section 4.3, table 1",
    .options = "--regions 1..4K --sizes 4K --iterations 4000",
    .quick = "--regions 1,16,256 --iterations 1000 --repetitions 3",
    .ranks = 2,
    .run = run,
};
