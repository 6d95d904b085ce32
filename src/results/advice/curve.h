/* SPDX-License-Identifier: BSD-2-Clause */
/* Features of noisy curves: where two of them cross, where one has a step, where it levels off,
 * which line it follows. */
#ifndef RESULTS_ADVICE_CURVE_H
#define RESULTS_ADVICE_CURVE_H

#include "results/results.h"

/* The points of a series with positive x and y, sorted by x, one for each x. */
struct curve {
    unsigned int count;
    double *x, *y;
    double *noise; /* relative standard error of y, from its confidence interval */
    bool exact;    /* free of noise */
};

void curve_of(const struct series *series, struct curve *out);
void curve_free(struct curve *curve);

/* Reduces both curves to their common x. */
void curves_match(struct curve *a, struct curve *b);

enum crossing_kind {
    CROSSING_NONE,   /* too few points, or indistinguishable */
    CROSSING_AT,     /* the first is better below x, the second above */
    CROSSING_FIRST,  /* the second is never better; the first is, up to x */
    CROSSING_SECOND, /* the first is never better; the second is, from x on */
};

struct crossing {
    enum crossing_kind kind;
    double x;
    unsigned int below, above; /* indices of the neighbouring points */
};

/* Both curves must have the same x. */
struct crossing crossing_find(const struct curve *first, const struct curve *second,
                              enum better better);

/* Computes the mean gain of the second curve from x = 'from' on, as the logarithm of the ratio.
 * Returns false if the second is not clearly better. */
bool crossing_gain(const struct curve *first, const struct curve *second, enum better better,
                   double from, double *gain);

/* A rise from one level to another. */
struct step {
    double corner;         /* where the rise begins; may lie between two points */
    unsigned int last_low; /* index of the last point up to the corner */
    double low, high;      /* the levels */
};

/* Returns false if there is no step: the curve is flat, noisy, or rises all along. */
bool step_find(const struct curve *curve, struct step *out);

/* Finds the first point that reaches 'share' of the curve's final level. Returns false if that is
 * the first or the last point of the curve. */
bool curve_levels_off(const struct curve *curve, enum better better, double share,
                      unsigned int *first, double *level);

/* Fits y = base + slope x to the points with 'from' <= x <= 'to' by least relative squares.
 * 'residual' is the root mean square of the relative deviations. Returns false with fewer than
 * three points. */
struct line {
    double base, slope, residual;
};
bool curve_line(const struct curve *curve, double from, double to, struct line *out);

#endif
