/* SPDX-License-Identifier: BSD-2-Clause */
/* Sweeps of the message rate, with a curve for each operation that the user chose. */
#ifndef BENCH_MEASURE_RATE_SWEEP_H
#define BENCH_MEASURE_RATE_SWEEP_H

#include "sweep.h"

struct rate_sweep {
    const char *axis;
    const char *axis_unit;
    const struct number_list *values;
    void (*set)(struct flow_spec *spec, uint64_t value); /* sets what varies along the axis */
};

/* Collective; opens a panel. Messages have the first of the user's sizes unless 'set' changes it.
 */
int rate_sweep_measure(struct bench *bench, const struct rate_sweep *sweep);

#endif
