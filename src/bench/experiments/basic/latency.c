/* SPDX-License-Identifier: BSD-2-Clause */
/* How long a message takes, for every operation and every way of waiting. */
#include "runs.h"
#include "bench/measure/pingpong.h"

struct curve {
    enum operation operation;
    char name[32];
};

/* A plain write gives the receiver no completion: it polls memory, which makes sense for nothing
 * else. The writer can block until its own completion. */
static bool makes_sense(enum operation operation, enum wait_mode wait)
{
    if (operation == OPERATION_WRITE)
        return wait == WAIT_MEMORY || wait == WAIT_BLOCK;
    return wait != WAIT_MEMORY;
}

static void set_waits(struct flow_spec *spec, enum wait_mode wait)
{
    spec->wait = wait;
    if (spec->operation != OPERATION_WRITE || wait != WAIT_BLOCK)
        return;
    spec->wait = WAIT_MEMORY;
    spec->send_wait = WAIT_BLOCK;
    spec->signal = 1;
}

static unsigned int choose_curves(struct bench *bench, enum wait_mode wait, struct curve *curves)
{
    const struct settings *settings = bench->settings;
    unsigned int count = 0;

    for (int operation = 0; operation < OPERATION_COUNT; operation++) {
        struct curve *curve = &curves[count];

        if (!(settings->operations & (1u << operation)) || !makes_sense(operation, wait) ||
            flow_operation_refusal(bench, operation, settings->transport))
            continue;
        curve->operation = operation;
        snprintf(curve->name, sizeof(curve->name), "%s %s", operation_names[operation],
                 wait_names[wait]);
        count++;
    }
    return count;
}

static bool size_fits(enum operation operation, size_t size)
{
    if (operation_is_atomic(operation))
        return size == 8;
    /* The receiver sees a write by its last byte. */
    return size || operation != OPERATION_WRITE;
}

static int measure(struct bench *bench, enum wait_mode wait, const struct curve *curves,
                   unsigned int count)
{
    const struct number_list *sizes = &bench->settings->sizes;

    for (unsigned int i = 0; i < sizes->count; i++) {
        for (unsigned int k = 0; k < count; k++) {
            struct flow_spec spec;
            struct summary latency;

            if (!size_fits(curves[k].operation, sizes->value[i]))
                continue;
            flow_defaults(bench, 1 - bench->rank, &spec);
            spec.operation = curves[k].operation;
            set_waits(&spec, wait);
            spec.size = sizes->value[i];
            if (pingpong_measure(bench, &spec, &latency))
                return BENCH_FAILED;
            bench_point(bench, k, spec.size, &latency);
        }
    }
    return BENCH_OK;
}

static void note_refusals(struct bench *bench)
{
    for (int operation = 0; operation < OPERATION_COUNT; operation++) {
        const char *refusal = flow_operation_refusal(bench, operation, bench->settings->transport);

        if (refusal && bench->settings->operations & (1u << operation))
            bench_note(bench, operation_names[operation], "%s", refusal);
    }
}

int latency_run(struct bench *bench)
{
    note_refusals(bench);
    for (int wait = 0; wait < WAIT_COUNT; wait++) {
        struct curve curves[OPERATION_COUNT];
        const char *names[OPERATION_COUNT];
        unsigned int count = choose_curves(bench, wait, curves);

        if (!count || !(bench->settings->waits & (1u << wait)))
            continue;
        for (unsigned int i = 0; i < count; i++)
            names[i] = curves[i].name;
        bench_panel(bench, &(struct panel_spec){ .quantity = "latency",
                                                 .unit = "us",
                                                 .axis = "size",
                                                 .axis_unit = "B",
                                                 .better = BETTER_LOWER,
                                                 .count = count,
                                                 .names = names });
        if (measure(bench, wait, curves, count))
            return BENCH_FAILED;
    }
    return BENCH_OK;
}
