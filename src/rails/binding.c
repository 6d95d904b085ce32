/* SPDX-License-Identifier: BSD-2-Clause */
/* All messages to a peer on one rail; the processes of a host are bound to different ones. */
#include "stripes.h"
#include "policies.h"

static void plan_binding(struct rails_set *set, const struct rails_message *message,
                         struct rails_plan *plan)
{
    stripes_whole(plan, stripes_nth_up(set, set->traffic->limits.bound), message->size);
}

const struct rails_policy rails_binding = {
    .name = "binding",
    .summary = "every message on the rail the process is bound to",
    .plan = plan_binding,
};
