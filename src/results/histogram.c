/* SPDX-License-Identifier: BSD-2-Clause */
#include "histogram.h"
#include "allocate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Up to this count the confidence interval uses the binomial distribution. Above, it uses the
 * normal distribution, which then differs by less than one rank. */
#define BINOMIAL_MAX 200

#define NORMAL_975   1.959963984540054

/* Returns the k-th smallest sample; k counts from 0. */
typedef double (*order_statistic)(const void *samples, uint64_t k);

struct histogram *histogram_new(void)
{
    struct histogram *histogram = allocate_zeroed(sizeof(*histogram));

    histogram->minimum = UINT64_MAX;
    return histogram;
}

void histogram_free(struct histogram *histogram)
{
    free(histogram);
}

void histogram_clear(struct histogram *histogram)
{
    if (histogram->count) {
        unsigned int first = histogram_index(histogram->minimum);
        unsigned int last = histogram_index(histogram->maximum);

        memset(histogram->buckets + first, 0, (last - first + 1) * sizeof(*histogram->buckets));
    }
    histogram->count = 0;
    histogram->sum = 0;
    histogram->squares = 0;
    histogram->minimum = UINT64_MAX;
    histogram->maximum = 0;
}

void histogram_merge(struct histogram *into, const struct histogram *from)
{
    if (!from->count)
        return;
    for (unsigned int i = histogram_index(from->minimum); i <= histogram_index(from->maximum); i++)
        into->buckets[i] += from->buckets[i];
    into->count += from->count;
    into->sum += from->sum;
    into->squares += from->squares;
    if (from->minimum < into->minimum)
        into->minimum = from->minimum;
    if (from->maximum > into->maximum)
        into->maximum = from->maximum;
}

static uint64_t bucket_width(unsigned int index)
{
    unsigned int octave = index >> HISTOGRAM_CUT;

    return octave > 1 ? (uint64_t)1 << (octave - 1) : 1;
}

static uint64_t bucket_start(unsigned int index)
{
    unsigned int octave = index >> HISTOGRAM_CUT;
    unsigned int shift = octave > 1 ? octave - 1 : 0;

    return ((uint64_t)index - ((uint64_t)shift << HISTOGRAM_CUT)) << shift;
}

/* After a trim the exact sums are unknown: recomputes them from the buckets. */
static void sums_from_buckets(struct histogram *histogram)
{
    histogram->sum = 0;
    histogram->squares = 0;
    for (unsigned int i = histogram_index(histogram->minimum);
         i <= histogram_index(histogram->maximum); i++) {
        unsigned __int128 middle = bucket_start(i) + (bucket_width(i) - 1) / 2;

        histogram->sum += middle * histogram->buckets[i];
        histogram->squares += middle * middle * histogram->buckets[i];
    }
}

void histogram_trim(struct histogram *histogram, double share)
{
    uint64_t drop = (uint64_t)(histogram->count * share);
    unsigned int last;

    if (!drop)
        return;
    last = histogram_index(histogram->maximum);
    histogram->count -= drop;
    while (drop >= histogram->buckets[last]) {
        drop -= histogram->buckets[last];
        histogram->buckets[last--] = 0;
    }
    histogram->buckets[last] -= drop;
    if (last < histogram_index(histogram->maximum)) {
        while (!histogram->buckets[last])
            last--;
        histogram->maximum = bucket_start(last) + bucket_width(last) - 1;
        if (histogram->maximum < histogram->minimum)
            histogram->maximum = histogram->minimum;
    }
    sums_from_buckets(histogram);
}

/* Assumes that the samples of a bucket are evenly distributed in it. */
static double histogram_order(const void *samples, uint64_t k)
{
    const struct histogram *histogram = samples;
    unsigned int i = histogram_index(histogram->minimum);
    double value;

    for (; k >= histogram->buckets[i]; i++)
        k -= histogram->buckets[i];
    value = (double)bucket_start(i);
    if (bucket_width(i) > 1)
        value += (double)bucket_width(i) * ((double)k + 0.5) / (double)histogram->buckets[i] - 0.5;
    return fmin(fmax(value, (double)histogram->minimum), (double)histogram->maximum);
}

