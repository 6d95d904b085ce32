/* SPDX-License-Identifier: BSD-2-Clause */
/* Least squares by real runs, with a surrogate that says where to go. */
#ifndef CALIBRATE_DESCENT_H
#define CALIBRATE_DESCENT_H

#include "calibrate/surrogate.h"

/* Values of all parameters, as the surrogate has them, and what rows come to with them. */
struct solution {
    double *x, *residuals, cost;
};

void descent_solution_open(struct solution *solution, const struct surrogate *surrogate);
void descent_solution_close(struct solution *solution);

struct descent {
    struct surrogate *surrogate;
    const bool *left_out; /* by row: neither fitted nor judged; NULL: none */
    double damping;       /* of the first step */
    /* Gets the residuals at x of all rows that are not left out. Returns 0, or why it ends. */
    int (*run)(void *context, const double *x, double *residuals);
    void *context;
};

/* Runs 'solution' at its x. Returns as run(). */
int descent_judge(const struct descent *descent, struct solution *solution);

/* Steps from a solution that was run until they gain next to nothing. The surrogate is made to
 * agree with it. A step that real runs do not confirm is taken back, and the next is shorter.
 * Returns as run(). */
int descent_go(const struct descent *descent, struct solution *best);

/* Whether the cost is so much lower that it is worth going on. */
bool descent_gains(double before, double after);

#endif
