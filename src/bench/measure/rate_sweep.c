/* SPDX-License-Identifier: BSD-2-Clause */
#include "rate_sweep.h"

struct curves {
    const struct rate_sweep *rate_sweep;
    size_t size;
    unsigned int count;
    enum operation operations[OPERATION_COUNT];
    const char *names[OPERATION_COUNT];
};

static void choose_curves(struct bench *bench, struct curves *curves)
{
    for (int operation = 0; operation < OPERATION_COUNT; operation++) {
        if (!flow_operation_chosen(bench, operation))
            continue;
        curves->operations[curves->count] = operation;
        curves->names[curves->count++] = operation_names[operation];
    }
}

/* Atomics have one size. */
static bool point(const struct sweep *sweep, unsigned int curve, uint64_t value,
                  struct flow_spec *spec)
{
    const struct curves *curves = sweep->context;

    spec->operation = curves->operations[curve];
    spec->size = curves->size;
    curves->rate_sweep->set(spec, value);
    return !operation_is_atomic(spec->operation) || spec->size == sizeof(uint64_t);
}

int rate_sweep_measure(struct bench *bench, const struct rate_sweep *rate_sweep)
{
    struct curves curves = { .rate_sweep = rate_sweep, .size = bench->settings->sizes.value[0] };
    struct sweep sweep = { .axis = rate_sweep->axis,
                           .axis_unit = rate_sweep->axis_unit,
                           .values = rate_sweep->values,
                           .names = curves.names,
                           .point = point,
                           .context = &curves };

    choose_curves(bench, &curves);
    if (!curves.count)
        return bench_skip(bench, "none of the operations is possible");
    sweep.curves = curves.count;
    return sweep_rate(bench, &sweep);
}
