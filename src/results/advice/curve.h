/* What can be told from measured curves in spite of noise: where two cross, where one has a step,
 * where it stops rising, which line it follows. */
#ifndef RESULTS_ADVICE_CURVE_H
#define RESULTS_ADVICE_CURVE_H

#include "results/results.h"

/* The points of a series with x and y above zero, by rising x, one for each x. */
struct curve {
    unsigned int count;
    double *x, *y;
    double *noise; /* standard error of y as a share of it, by its confidence interval */
    bool exact;    /* there is none, not even what the intervals do not know of */
};

void curve_of(const struct series *series, struct curve *out);
void curve_free(struct curve *curve);

/* The x and y that both have, in 'a' and 'b' as they are. */
void curves_match(struct curve *a, struct curve *b);

enum crossing_kind {
    CROSSING_NONE,   /* too few points, or they cannot be told apart */
    CROSSING_AT,     /* the first is better below x, the second above */
    CROSSING_FIRST,  /* the second is never better; the first is so up to x */
    CROSSING_SECOND, /* the first is never better; the second is so from x on */
};

struct crossing {
    enum crossing_kind kind;
    double x;
    unsigned int below, above; /* the points next to it, of the matched curves */
};

/* Both curves have the same x. */
struct crossing crossing_find(const struct curve *first, const struct curve *second,
                             enum better better);

/* How much better the second is on the whole from x = 'from' on, as the logarithm of the ratio;
 * false if it is not clearly so. */
bool crossing_gain(const struct curve *first, const struct curve *second, enum better better,
                 double from, double *gain);

/* A rise from one level to another. */
struct step {
    double corner;         /* where it begins: a point, or between two if the rise shows it */
    unsigned int last_low; /* the last point that is not beyond */
    double low, high;      /* the levels */
};

/* False if there is none: flat, noisy, or rising all along. */
bool step_find(const struct curve *curve, struct step *out);

/* The first point that reaches 'share' of the level at which the curve ends up; false if its first
 * point is on that level already, or if only its last one is. */
bool curve_levels_off(const struct curve *curve, enum better better, double share,
                      unsigned int *first, double *level);

/* y = base + slope x through the points with 'from' <= x <= 'to', by least relative squares.
 * 'residual' is the root mean square of the relative deviations. False with fewer than three
 * points.
 */
struct line {
    double base, slope, residual;
};
bool curve_line(const struct curve *curve, double from, double to, struct line *out);

#endif
