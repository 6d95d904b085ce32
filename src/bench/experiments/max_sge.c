/* What it costs that a queue pair could take more segments than are used. */
#include "segments.h"

static bool point(const struct sweep *sweep, unsigned int curve, uint64_t size,
                  struct flow_spec *spec)
{
    const struct number_list *entries = sweep->context;

    spec->size = size;
    spec->max_segments = entries->value[curve];
    return true;
}

static int run(struct bench *bench)
{
    struct segment_sweep segments;

    if (segment_sweep_init(bench, "entry", "entries", point, &segments))
        return BENCH_FAILED;
    if (sweep_latency(bench, &segments.sweep))
        return BENCH_FAILED;
    return sweep_bandwidth(bench, &segments.sweep);
}

const struct experiment experiment_max_sge = {
    .name = "max-sge",
    .group = "data layout",
    .title = "Does a queue pair made for many segments send single ones slower?",
    .source = "MIBA figure 11",
    .options = "--sizes 4..64K --segments 1,4,16,30 --depth 64",
    .quick = "--sizes 8,4K --segments 1,16 --iterations 500 --repetitions 3",
    .ranks = 2,
    .run = run,
};
