/* SPDX-License-Identifier: BSD-2-Clause */
/* Refinement of a curve: adds points between two neighbours that differ clearly, because two
 * distant points do not show where the step between them is. */
#ifndef BENCH_MEASURE_REFINE_H
#define BENCH_MEASURE_REFINE_H

#include "bench/bench.h"

#define REFINE_POINTS 8 /* at most */

struct refinement {
    double closeness; /* percent between neighbours that are close enough; 0: do not refine */
    unsigned int count;
    uint64_t x[NUMBERS_MAX + REFINE_POINTS]; /* rising */
    double y[NUMBERS_MAX + REFINE_POINTS];
};

void refine_add(struct refinement *refinement, uint64_t x, double y);

/* An x between the two neighbours that differ most, or 0 if no two neighbours differ clearly or all
 * of those are close enough. */
uint64_t refine_next(const struct refinement *refinement);

#endif
