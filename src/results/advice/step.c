/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds a step from one level to a higher one, as where a cache overflows. */
#include "curve.h"
#include "results/allocate.h"

#include <math.h>
#include <stdlib.h>

/* Smaller rises are not worth advice, however certain. */
#define MIN_RISE 0.05

/* The rise must exceed this many standard deviations: the corner is the best of many candidates. */
#define CLEAR_RISE 5

/* A step must fit the points this many times better than a line. */
#define RIVAL_FACTOR 3

/* Number of candidate cache sizes between two points. */
#define FINE 8

/* A shape: y = low (1 - w) + high w, where w is how far up each point is. */
struct fit {
    double low, high;
    double left; /* mean square of the relative deviations */
    double corner;
};

static struct fit fit_shape(const struct curve *curve, const double *w)
{
    double aa = 0, ab = 0, bb = 0, ay = 0, by = 0, determinant;
    struct fit fit = { 0 };

    for (unsigned int i = 0; i < curve->count; i++) {
        double low = (1 - w[i]) / curve->y[i], high = w[i] / curve->y[i];

        aa += low * low;
        ab += low * high;
        bb += high * high;
        ay += low;
        by += high;
    }
    determinant = aa * bb - ab * ab;
    fit.low = (ay * bb - by * ab) / determinant;
    fit.high = (by * aa - ay * ab) / determinant;
    for (unsigned int i = 0; i < curve->count; i++) {
        double off = (fit.low * (1 - w[i]) + fit.high * w[i]) / curve->y[i] - 1;

        fit.left += off * off / (curve->count - 3);
    }
    return fit;
}

/* Flat up to the corner, a straight rise over the logarithm of x to 'top', flat again. */
static void ramp(const struct curve *curve, double corner, double top, double *w)
{
    for (unsigned int i = 0; i < curve->count; i++) {
        double way = log(curve->x[i] / corner) / log(top / corner);

        w[i] = fmin(fmax(way, 0), 1);
    }
}

/* Flat up to the corner; then the miss ratio of a cache of that size with random accesses. */
static void misses(const struct curve *curve, double corner, double *w)
{
    for (unsigned int i = 0; i < curve->count; i++)
        w[i] = fmax(0, 1 - corner / curve->x[i]);
}

static void take_better(const struct curve *curve, const double *w, double corner, struct fit *best)
{
    struct fit fit = fit_shape(curve, w);

    if (fit.left < best->left) {
        *best = fit;
        best->corner = corner;
    }
}

/* Requires at least two points below the corner and two above it, since one may be an outlier. */
static struct fit best_fit(const struct curve *curve, double *w)
{
    struct fit best = { .left = INFINITY };

    for (unsigned int i = 1; i + 2 < curve->count; i++) {
        for (unsigned int j = i + 1; j < curve->count; j++) {
            ramp(curve, curve->x[i], curve->x[j], w);
            take_better(curve, w, curve->x[i], &best);
        }
        for (int part = 0; i + 3 < curve->count && part < FINE; part++) {
            double corner = curve->x[i] * pow(curve->x[i + 1] / curve->x[i], (double)part / FINE);

            misses(curve, corner, w);
            take_better(curve, w, corner, &best);
        }
    }
    return best;
}

/* A cost that grows linearly with x or its logarithm does not indicate a cache. */
static double rival_left(const struct curve *curve, double *w)
{
    double first = curve->x[0], last = curve->x[curve->count - 1], by_logarithm;

    ramp(curve, first, last, w);
    by_logarithm = fit_shape(curve, w).left;
    for (unsigned int i = 0; i < curve->count; i++)
        w[i] = (curve->x[i] - first) / (last - first);
    return fmin(by_logarithm, fit_shape(curve, w).left);
}

bool step_find(const struct curve *curve, struct step *out)
{
    double *w, noise = 0, rival;
    struct fit fit;

    if (curve->count < 5)
        return false;
    w = allocate_zeroed(curve->count * sizeof(*w));
    fit = best_fit(curve, w);
    rival = rival_left(curve, w);
    free(w);
    for (unsigned int i = 0; i < curve->count; i++)
        noise += curve->noise[i] * curve->noise[i] / curve->count;
    noise = sqrt(fmax(noise, fit.left));
    if (fit.low <= 0 || log(fit.high / fit.low) < fmax(log1p(MIN_RISE), CLEAR_RISE * noise) ||
        rival < RIVAL_FACTOR * fit.left)
        return false;
    out->corner = fit.corner;
    for (out->last_low = 0; curve->x[out->last_low + 1] <= fit.corner; out->last_low++)
        ;
    out->low = fit.low;
    out->high = fit.high;
    return true;
}
