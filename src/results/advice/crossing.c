/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds where one curve becomes better than another. */
#include "curve.h"
#include "results/allocate.h"

#include <math.h>
#include <stdlib.h>

/* Smaller gains are not worth advice, however certain. */
#define MIN_GAIN 0.02

/* By how many standard errors a mean must differ from zero. With few points the noise estimate is
 * poor, so the requirement grows by FEW / count. */
#define CLEAR_MEAN   4
#define CLEAR_CHOICE 5 /* the best of several */
#define CLEAR_POINT  2 /* a single gain, in a row of them */
#define FEW          5

/* Ratio of the standard deviation to the median absolute value of normal noise. */
#define MEDIAN_TO_DEVIATION 1.4826

/* A line needs at least this many points on either side. */
#define MIN_REACH 2

/* A line fits if its squared residuals are at most this many times those of the noise. */
#define FIT 3

/* Estimates the noise of points on a smooth curve from their third differences, whose variance is
 * twenty times that of the points. The median ignores the few corners of the curve. */
static double noise_of(const double *values, unsigned int count)
{
    struct summary summary;
    double *bends;

    if (count < 6)
        return 0;
    bends = allocate_zeroed(count * sizeof(*bends));
    for (unsigned int i = 0; i + 3 < count; i++)
        bends[i] = fabs(values[i] - 3 * values[i + 1] + 3 * values[i + 2] - values[i + 3]);
    histogram_of_values(bends, count - 3, &summary);
    free(bends);
    return MEDIAN_TO_DEVIATION * summary.median / sqrt(20);
}

/* The gain of the second curve over the first, as a logarithm, and its noise. */
struct gains {
    unsigned int count;
    double *value;
    double noise;
    bool exact;
};

static struct gains gains_of(const struct curve *first, const struct curve *second,
                             enum better better)
{
    struct gains gains = { .count = first->count };
    double squares = 0;

    gains.value = allocate_zeroed((first->count + 1) * sizeof(*gains.value));
    for (unsigned int i = 0; i < first->count; i++) {
        double ratio = log(second->y[i] / first->y[i]);

        gains.value[i] = better == BETTER_LOWER ? -ratio : ratio;
        squares += first->noise[i] * first->noise[i] + second->noise[i] * second->noise[i];
    }
    gains.exact = first->exact && second->exact;
    if (gains.count && !gains.exact)
        gains.noise = fmax(noise_of(gains.value, gains.count), sqrt(squares / gains.count));
    return gains;
}

/* Whether the mean of 'count' gains is clearly above zero (sign 1) or below it (sign -1). */
static bool stands_out(const struct gains *gains, unsigned int from, unsigned int count, int sign,
                       double clear)
{
    double sum = 0;

    for (unsigned int i = from; i < from + count; i++)
        sum += sign * gains->value[i];
    clear *= 1 + FEW / (double)gains->count;
    return count && sum / count > fmax(MIN_GAIN, clear * gains->noise / sqrt(count));
}

/* Returns the split that best separates points where the first curve is better, below it, from
 * points where the second is. */
static unsigned int best_split(const struct gains *gains)
{
    double score = 0, best = 0;
    unsigned int split = 0;

    for (unsigned int i = 0; i < gains->count; i++) {
        score -= gains->value[i];
        if (score > best) {
            best = score;
            split = i + 1;
        }
    }
    return split;
}

/* Most pairs of curves have costs that grow by a fixed amount per byte, block or connection. Such
 * costs differ by a + b u, where u is x or 1/x. A line through many points gives a more precise
 * zero than two points do. */
struct affine {
    const struct curve *first, *second;
    enum better better;
    bool inverse; /* u is 1/x */
};

static double cost(double y, enum better better)
{
    return better == BETTER_LOWER ? y : 1 / y;
}

/* Fits a line, weighted by the noise of both curves. Returns the mean square of the relative
 * residuals; needs more than two points. */
static double affine_fit(const struct affine *affine, unsigned int from, unsigned int to,
                         double *zero)
{
    double w = 0, u = 0, d = 0, uu = 0, ud = 0, dd = 0, a, b;

    for (unsigned int i = from; i < to; i++) {
        double one = cost(affine->first->y[i], affine->better);
        double two = cost(affine->second->y[i], affine->better);
        double weight = 1 / (one * one + two * two);
        double at = affine->inverse ? 1 / affine->first->x[i] : affine->first->x[i];

        w += weight;
        u += weight * at;
        d += weight * (one - two);
        uu += weight * at * at;
        ud += weight * at * (one - two);
        dd += weight * (one - two) * (one - two);
    }
    b = (w * ud - u * d) / (w * uu - u * u);
    a = (d - b * u) / w;
    *zero = affine->inverse ? -b / a : -a / b;
    return (dd - a * d - b * ud) / (to - from - 2);
}

