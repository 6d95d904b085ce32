/* SPDX-License-Identifier: BSD-2-Clause */
#include "sge_sweep.h"
#include "bench/measure/sweep.h"

#define CACHE_LINE 64

struct sge_sweep_spec {
    const char *singular; /* of what the curves are named after */
    const char *plural;
    bool bandwidth; /* measure the bandwidth as well as the latency */

    /* See struct sweep; its context is the list of counts. */
    bool (*point)(const struct sweep *sweep, unsigned int curve, uint64_t size,
                  struct flow_spec *spec);
};

int sge_sweep_run(struct bench *bench)
{
    const struct sge_sweep_spec *spec = bench->experiment->spec;
    struct number_list counts;
    struct sweep_names names;
    struct sweep sweep = { .axis = "size",
                           .axis_unit = "B",
                           .values = &bench->settings->sizes,
                           .names = names.list,
                           .point = spec->point,
                           .context = &counts };

    if (sweep_keep_up_to(bench, &bench->settings->segments, bench->adapter->limits.max_sge,
                         "segments per message", &counts))
        return BENCH_FAILED;
    sweep.curves = counts.count;
    sweep_name_counts(&names, &counts, spec->singular, spec->plural);
    if (sweep_latency(bench, &sweep))
        return BENCH_FAILED;
    return spec->bandwidth ? sweep_bandwidth(bench, &sweep) : BENCH_OK;
}

/* Segments have gaps between them, so that no adapter can merge them. */
static size_t distance(size_t segment)
{
    return (segment + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE + CACHE_LINE;
}

static bool segments_point(const struct sweep *sweep, unsigned int curve, uint64_t size,
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

const struct sge_sweep_spec sge_sweep_segments = {
    .singular = "segment",
    .plural = "segments",
    .point = segments_point,
};

static bool capability_point(const struct sweep *sweep, unsigned int curve, uint64_t size,
                             struct flow_spec *spec)
{
    const struct number_list *entries = sweep->context;

    spec->size = size;
    spec->max_segments = entries->value[curve];
    return true;
}

const struct sge_sweep_spec sge_sweep_capability = {
    .singular = "entry",
    .plural = "entries",
    .bandwidth = true,
    .point = capability_point,
};
