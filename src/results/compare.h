/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares two runs point by point. */
#ifndef RESULTS_COMPARE_H
#define RESULTS_COMPARE_H

#include "results.h"

enum change {
    CHANGE_SAME,      /* or indistinguishable from noise */
    CHANGE_UNDECIDED, /* too few rounds to tell a change from noise */
    CHANGE_BETTER,
    CHANGE_WORSE,
    CHANGE_OTHER, /* changed, for a quantity that is neither better nor worse */
    CHANGES,
};

/* A point that both runs have. */
struct compared_point {
    const struct experiment_result *experiment; /* of A, as is the series */
    const struct series *series;
    const struct point *a, *b;
    double a_value, b_value; /* medians, of the rounds that count if there are several */
    double ratio;            /* B to A; not finite if A is zero */
    enum change change;
    const char *statistic; /* other than the median that differs between deterministic runs */
    double probability;    /* that noise looks like this; NAN if unknown */
    double detectable;     /* the smallest change that would have been seen; NAN if unknown */
};

/* An experiment, series or point that only one run has. */
struct unmatched {
    bool in_a;
    const struct experiment_result *experiment;
    const struct series *series; /* NULL: the whole experiment */
    const struct point *point;   /* NULL: the whole series */
    const char *why;             /* why the other run skipped it or failed, or NULL */
};

/* A condition that differs between the runs. */
struct condition {
    const char *of, *name; /* "machine" "kernel", or experiment and setting */
    const char *a, *b;     /* NULL: not recorded */
};

enum compare_method {
    COMPARE_EXACT,       /* deterministic: any difference is a change */
    COMPARE_PERMUTATION, /* of rounds */
    COMPARE_NOTHING,     /* too few rounds */
};

struct comparison {
    enum compare_method method;
    double threshold;
    unsigned int a_rounds, b_rounds;       /* without disturbed ones */
    unsigned int a_disturbed, b_disturbed; /* rounds that were left out */
    unsigned int count;
    struct compared_point *points;
    unsigned int unmatched_count;
    struct unmatched *unmatched;
    unsigned int condition_count;
    struct condition *conditions;
    unsigned int tally[CHANGES];
};

/* A round is left out if other programs used more than this share of the processors: what it
 * measured depends on them, and two runs differ even if nothing has changed. */
#define COMPARE_LOAD_MAX 0.05

/* Changes up to this are ignored by default, unless both runs are deterministic. */
#define COMPARE_THRESHOLD 0.02

/* Changes up to 'threshold' (0.02 is 2%; NAN: the default) are ignored. Between deterministic runs
 * any other difference counts, otherwise what permutation_test() does not take for noise. The
 * comparison refers to 'a' and 'b', which must outlive it. Returns 0, or -1 with the reason in
 * 'error'. */
int results_compare(const struct results *a, const struct results *b, double threshold,
                    struct comparison *out, char *error, size_t size);
void compare_free(struct comparison *comparison);

const char *compare_change_name(enum change change);
const char *compare_method_name(enum compare_method method);

#endif
