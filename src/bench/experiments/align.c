/* What it costs that a message does not begin at a boundary of pages or cache lines. */
#include "sweep.h"

static bool point(const struct sweep *sweep, unsigned int curve, uint64_t offset,
                  struct flow_spec *spec)
{
    const struct number_list *sizes = sweep->context;

    spec->size = sizes->value[curve];
    spec->offset = offset;
    return true;
}

static int run(struct bench *bench)
{
    const struct number_list *sizes = &bench->settings->sizes;
    struct curve_names names;
    struct sweep sweep = { .axis = "offset",
                           .axis_unit = "B",
                           .values = &bench->settings->offsets,
                           .curves = sizes->count,
                           .names = names.list,
                           .point = point,
                           .context = sizes };

    name_sizes(&names, sizes);
    if (sweep_latency(bench, &sweep))
        return BENCH_FAILED;
    return sweep_bandwidth(bench, &sweep);
}

const struct experiment experiment_align = {
    .name = "align",
    .group = "data layout",
    .title = "Does it matter where in a page or cache line a message begins?",
    .source = "this suite",
    .options = "--sizes 64,4K,64K --offsets 0,1,2,4..64,4032,4064,4080,4095",
    .quick = "--offsets 0,1,32,4095 --iterations 300 --repetitions 3",
    .ranks = 2,
    .run = run,
};
