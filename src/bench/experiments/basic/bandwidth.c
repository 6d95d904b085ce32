/* SPDX-License-Identifier: BSD-2-Clause */
#include "bandwidth.h"
#include "bench/measure/stream.h"

#define CURVES_MAX        (2 * OPERATION_COUNT)
#define WINDOW_SWEEP_SIZE (64 << 10)
#define ATOMIC_SIZE       8

struct curve {
    enum operation operation;
    enum window_style style;
    char name[32];
};

static const char *const style_names[] = { "refill", "reply" };

/* Nobody replies to a read or an atomic. On an unreliable transport a sender needs the replies: its
 * own completions do not tell whether the receiver keeps up. */
static bool makes_sense(enum operation operation, enum window_style style, enum transport transport)
{
    if ((transport == TRANSPORT_UC || transport == TRANSPORT_UD) &&
        operation_uses_receives(operation))
        return style == WINDOW_REPLY;
    return operation < OPERATION_READ || style == WINDOW_REFILL;
}

static unsigned int choose_curves(struct bench *bench, struct curve *curves)
{
    const struct settings *settings = bench->settings;
    unsigned int count = 0;

    for (int operation = 0; operation < OPERATION_COUNT; operation++) {
        if (!flow_operation_chosen(bench, operation))
            continue;
        for (int style = WINDOW_REFILL; style <= WINDOW_REPLY; style++) {
            struct curve *curve = &curves[count];

            if (!(settings->styles & (1u << style)) ||
                !makes_sense(operation, style, settings->transport))
                continue;
            curve->operation = operation;
            curve->style = style;
            snprintf(curve->name, sizeof(curve->name), "%s %s", operation_names[operation],
                     style_names[style]);
            count++;
        }
    }
    return count;
}

static void open_panel(struct bench *bench, const char *axis, const char *axis_unit,
                       unsigned int count, const char *const *names)
{
    bench_panel(bench, &(struct panel_spec){ .quantity = "bandwidth",
                                             .unit = "MB/s",
                                             .axis = axis,
                                             .axis_unit = axis_unit,
                                             .better = BETTER_HIGHER,
                                             .count = count,
                                             .names = names });
}

static int measure_by_size(struct bench *bench, bool both_ways)
{
    const struct number_list *sizes = &bench->settings->sizes;
    struct curve curves[CURVES_MAX];
    const char *names[CURVES_MAX];
    unsigned int count = choose_curves(bench, curves);

    if (!count)
        return bench_skip(bench, "none of the operations can be streamed");
    for (unsigned int i = 0; i < count; i++)
        names[i] = curves[i].name;
    open_panel(bench, "size", "B", count, names);
    for (unsigned int i = 0; i < sizes->count; i++) {
        for (unsigned int k = 0; k < count; k++) {
            struct flow_spec spec;
            struct stream_plan plan = { .style = curves[k].style,
                                        .window = bench->settings->window,
                                        .both_ways = both_ways };
            struct summary bandwidth;

            if (operation_is_atomic(curves[k].operation) && sizes->value[i] != ATOMIC_SIZE)
                continue;
            flow_defaults(bench, 1 - bench->rank, &spec);
            spec.operation = curves[k].operation;
            spec.size = sizes->value[i];
            plan.messages = stream_messages(bench, spec.size);
            if (stream_measure(bench, &spec, &plan, &bandwidth))
                return BENCH_FAILED;
            bench_point(bench, k, spec.size, &bandwidth);
        }
    }
    return BENCH_OK;
}

/* Writes of one size. */
static int measure_by_window(struct bench *bench)
{
    static const char *const names[] = { "write by window" };
    const struct number_list *windows = &bench->settings->windows;

    if (flow_operation_refusal(bench, OPERATION_WRITE, bench->settings->transport))
        return BENCH_OK;
    open_panel(bench, "window", "", 1, names);
    for (unsigned int i = 0; i < windows->count; i++) {
        struct flow_spec spec;
        struct stream_plan plan = { .style = WINDOW_REFILL, .window = windows->value[i] };
        struct summary bandwidth;

        flow_defaults(bench, 1 - bench->rank, &spec);
        spec.operation = OPERATION_WRITE;
        spec.size = WINDOW_SWEEP_SIZE;
        spec.signal = 1;
        plan.messages = stream_messages(bench, spec.size);
        if (stream_measure(bench, &spec, &plan, &bandwidth))
            return BENCH_FAILED;
        bench_point(bench, 0, plan.window, &bandwidth);
    }
    return BENCH_OK;
}

int bandwidth_run(struct bench *bench)
{
    const struct bandwidth_spec *spec = bench->experiment->spec;

    if (measure_by_size(bench, spec->both_ways))
        return BENCH_FAILED;
    return spec->by_window ? measure_by_window(bench) : BENCH_OK;
}
