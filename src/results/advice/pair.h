/* Two series that are to be held against each other. */
#ifndef RESULTS_ADVICE_PAIR_H
#define RESULTS_ADVICE_PAIR_H

#include "advice.h"

struct pair {
    struct source first, second;
    struct crossing crossing;
    double low, high; /* the x next to it that were measured */
};

/* False if one is missing, or their units differ. */
bool pair_find(const struct body *body, const char *experiment, const char *first,
               const char *second, const char *quantity, struct pair *out);

/* The figures next to the crossing, as evidence. */
void pair_evidence(struct advice *advice, const struct pair *pair);

#endif
