/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares two runs point by point. */
#ifndef RESULTS_COMPARE_H
#define RESULTS_COMPARE_H

#include "results.h"

enum change {
    CHANGE_SAME, /* or indistinguishable from noise */
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
    double ratio; /* of the medians, B to A; not finite if A is zero */
    enum change change;
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

struct comparison {
    unsigned int count;
    struct compared_point *points;
    unsigned int unmatched_count;
    struct unmatched *unmatched;
    unsigned int condition_count;
    struct condition *conditions;
    unsigned int tally[CHANGES];
};

/* A change counts if the confidence intervals of the medians do not overlap and it exceeds
 * 'threshold' (0.02 is 2%). The comparison refers to 'a' and 'b', which must outlive it. Returns 0,
 * or -1 with the reason in 'error'. */
int results_compare(const struct results *a, const struct results *b, double threshold,
                    struct comparison *out, char *error, size_t size);
void compare_free(struct comparison *comparison);

const char *compare_change_name(enum change change);

#endif
