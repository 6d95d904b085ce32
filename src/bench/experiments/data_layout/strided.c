/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers that arrive back to back and are stored with a stride, as when a matrix is transposed. */
#include "runs.h"
#include "bench/measure/noncontiguous.h"

#define ELEMENT  sizeof(double)
#define ELEMENTS 1024

static int measure(struct bench *bench, uint64_t stride, unsigned int sges)
{
    struct noncontiguous layout = { .block_size = ELEMENT,
                                    .blocks = ELEMENTS,
                                    .stride = stride * ELEMENT };
    struct summary bandwidth;

    if (noncontiguous_copy(bench, &layout, &bandwidth))
        return BENCH_FAILED;
    bench_point(bench, 0, stride, &bandwidth);
    if (noncontiguous_receive_then_copy(bench, &layout, &bandwidth))
        return BENCH_FAILED;
    bench_point(bench, 1, stride, &bandwidth);
    if (noncontiguous_scatter_receive(bench, &layout, sges, &bandwidth))
        return BENCH_FAILED;
    bench_point(bench, 2, stride, &bandwidth);
    return BENCH_OK;
}

int strided_run(struct bench *bench)
{
    static const char *const names[] = { "local", "transfer then store", "scatter by adapter" };
    const struct number_list *strides = &bench->settings->strides;
    unsigned int sges = noncontiguous_max_sges(bench);

    bench_note(bench, "scatter by adapter", "%u elements in a message", sges);
    bench_panel(bench, &(struct panel_spec){ .quantity = "bandwidth",
                                             .unit = "MB/s",
                                             .axis = "stride",
                                             .axis_unit = "elements",
                                             .better = BETTER_HIGHER,
                                             .count = 3,
                                             .names = names });
    for (unsigned int i = 0; i < strides->count; i++) {
        if (measure(bench, strides->value[i], sges))
            return BENCH_FAILED;
    }
    return BENCH_OK;
}
