/* Cutting a message into pieces: what policies are made of. */
#ifndef RAILS_PIECES_H
#define RAILS_PIECES_H

#include "rails.h"

#define PIECES_WEIGHT_MAX 65536

struct pieces_share {
    uint32_t rail;
    uint32_t weight; /* 1 to PIECES_WEIGHT_MAX */
};

struct pieces_shares {
    uint32_t count;
    struct pieces_share share[RAILS_MAX];
};

bool pieces_may_stripe(const struct rails_set *set, uint64_t size);

void pieces_whole(struct rails_plan *plan, uint32_t rail, uint64_t size);

/* Cuts in proportion to the weights, in the order of the rails. Shares that would get less than
 * the minimum are left out, the lightest and of these the last first. There is at least one share.
 */
void pieces_cut(struct rails_plan *plan, const struct rails_limits *limits, uint64_t size,
                struct pieces_shares *shares);

/* Even pieces over all rails that are up; if there are more rails than pieces, in turn. */
void pieces_even(struct rails_set *set, uint64_t size, struct rails_plan *plan);

/* The n-th rail that is up, counted modulo how many there are. */
uint32_t pieces_nth_up(const struct rails_set *set, uint32_t n);

/* The next rail that is up, in turn. */
uint32_t pieces_next_up(struct rails_set *set);

/* What rates are taken to be: those that are not known the mean of the others, those that lie close
 * together equal, and none so low that it would never be measured again. */
void pieces_rates(const struct rails_set *set, double rate[RAILS_MAX]);

/* Weights from any positive figures. */
uint32_t pieces_weight(double figure, double largest);

#endif
