/* SPDX-License-Identifier: BSD-2-Clause */
/* From which block size on the adapter scatters a message faster than the program. */
#include "runs.h"
#include "bench/measure/noncontiguous.h"

/* According to the paper, the gap between blocks matters little as long as there is one. */
#define STRIDE_BLOCKS 2

int scatter_run(struct bench *bench)
{
    static const char *const names[] = { "adapter", "copy" };
    const struct number_list *blocks = &bench->settings->blocks;
    struct noncontiguous layout = { .blocks = noncontiguous_max_sges(bench) };

    bench_note(bench, "segments", "%u in a message", layout.blocks);
    bench_panel(bench, &(struct panel_spec){ .quantity = "bandwidth",
                                             .unit = "MB/s",
                                             .axis = "block",
                                             .axis_unit = "B",
                                             .better = BETTER_HIGHER,
                                             .count = 2,
                                             .names = names });
    for (unsigned int i = 0; i < blocks->count; i++) {
        struct summary bandwidth;

        layout.block_size = blocks->value[i];
        layout.stride = layout.block_size * STRIDE_BLOCKS;
        if (noncontiguous_scatter_receive(bench, &layout, layout.blocks, &bandwidth))
            return BENCH_FAILED;
        bench_point(bench, 0, layout.block_size, &bandwidth);
        if (noncontiguous_receive_then_copy(bench, &layout, &bandwidth))
            return BENCH_FAILED;
        bench_point(bench, 1, layout.block_size, &bandwidth);
    }
    return BENCH_OK;
}
