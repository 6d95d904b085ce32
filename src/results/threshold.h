/* SPDX-License-Identifier: BSD-2-Clause */
/* Limits on measured values, for tests:
 *
 *     EXPERIMENT[.SERIES][.STATISTIC][[X]] OPERATOR NUMBER[UNIT]  [; ...]
 *
 * A term applies to every point of the experiment that matches its series (the name or its first
 * words; quoted if it has characters other than letters, digits, blanks and '-'), its x, and a unit
 * that the series' unit can be converted to. */
#ifndef RESULTS_THRESHOLD_H
#define RESULTS_THRESHOLD_H

#include "results.h"

enum statistic {
    STATISTIC_MEDIAN,
    STATISTIC_MIN,
    STATISTIC_MEAN,
    STATISTIC_P99,
    STATISTIC_P999,
    STATISTIC_MAX,
    STATISTIC_STDDEV,
    STATISTIC_COUNT,
};

enum comparison {
    COMPARE_ABOVE,
    COMPARE_ABOVE_OR_AT,
    COMPARE_BELOW,
    COMPARE_BELOW_OR_AT,
};

#define THRESHOLD_NAME_MAX 64

struct threshold {
    char experiment[THRESHOLD_NAME_MAX];
    char series[THRESHOLD_NAME_MAX]; /* empty: all */
    enum statistic statistic;
    bool has_x;
    double x;
    enum comparison comparison;
    double limit;
    char unit[THRESHOLD_NAME_MAX]; /* empty: the series' own */
};

struct thresholds {
    unsigned int count;
    struct threshold *terms;
};

/* Returns 0, or -1 with the reason and the position in 'error'. */
int thresholds_read(const char *text, struct thresholds *out, char *error, size_t size);
void thresholds_free(struct thresholds *thresholds);

/* Prints every point that meets a term's condition, and every term that applies to no point.
 * Returns the number of lines printed. */
unsigned int thresholds_check(const struct thresholds *thresholds, const struct results *results,
                              FILE *out);

/* Converts a value. Returns false if a unit is unknown or the units are incompatible. */
bool threshold_convert_unit(double value, const char *from, const char *to, double *out);

#endif
