/* SPDX-License-Identifier: BSD-2-Clause */
/* Two series to compare with each other. */
#ifndef RESULTS_ADVICE_PAIR_H
#define RESULTS_ADVICE_PAIR_H

#include "advice.h"

struct pair {
    struct source first, second;
    struct crossing crossing;
    double low, high; /* the measured x on either side of the crossing */
};

/* Returns false if one is missing or their units differ. */
bool pair_find(const struct advice_input *input, const char *experiment, const char *first,
               const char *second, const char *quantity, struct pair *out);

/* Adds the points next to the crossing as evidence. */
void pair_evidence(struct advice *advice, const struct pair *pair);

#endif
