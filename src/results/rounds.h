/* SPDX-License-Identifier: BSD-2-Clause */
/* Rounds: the same experiments measured several times, by new processes each time. */
#ifndef RESULTS_ROUNDS_H
#define RESULTS_ROUNDS_H

#include "results.h"

/* Adds the medians of another round to the points of 'results', its failures to their experiments,
 * and its load. A point that 'results' does not have is left out. */
void rounds_add(struct results *results, const struct results *round);

#endif
