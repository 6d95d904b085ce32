/* SPDX-License-Identifier: BSD-2-Clause */
#include "refine.h"

#include <math.h>

/* Neighbours that differ by less than this share do not make a step. */
#define MIN_STEP 0.1

void refine_add(struct refinement *refinement, uint64_t x, double y)
{
    unsigned int i = refinement->count;

    if (!refinement->closeness || i == NUMBERS_MAX + REFINE_POINTS)
        return;
    for (; i && refinement->x[i - 1] > x; i--) {
        refinement->x[i] = refinement->x[i - 1];
        refinement->y[i] = refinement->y[i - 1];
    }
    refinement->x[i] = x;
    refinement->y[i] = y;
    refinement->count++;
}

static bool is_close(const struct refinement *refinement, uint64_t low, uint64_t high)
{
    return high <= low + 1 || high <= low * (1 + refinement->closeness / 100);
}

uint64_t refine_next(const struct refinement *refinement)
{
    double steepest = log1p(MIN_STEP);
    uint64_t next = 0;

    for (unsigned int i = 1; i < refinement->count; i++) {
        uint64_t low = refinement->x[i - 1], high = refinement->x[i];
        double step = fabs(log(refinement->y[i] / refinement->y[i - 1]));

        if (is_close(refinement, low, high) || !(step > steepest))
            continue;
        steepest = step;
        next = sqrt((double)low * high);
        if (next == low)
            next++;
    }
    return next;
}
