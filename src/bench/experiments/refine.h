/* Further points where a curve steps: of a step between two numbers that are far apart nobody could
 * say where it is. */
#ifndef BENCH_EXPERIMENTS_REFINE_H
#define BENCH_EXPERIMENTS_REFINE_H

#include "bench/bench.h"

#define REFINE_POINTS 8 /* at most */

struct refinement {
    double closeness; /* percent; 0: no further points are wanted */
    unsigned int count;
    uint64_t x[NUMBERS_MAX + REFINE_POINTS]; /* rising */
    double y[NUMBERS_MAX + REFINE_POINTS];
};

void refine_add(struct refinement *refinement, uint64_t x, double y);

/* Between the neighbours that differ most, if they differ clearly and are not close enough; 0:
 * there are none. */
uint64_t refine_next(const struct refinement *refinement);

#endif
