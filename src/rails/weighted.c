/* SPDX-License-Identifier: BSD-2-Clause */
/* Stripes in proportion to the measured rate of each rail, so that they finish together. */
#include "stripes.h"
#include "policies.h"

static void plan_weighted(struct rails_set *set, const struct rails_message *message,
                          struct rails_plan *plan)
{
    struct stripes_shares shares = { .count = 0 };
    double rate[RAILS_MAX], largest = 0;

    if (!stripes_allowed(set, message->size)) {
        rails_binding.plan(set, message, plan);
        return;
    }
    stripes_rates(set, rate);
    for (uint32_t i = 0; i < set->count; i++) {
        if (set->rail[i].up && rate[i] > largest)
            largest = rate[i];
    }
    for (uint32_t i = 0; i < set->count; i++) {
        if (set->rail[i].up)
            shares.share[shares.count++] =
                (struct stripes_share){ .rail = i, .weight = stripes_weight(rate[i], largest) };
    }
    stripes_cut(plan, &set->traffic->limits, message->size, &shares);
}

const struct rails_policy rails_weighted = {
    .name = "weighted",
    .summary = "stripes on all rails in proportion to their measured rates",
    .plan = plan_weighted,
};
