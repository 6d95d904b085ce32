/* SPDX-License-Identifier: BSD-2-Clause */
#include "calibrate/descent.h"

#include "results/allocate.h"

#include <stdlib.h>
#include <string.h>

#define STEPS        8
#define DAMPING_MOST 1000.0
#define GAIN_LEAST   0.01 /* of the cost */

void descent_solution_open(struct solution *solution, const struct surrogate *surrogate)
{
    solution->x = allocate_zeroed((surrogate->parameter_count + 1) * sizeof(double));
    solution->residuals = allocate_zeroed((surrogate->row_count + 1) * sizeof(double));
    solution->cost = 0;
}

void descent_solution_close(struct solution *solution)
{
    free(solution->x);
    free(solution->residuals);
}

static void copy(const struct surrogate *surrogate, const struct solution *from,
                 struct solution *to)
{
    memcpy(to->x, from->x, surrogate->parameter_count * sizeof(double));
    memcpy(to->residuals, from->residuals, surrogate->row_count * sizeof(double));
    to->cost = from->cost;
}

int descent_judge(const struct descent *descent, struct solution *solution)
{
    int status = descent->run(descent->context, solution->x, solution->residuals);

    if (!status)
        solution->cost =
            surrogate_cost(descent->surrogate, descent->left_out, solution->residuals, solution->x);
    return status;
}

/* The surrogate is to agree with what was run. */
static void correct(const struct descent *descent, const struct solution *at)
{
    struct surrogate *surrogate = descent->surrogate;

    for (unsigned int k = 0; k < surrogate->row_count; k++) {
        if (!descent->left_out || !descent->left_out[k])
            surrogate->residual[k] += at->residuals[k] - surrogate_residual(surrogate, k, at->x);
    }
}

bool descent_gains(double before, double after)
{
    return after <= before * (1 - GAIN_LEAST);
}

int descent_go(const struct descent *descent, struct solution *best)
{
    struct surrogate *surrogate = descent->surrogate;
    struct solution next;
    int status = 0;

    descent_solution_open(&next, surrogate);
    surrogate->anchor = best->x;
    surrogate->damping = descent->damping;
    correct(descent, best);
    for (int step = 0; step < STEPS && surrogate->damping < DAMPING_MOST; step++) {
        double before = best->cost;

        copy(surrogate, best, &next);
        surrogate_fit(surrogate, descent->left_out, next.x);
        status = descent_judge(descent, &next);
        if (status)
            break;
        if (next.cost >= before) {
            surrogate->damping *= 4;
            continue;
        }
        correct(descent, &next);
        copy(surrogate, &next, best);
        surrogate->damping /= 3;
        if (!descent_gains(before, best->cost))
            break;
    }
    surrogate->damping = 0;
    surrogate->anchor = NULL;
    descent_solution_close(&next);
    return status;
}
