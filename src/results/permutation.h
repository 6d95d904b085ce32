/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells changes from noise: a permutation test of two runs of several rounds, at many points at
 * once. If nothing has changed, the rounds might as well have been dealt to the two runs at random.
 * The test deals them anew, all points alike, and asks how often chance alone separates the runs
 * at any point as clearly as they are separated at this one. */
#ifndef RESULTS_PERMUTATION_H
#define RESULTS_PERMUTATION_H

#include <stdbool.h>

/* The share of pairs of equal runs in which the test may report a change at any point. */
#define PERMUTATION_ALPHA 0.01

struct permutation_point {
    const double *a, *b; /* the values of each round */
    double probability;  /* that chance alone separates two runs like this, at any point */
    double detectable;   /* the smallest relative change that would have been seen: 0.1 is 10% */
};

/* Whether runs of this many rounds can show anything at all. */
bool permutation_has_power(unsigned int a_rounds, unsigned int b_rounds);

/* Fills 'probability' and 'detectable' of every point. */
void permutation_test(struct permutation_point *points, unsigned int count, unsigned int a_rounds,
                      unsigned int b_rounds);

#endif
