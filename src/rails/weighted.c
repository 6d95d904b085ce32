/* SPDX-License-Identifier: BSD-2-Clause */
/* Pieces in proportion to the measured rate of each rail, so that they finish together. */
#include "pieces.h"
#include "policies.h"

static void plan_weighted(struct rails_set *set, const struct rails_message *message,
                          struct rails_plan *plan)
{
    struct pieces_shares shares = { .count = 0 };
    double rate[RAILS_MAX], largest = 0;

    if (!pieces_may_stripe(set, message->size)) {
        rails_binding.plan(set, message, plan);
        return;
    }
    pieces_rates(set, rate);
    for (uint32_t i = 0; i < set->count; i++) {
        if (set->rail[i].up && rate[i] > largest)
            largest = rate[i];
    }
    for (uint32_t i = 0; i < set->count; i++) {
        if (set->rail[i].up)
            shares.share[shares.count++] =
                (struct pieces_share){ .rail = i, .weight = pieces_weight(rate[i], largest) };
    }
    pieces_cut(plan, &set->traffic->limits, message->size, &shares);
}

const struct rails_policy rails_weighted = {
    .name = "weighted",
    .summary = "pieces on all rails in proportion to their measured rates",
    .plan = plan_weighted,
};
