/* Samples of one measurement, kept in a histogram whose buckets are never wider than a thousandth
 * of their value, so that a million iterations cost no more memory than ten. */
#ifndef RESULTS_STATISTICS_H
#define RESULTS_STATISTICS_H

#include <stdint.h>

/* Every power of two is cut into 2^10 buckets; below 2^11 a bucket holds one value. */
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
    double low, high; /* 95% confidence interval of the median; all there is below six samples */
};

/* Does not fail: out of memory ends the program. */
struct histogram *histogram_new(void);
void histogram_free(struct histogram *histogram);
void histogram_clear(struct histogram *histogram);

static inline unsigned int histogram_index(uint64_t value)
{
    unsigned int shift = 63 - HISTOGRAM_CUT - __builtin_clzll(value | 1 << HISTOGRAM_CUT);

    return (shift << HISTOGRAM_CUT) + (unsigned int)(value >> shift);
}

/* Stands inside timed loops: no branch but those of minimum and maximum. */
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

/* Adds the samples of 'from' to 'into': repetitions that were measured apart. */
void histogram_merge(struct histogram *into, const struct histogram *from);

/* Drops the given share (0 to 0.5) of samples at the upper end, as an outlier policy may ask. Mean
 * and deviation of what is left are those of the buckets. */
void histogram_trim(struct histogram *histogram, double share);

/* Every figure is multiplied by 'scale', which is positive; all are zero if there is no sample.
 * Count, minimum, mean, deviation and maximum are exact; the others fall into the right bucket. */
void histogram_summary(const struct histogram *histogram, double scale, struct summary *out);

/* Of a few values that stand for themselves, such as one bandwidth per repetition. */
void histogram_of_values(const double *values, unsigned int count, struct summary *out);

#endif
