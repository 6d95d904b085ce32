/* SPDX-License-Identifier: BSD-2-Clause */
#include "curve.h"
#include "results/allocate.h"

#include <math.h>
#include <stdlib.h>

#define NORMAL_975 1.96

/* Points within this share of the best one belong to the curve's final level. */
#define LEVEL_WIDTH 0.1

/* A point is off the level if it is this many standard deviations away. */
#define CLEAR_DISTANCE 5

static int compare_points(const void *a, const void *b)
{
    const struct point *left = a, *right = b;

    return (left->x > right->x) - (left->x < right->x);
}

void curve_of(const struct series *series, struct curve *out)
{
    struct point *points = allocate_zeroed((series->count + 1) * sizeof(*points));

    out->count = 0;
    out->exact = false;
    out->x = allocate_zeroed((series->count + 1) * sizeof(*out->x));
    out->y = allocate_zeroed((series->count + 1) * sizeof(*out->y));
    out->noise = allocate_zeroed((series->count + 1) * sizeof(*out->noise));
    for (unsigned int i = 0; i < series->count; i++)
        points[i] = series->points[i];
    qsort(points, series->count, sizeof(*points), compare_points);
    for (unsigned int i = 0; i < series->count; i++) {
        const struct summary *y = &points[i].y;

        if (points[i].x <= 0 || y->median <= 0 || (i && points[i].x == points[i - 1].x))
            continue;
        out->x[out->count] = points[i].x;
        out->y[out->count] = y->median;
        out->noise[out->count++] = (y->high - y->low) / (2 * NORMAL_975 * y->median);
    }
    free(points);
}

void curve_free(struct curve *curve)
{
    free(curve->x);
    free(curve->y);
    free(curve->noise);
}

static void curve_keep(struct curve *curve, unsigned int from, unsigned int to)
{
    curve->x[to] = curve->x[from];
    curve->y[to] = curve->y[from];
    curve->noise[to] = curve->noise[from];
}

void curves_match(struct curve *a, struct curve *b)
{
    unsigned int i = 0, j = 0, kept = 0;

    while (i < a->count && j < b->count) {
        if (a->x[i] < b->x[j]) {
            i++;
        } else if (a->x[i] > b->x[j]) {
            j++;
        } else {
            curve_keep(a, i++, kept);
            curve_keep(b, j++, kept++);
        }
    }
    a->count = b->count = kept;
}

static double goodness(const struct curve *curve, unsigned int i, enum better better)
{
    return better == BETTER_LOWER ? 1 / curve->y[i] : curve->y[i];
}

/* The best point is partly luck, so use the median of the points near it. */
static double level_of(const struct curve *curve, enum better better)
{
    double *near = allocate_zeroed(curve->count * sizeof(*near)), best = 0;
    struct summary summary;
    unsigned int count = 0;

    for (unsigned int i = 0; i < curve->count; i++)
        best = fmax(best, goodness(curve, i, better));
    for (unsigned int i = 0; i < curve->count; i++) {
        if (goodness(curve, i, better) >= (1 - LEVEL_WIDTH) * best)
            near[count++] = goodness(curve, i, better);
    }
    histogram_of_values(near, count, &summary);
    free(near);
    return summary.median;
}

/* Returns the relative deviation from the level of the points from 'first' on. */
static double level_noise(const struct curve *curve, enum better better, unsigned int first,
                          double level)
{
    double off = 0, known = 0;

    for (unsigned int i = first; i < curve->count; i++) {
        double distance = goodness(curve, i, better) / level - 1;

        off += distance * distance / (curve->count - first);
        known += curve->noise[i] * curve->noise[i] / (curve->count - first);
    }
    return sqrt(fmax(off, known));
}

bool curve_levels_off(const struct curve *curve, enum better better, double share,
                      unsigned int *first, double *level)
{
    double goal, missing, noise;

    if (curve->count < 3)
        return false;
    goal = level_of(curve, better);
    for (*first = 0; goodness(curve, *first, better) < share * goal; ++*first)
        ;
    *level = better == BETTER_LOWER ? 1 / goal : goal;
    missing = 1 - goodness(curve, 0, better) / goal;
    noise = level_noise(curve, better, *first, goal);
    /* There is no finding if the first point is already on the level, or the curve still rises. */
    return missing > fmax(LEVEL_WIDTH, CLEAR_DISTANCE * noise) && *first + 1 < curve->count;
}

bool curve_line(const struct curve *curve, double from, double to, struct line *out)
{
    double w = 0, x = 0, y = 0, xx = 0, xy = 0, squares = 0;
    unsigned int count = 0;

    for (unsigned int i = 0; i < curve->count; i++) {
        double weight = 1 / (curve->y[i] * curve->y[i]);

        if (curve->x[i] < from || curve->x[i] > to)
            continue;
        w += weight;
        x += weight * curve->x[i];
        y += weight * curve->y[i];
        xx += weight * curve->x[i] * curve->x[i];
        xy += weight * curve->x[i] * curve->y[i];
        count++;
    }
    if (count < 3)
        return false;
    out->slope = (w * xy - x * y) / (w * xx - x * x);
    out->base = (y - out->slope * x) / w;
    for (unsigned int i = 0; i < curve->count; i++) {
        double distance = (out->base + out->slope * curve->x[i]) / curve->y[i] - 1;

        if (curve->x[i] >= from && curve->x[i] <= to)
            squares += distance * distance;
    }
    out->residual = sqrt(squares / count);
    return true;
}
