/* SPDX-License-Identifier: BSD-2-Clause */
/* What it costs when a message does not start at a page or cache line boundary. */
#include "runs.h"
#include "bench/measure/sweep.h"

static bool point(const struct sweep *sweep, unsigned int curve, uint64_t offset,
                  struct flow_spec *spec)
{
    const struct number_list *sizes = sweep->context;

    spec->size = sizes->value[curve];
    spec->offset = offset;
    return true;
}

int align_run(struct bench *bench)
{
    const struct number_list *sizes = &bench->settings->sizes;
    struct sweep_names names;
    struct sweep sweep = { .axis = "offset",
                           .axis_unit = "B",
                           .values = &bench->settings->offsets,
                           .curves = sizes->count,
                           .names = names.list,
                           .point = point,
                           .context = sizes };

    sweep_name_sizes(&names, sizes);
    if (sweep_latency(bench, &sweep))
        return BENCH_FAILED;
    return sweep_bandwidth(bench, &sweep);
}
