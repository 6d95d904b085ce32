/* Limits that a run must keep, for those who test with it:
 *
 *     EXPERIMENT[.SERIES][.STATISTIC][[X]] OPERATOR NUMBER[UNIT]  [; ...]
 *
 * A term holds for every point of the experiment that it does not exclude: by series (its name, or
 * the words it begins with; in quotes if it has other characters than letters, digits, blanks and
 * '-'), by x, or by a unit that the series' own cannot be converted to. */
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

/* Returns 0, or -1 with what is wrong, and where, in 'error'. */
int thresholds_read(const char *text, struct thresholds *out, char *error, size_t size);
void thresholds_free(struct thresholds *thresholds);

/* Prints every point for which a term holds, and every term that no point answers to. Returns how
 * many lines that were. */
unsigned int thresholds_check(const struct thresholds *thresholds, const struct results *results,
                              FILE *out);

/* A value of one unit in another; false if they measure different things or one is unknown. */
bool threshold_convert_unit(double value, const char *from, const char *to, double *out);

#endif
