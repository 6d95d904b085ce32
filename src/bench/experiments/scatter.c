/* From which size of its pieces on the adapter scatters a message better than the program. */
#include "scattering.h"

/* As the source says, the distance matters little as long as there is one. */
#define STRIDE_BLOCKS 2

static int run(struct bench *bench)
{
    static const char *const names[] = { "adapter", "copy" };
    const struct number_list *blocks = &bench->settings->blocks;
    struct scattering layout = { .pieces = most_entries(bench) };

    bench_note(bench, "segments", "%u in a message", layout.pieces);
    bench_panel(bench, &(struct panel_spec){ .quantity = "bandwidth",
                                             .unit = "MB/s",
                                             .axis = "block",
                                             .axis_unit = "B",
                                             .better = BETTER_HIGHER,
                                             .count = 2,
                                             .names = names });
    for (unsigned int i = 0; i < blocks->count; i++) {
        struct summary bandwidth;

        layout.piece = blocks->value[i];
        layout.stride = layout.piece * STRIDE_BLOCKS;
        if (scattering_by_adapter(bench, &layout, layout.pieces, &bandwidth))
            return BENCH_FAILED;
        bench_point(bench, 0, layout.piece, &bandwidth);
        if (scattering_by_program(bench, &layout, &bandwidth))
            return BENCH_FAILED;
        bench_point(bench, 1, layout.piece, &bandwidth);
    }
    return BENCH_OK;
}

const struct experiment experiment_scatter = {
    .name = "scatter",
    .group = "data layout",
    .title = "From which size of its blocks on should the adapter scatter a message?",
    .source = "VI Architecture figure 5",
    .options = "--blocks 8..16K --segments 32 --window 16",
    .quick = "--blocks 8,128,2K --iterations 200 --repetitions 3",
    .ranks = 2,
    .run = run,
};