/* Uses as many points around the split as a line fits. */
static bool affine_zero(struct affine *affine, const struct gains *gains, unsigned int split,
                        double *out)
{
    double below = affine->first->x[split - 1], above = affine->first->x[split];

    for (unsigned int reach = gains->count; reach >= MIN_REACH; reach--) {
        unsigned int from = split > reach ? split - reach : 0;
        unsigned int to = split + reach < gains->count ? split + reach : gains->count;
        double best = INFINITY, zero, left;

        if (to - from < 2 * MIN_REACH)
            return false;
        for (int inverse = 0; inverse < 2; inverse++) {
            affine->inverse = inverse;
            left = affine_fit(affine, from, to, &zero);
            if (left < best && zero > below * below / above && zero < above * above / below) {
                best = left;
                *out = zero;
            }
        }
        if (best < FIT * gains->noise * gains->noise)
            return true;
    }
    return false;
}

/* Exact points need no averaging, and points further away may be beyond a corner. The neighbours
 * only decide which kind of line to use. */
static bool exact_zero(struct affine *affine, const struct gains *gains, unsigned int split,
                       double *out)
{
    double smallest = INFINITY;

    if (split < MIN_REACH || split + MIN_REACH > gains->count)
        return false;
    for (int inverse = 0; inverse < 2; inverse++) {
        double unused, left;

        affine->inverse = inverse;
        left = affine_fit(affine, split - MIN_REACH, split + MIN_REACH, &unused);
        if (left >= smallest)
            continue;
        smallest = left;
        affine_fit(affine, split - 1, split + 1, out);
    }
    return true;
}

/* Returns the x at which the gain is zero. */
static double zero_of(struct affine *affine, const struct gains *gains, unsigned int split)
{
    double below = log(affine->first->x[split - 1]), above = log(affine->first->x[split]);
    double zero, part;

    if (gains->exact ? exact_zero(affine, gains, split, &zero)
                     : affine_zero(affine, gains, split, &zero))
        return zero;
    part = gains->value[split - 1] / (gains->value[split - 1] - gains->value[split]);
    return exp(below + fmin(fmax(part, 0), 1) * (above - below));
}

/* Counts the consecutive points, from the given end, whose gain has that sign and exceeds the
 * noise. */
static unsigned int clear_run(const struct gains *gains, bool from_end, int sign)
{
    double clear = fmax(MIN_GAIN, CLEAR_POINT * gains->noise);
    unsigned int run = 0;

    while (run < gains->count &&
           sign * gains->value[from_end ? gains->count - 1 - run : run] > clear)
        run++;
    return run;
}

/* If one curve is never better, finds the edge of the range where the other clearly is. */
static void one_sided(const struct curve *curve, const struct gains *gains, struct crossing *out)
{
    unsigned int run = 0;

    if (stands_out(gains, 0, gains->count, 1, CLEAR_MEAN)) {
        run = clear_run(gains, true, 1);
        out->below = gains->count - run;
    } else if (stands_out(gains, 0, gains->count, -1, CLEAR_MEAN)) {
        run = clear_run(gains, false, -1);
        out->below = run - 1;
    }
    /* One point alone may be an outlier. */
    if (run < 2)
        return;
    out->kind = gains->value[out->below] > 0 ? CROSSING_SECOND : CROSSING_FIRST;
    out->above = out->below;
    out->x = curve->x[out->below];
}

struct crossing crossing_find(const struct curve *first, const struct curve *second,
                              enum better better)
{
    struct crossing out = { .kind = CROSSING_NONE };
    struct gains gains = gains_of(first, second, better);
    unsigned int split = best_split(&gains);

    if (gains.count >= 3) {
        if (stands_out(&gains, 0, split, -1, CLEAR_MEAN) &&
            stands_out(&gains, split, gains.count - split, 1, CLEAR_MEAN)) {
            out.kind = CROSSING_AT;
            out.below = split - 1;
            out.above = split;
            out.x = zero_of(&(struct affine){ first, second, better, false }, &gains, split);
        } else {
            one_sided(first, &gains, &out);
        }
    }
    free(gains.value);
    return out;
}

bool crossing_gain(const struct curve *first, const struct curve *second, enum better better,
                   double from, double *gain)
{
    struct gains gains = gains_of(first, second, better);
    unsigned int start = 0;
    bool clear;

    while (start < gains.count && first->x[start] < from)
        start++;
    *gain = 0;
    for (unsigned int i = start; i < gains.count; i++)
        *gain += gains.value[i] / (gains.count - start);
    clear = stands_out(&gains, start, gains.count - start, 1, CLEAR_CHOICE);
    free(gains.value);
    return clear;
}
