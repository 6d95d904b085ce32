/* Numbers that arrive one after the other and are stored with a stride, as when a matrix is
 * transposed. */
#include "scattering.h"

#define ELEMENT  sizeof(double)
#define ELEMENTS 1024

static int measure(struct bench *bench, uint64_t stride, unsigned int entries)
{
    struct scattering layout = { .piece = ELEMENT, .pieces = ELEMENTS, .stride = stride * ELEMENT };
    struct summary bandwidth;

    if (scattering_local(bench, &layout, &bandwidth))
        return BENCH_FAILED;
    bench_point(bench, 0, stride, &bandwidth);
    if (scattering_by_program(bench, &layout, &bandwidth))
        return BENCH_FAILED;
    bench_point(bench, 1, stride, &bandwidth);
    if (scattering_by_adapter(bench, &layout, entries, &bandwidth))
        return BENCH_FAILED;
    bench_point(bench, 2, stride, &bandwidth);
    return BENCH_OK;
}

static int run(struct bench *bench)
{
    static const char *const names[] = { "local", "transfer then store", "scatter by adapter" };
    const struct number_list *strides = &bench->settings->strides;
    unsigned int entries = most_entries(bench);

    bench_note(bench, "scatter by adapter", "%u elements in a message", entries);
    bench_panel(bench, &(struct panel_spec){ .quantity = "bandwidth",
                                             .unit = "MB/s",
                                             .axis = "stride",
                                             .axis_unit = "elements",
                                             .better = BETTER_HIGHER,
                                             .count = 3,
                                             .names = names });
    for (unsigned int i = 0; i < strides->count; i++) {
        if (measure(bench, strides->value[i], entries))
            return BENCH_FAILED;
    }
    return BENCH_OK;
}

const struct experiment experiment_strided = {
    .name = "strided",
    .group = "data layout",
    .title = "Who should store what arrives with a stride: the program or the adapter?",
    .source = "VI Architecture figure 4",
    .options = "--strides 1..512 --segments 1024 --window 16",
    .quick = "--strides 1,8,64 --iterations 200 --repetitions 3",
    .ranks = 2,
    .run = run,
};