static double values_order(const void *samples, uint64_t k)
{
    return ((const double *)samples)[k];
}

static double quantile(order_statistic order, const void *samples, uint64_t count, double share)
{
    double rank = share * (double)(count - 1);
    uint64_t below = (uint64_t)rank;
    double part = rank - (double)below;
    double value = order(samples, below);

    return part > 0 ? value + part * (order(samples, below + 1) - value) : value;
}

/* Returns how many samples to skip at either end so that the rest spans the median with 95%
 * probability: the number of samples below the true median is binomial with p = 1/2. */
static uint64_t interval_margin(uint64_t count)
{
    double term, sum;
    uint64_t margin = 0;

    if (count > BINOMIAL_MAX)
        return (uint64_t)(((double)count - 1 - NORMAL_975 * sqrt((double)count)) / 2);
    term = sum = exp2(-(double)count);
    while (sum <= 0.025) {
        term *= (double)(count - margin) / (double)(margin + 1);
        sum += term;
        margin++;
    }
    return margin ? margin - 1 : 0;
}

static void ordered_summary(order_statistic order, const void *samples, struct summary *out)
{
    uint64_t margin = interval_margin(out->count);

    out->median = quantile(order, samples, out->count, 0.5);
    out->p99 = quantile(order, samples, out->count, 0.99);
    out->p999 = quantile(order, samples, out->count, 0.999);
    out->low = order(samples, margin);
    out->high = order(samples, out->count - 1 - margin);
}

static void summary_scale(struct summary *summary, double scale)
{
    summary->minimum *= scale;
    summary->median *= scale;
    summary->mean *= scale;
    summary->p99 *= scale;
    summary->p999 *= scale;
    summary->maximum *= scale;
    summary->deviation *= scale;
    summary->low *= scale;
    summary->high *= scale;
}

/* Computes the sum of (x - m)^2, where m is the mean rounded down, exactly: the sums are correct
 * modulo 2^128, and so is every step. */
static double histogram_deviation(const struct histogram *histogram)
{
    unsigned __int128 whole = histogram->sum / histogram->count;
    unsigned __int128 square = histogram->squares - 2 * whole * histogram->sum +
                               whole * whole * (unsigned __int128)histogram->count;
    long double count = (long double)histogram->count;
    long double rest = (long double)(histogram->sum % histogram->count) / count;

    if (histogram->count < 2)
        return 0;
    return sqrtl(((long double)square - count * rest * rest) / (count - 1));
}

void histogram_summary(const struct histogram *histogram, double scale, struct summary *out)
{
    memset(out, 0, sizeof(*out));
    if (!histogram->count)
        return;
    out->count = histogram->count;
    out->minimum = (double)histogram->minimum;
    out->maximum = (double)histogram->maximum;
    out->mean = (double)((long double)histogram->sum / (long double)histogram->count);
    out->mean = fmin(fmax(out->mean, out->minimum), out->maximum);
    out->deviation = histogram_deviation(histogram);
    ordered_summary(histogram_order, histogram, out);
    summary_scale(out, scale);
}

static int compare_values(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

/* Welford's recurrence avoids the difference of large sums. */
static void moments(const double *values, unsigned int count, struct summary *out)
{
    double squares = 0;

    for (unsigned int i = 0; i < count; i++) {
        double distance = values[i] - out->mean;

        out->mean += distance / (i + 1);
        squares += distance * (values[i] - out->mean);
    }
    out->mean = fmin(fmax(out->mean, out->minimum), out->maximum);
    out->deviation = count > 1 ? sqrt(squares / (count - 1)) : 0;
}

void histogram_of_values(const double *values, unsigned int count, struct summary *out)
{
    double *sorted;

    memset(out, 0, sizeof(*out));
    if (!count)
        return;
    sorted = allocate_zeroed(count * sizeof(*sorted));
    memcpy(sorted, values, count * sizeof(*sorted));
    qsort(sorted, count, sizeof(*sorted), compare_values);
    out->count = count;
    out->minimum = sorted[0];
    out->maximum = sorted[count - 1];
    moments(sorted, count, out);
    ordered_summary(values_order, sorted, out);
    free(sorted);
}
