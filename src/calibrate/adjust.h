/* SPDX-License-Identifier: BSD-2-Clause */
/* How well a count fits once the smooth keys have followed it. */
#ifndef CALIBRATE_ADJUST_H
#define CALIBRATE_ADJUST_H

/* Sums of squares that differ by less differ by chance in two of 100 cases. */
#define ADJUST_BETTER 6.0

#include "calibrate/fit.h"

/* The sum of squares of all residuals where the smooth keys make it least, if the points change
 * with these keys as they do at the present values: 'still' is the output of a brief run there, 'out' of
 * one with another count. Makes no runs; fit_measure_slopes() comes before. */
double adjust_loss(const struct fit *fit, const double *still, const double *out);

#endif
