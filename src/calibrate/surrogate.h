/* SPDX-License-Identifier: BSD-2-Clause */
/* A stand-in for the model around one point: how the values of a paper follow from the parameters,
 * from two samples of each. */
#ifndef CALIBRATE_SURROGATE_H
#define CALIBRATE_SURROGATE_H

#include <stdbool.h>

/* Latencies, and the inverse of bandwidths, are sums of times: the changes by all parameters add
 * up, each interpolated between its samples. Where another bottleneck takes over, the far sample
 * knows. */
struct surrogate {
    unsigned int row_count, parameter_count;
    double *near_x, *far_x; /* by parameter: where the samples are; both on the same side of 0 */
    double *near, *far;     /* by row and parameter: relative change of the row's time there */
    double *residual;       /* by row: log of the model's time over the paper's, at the point */
    bool *is_bound;         /* by row: the paper says "at most", less costs nothing */
    double *prior; /* by parameter: log of the time it would have without the paper, over its own */
    double *spread;       /* by parameter: standard deviation of that */
    const double *anchor; /* where the solution is held, */
    double damping;       /* and how firmly, in units of 1 / spread; 0: not at all */
};

void surrogate_open(struct surrogate *surrogate, unsigned int rows, unsigned int parameters);
void surrogate_close(struct surrogate *surrogate);

/* Opens 'to' as a copy that is not held anywhere. */
void surrogate_copy(struct surrogate *to, const struct surrogate *from);

/* The residual of a row at x, the logs of the parameters' times over those of the point. */
double surrogate_residual(const struct surrogate *surrogate, unsigned int row, const double *x);

/* Least squares over all rows but those that are left out (by row; NULL: none), and the prior. 'x'
 * is where to begin, and the result. */
void surrogate_fit(const struct surrogate *surrogate, const bool *left_out, double *x);

/* What surrogate_fit() minimises, without damping, for residuals that are known. */
double surrogate_cost(const struct surrogate *surrogate, const bool *left_out,
                      const double *residuals, const double *x);

/* The part of one row in it. */
double surrogate_row_cost(const struct surrogate *surrogate, unsigned int row, double residual);

/* If real runs at x came to these residuals because of something that is no parameter: moves x to
 * where the parameters have followed, not far, and returns what surrogate_cost() is there. Infinite
 * if a residual is unknown. */
double surrogate_follow(const struct surrogate *surrogate, const double *residuals, double *x);

/* Standard errors of the solution x, on the same scale. */
void surrogate_errors(const struct surrogate *surrogate, const double *x, double *errors);

#endif
