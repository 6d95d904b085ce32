/* SPDX-License-Identifier: BSD-2-Clause */
/* The samples of a measurement, in a histogram whose buckets are at most a thousandth of their
 * value wide. Its size does not depend on the number of samples. */
#ifndef RESULTS_HISTOGRAM_H
#define RESULTS_HISTOGRAM_H

#include <stdint.h>

/* Every power of two is divided into 2^10 buckets; below 2^11 a bucket has a single value. */
#define HISTOGRAM_CUT     10
#define HISTOGRAM_BUCKETS ((64 - HISTOGRAM_CUT + 1) << HISTOGRAM_CUT)

struct histogram {
    uint64_t count;
    uint64_t minimum, maximum;
    unsigned __int128 sum, squares; /* exact, modulo 2^128 */
    uint64_t buckets[HISTOGRAM_BUCKETS];
};

struct summary {
    uint64_t count;
    double minimum;
    double median;
    double mean;
    double p99;
    double p999;
    double maximum;
    double deviation; /* of the samples, not of their mean */
    double low, high; /* 95% confidence interval of the median; min and max below six samples */
};

/* Does not fail: out of memory aborts the program. */
struct histogram *histogram_new(void);
void histogram_free(struct histogram *histogram);
void histogram_clear(struct histogram *histogram);

static inline unsigned int histogram_index(uint64_t value)
{
    unsigned int shift = 63 - HISTOGRAM_CUT - __builtin_clzll(value | 1 << HISTOGRAM_CUT);

    return (shift << HISTOGRAM_CUT) + (unsigned int)(value >> shift);
}

/* Called inside timed loops: its only branches are those of minimum and maximum. */
static inline void histogram_add(struct histogram *histogram, uint64_t value)
{
    histogram->buckets[histogram_index(value)]++;
    histogram->count++;
    histogram->sum += value;
    histogram->squares += (unsigned __int128)value * value;
    if (value < histogram->minimum)
        histogram->minimum = value;
    if (value > histogram->maximum)
        histogram->maximum = value;
}

/* Adds the samples of 'from' to 'into'. */
void histogram_merge(struct histogram *into, const struct histogram *from);

/* Drops the given share (0 to 0.5) of the largest samples. Mean and deviation are then computed
 * from the buckets. */
void histogram_trim(struct histogram *histogram, double share);

/* Multiplies every value by 'scale', which is positive. Without samples all values are zero. Count,
 * minimum, mean, deviation and maximum are exact; the others are within the right bucket. */
void histogram_summary(const struct histogram *histogram, double scale, struct summary *out);

/* Summarizes individual values, such as one bandwidth per repetition. */
void histogram_of_values(const double *values, unsigned int count, struct summary *out);

#endif
