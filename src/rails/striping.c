/* SPDX-License-Identifier: BSD-2-Clause */
/* Even stripes on all rails: best for a single message, while many messages pay for each stripe. */
#include "stripes.h"
#include "policies.h"

static void plan_striping(struct rails_set *set, const struct rails_message *message,
                          struct rails_plan *plan)
{
    if (stripes_allowed(set, message->size))
        stripes_even(set, message->size, plan);
    else
        rails_binding.plan(set, message, plan);
}

const struct rails_policy rails_striping = {
    .name = "striping",
    .summary = "even stripes on all rails",
    .plan = plan_striping,
};
