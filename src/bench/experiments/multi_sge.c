/* What it costs to gather a message from several places and to scatter it to as many. */
#include "segments.h"

#define LINE 64

/* Segments lie apart, so that no adapter can take them for one. */
static size_t distance(size_t segment)
{
    return (segment + LINE - 1) / LINE * LINE + LINE;
}

static bool point(const struct sweep *sweep, unsigned int curve, uint64_t size,
                  struct flow_spec *spec)
{
    const struct number_list *segments = sweep->context;
    uint64_t count = segments->value[curve];

    if (!size || size % count)
        return false;
    spec->size = size;
    spec->send_segments = spec->receive_segments = count;
    spec->send_stride = spec->receive_stride = distance(size / count);
    return true;
}

static int run(struct bench *bench)
{
    struct segment_sweep segments;

    if (segment_sweep_init(bench, "segment", "segments", point, &segments))
        return BENCH_FAILED;
    return sweep_latency(bench, &segments.sweep);
}

const struct experiment experiment_multi_sge = {
    .name = "multi-sge",
    .group = "data layout",
    .title = "What does a message in several segments cost?",
    .source = "MIBA figure 9",
    .options = "--sizes 64..64K --segments 1..16 --depth 64",
    .quick = "--sizes 64,1K,16K --segments 1,4,16 --iterations 500",
    .ranks = 2,
    .run = run,
};
