/* SPDX-License-Identifier: BSD-2-Clause */
#include "calibrate/least_squares.h"

#include "results/allocate.h"

#include <stdlib.h>

void least_squares(cminpack_funcder_mn serve, void *context, int m, int n, double *x,
                   double tolerance)
{
    int *pivots = allocate_zeroed((n + 1) * sizeof(*pivots)), work_size = 5 * n + m;
    double *residuals = allocate_zeroed((m + 1) * sizeof(double));
    double *jacobian = allocate_zeroed(((size_t)m * n + 1) * sizeof(double));
    double *work = allocate_zeroed((work_size + 1) * sizeof(double));

    if (n)
        lmder1(serve, context, m, n, x, residuals, jacobian, m, tolerance, pivots, work, work_size);
    free(pivots);
    free(residuals);
    free(jacobian);
    free(work);
}
