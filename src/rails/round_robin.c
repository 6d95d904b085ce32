/* SPDX-License-Identifier: BSD-2-Clause */
/* Whole messages, round robin: optimal as long as there are enough messages. */
#include "stripes.h"
#include "policies.h"

static void plan_round_robin(struct rails_set *set, const struct rails_message *message,
                             struct rails_plan *plan)
{
    stripes_whole(plan, stripes_next_up(set), message->size);
}

const struct rails_policy rails_round_robin = {
    .name = "round-robin",
    .summary = "whole messages, on the rails in turn",
    .plan = plan_round_robin,
};
