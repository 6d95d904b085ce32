/* SPDX-License-Identifier: BSD-2-Clause */
/* lmder1() of cminpack, with its buffers. */
#ifndef CALIBRATE_LEAST_SQUARES_H
#define CALIBRATE_LEAST_SQUARES_H

#include <cminpack.h>

/* Moves x[n] to where the sum of squares of 'serve' is least, which gives m residuals. */
void least_squares(cminpack_funcder_mn serve, void *context, int m, int n, double *x,
                   double tolerance);

#endif
