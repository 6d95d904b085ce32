/* Messages per second, for the experiments that count messages, not bytes. */
#ifndef BENCH_EXPERIMENTS_RATES_H
#define BENCH_EXPERIMENTS_RATES_H

#include "sweep.h"

struct rates {
    const char *axis;
    const char *axis_unit;
    const struct number_list *values;
    void (*set)(struct flow_spec *spec, uint64_t value); /* what varies along the axis */
};

/* A panel with a curve for each operation that was asked for. Messages have the first of the user's
 * sizes unless it is the size that varies. */
int rates_measure(struct bench *bench, const struct rates *rates);

#endif
