/* SPDX-License-Identifier: BSD-2-Clause */
/* Dividing a message into stripes: the building blocks of policies. */
#ifndef RAILS_STRIPES_H
#define RAILS_STRIPES_H

#include "rails.h"

#define STRIPES_WEIGHT_MAX 65536

struct stripes_share {
    uint32_t rail;
    uint32_t weight; /* 1 to STRIPES_WEIGHT_MAX */
};

struct stripes_shares {
    uint32_t count;
    struct stripes_share share[RAILS_MAX];
};

bool stripes_allowed(const struct rails_set *set, uint64_t size);

void stripes_whole(struct rails_plan *plan, uint32_t rail, uint64_t size);

/* Divides in proportion to the weights, in the order of the rails. Shares below the minimum length
 * are dropped, the lightest first, and of equal ones the last first. At least one share remains. */
void stripes_cut(struct rails_plan *plan, const struct rails_limits *limits, uint64_t size,
                 struct stripes_shares *shares);

/* Even stripes over all rails that are up; if there are fewer stripes than rails, round robin. */
void stripes_even(struct rails_set *set, uint64_t size, struct rails_plan *plan);

/* The n-th rail that is up, modulo their number. */
uint32_t stripes_nth_up(const struct rails_set *set, uint32_t n);

/* The next rail that is up, round robin. */
uint32_t stripes_next_up(struct rails_set *set);

/* The rates to plan with: unknown rates are the mean of the others, similar rates are equal, and no
 * rate is so low that the rail would never be measured again. */
void stripes_rates(const struct rails_set *set, double rate[RAILS_MAX]);

/* Scales a positive value to a weight. */
uint32_t stripes_weight(double value, double largest);

#endif
