/* SPDX-License-Identifier: BSD-2-Clause */
/* Enhanced point-to-point and collective (Vishnu, Benton and Panda, "High Performance MPI on IBM
 * 12x InfiniBand Architecture"): the kind of communication decides. A blocking message is alone and
 * gets all rails. Non-blocking messages come in numbers and go round robin. The steps of a
 * collective wait for one another, so each is striped. Messages too short for that stay on one
 * rail. */
#include "stripes.h"
#include "policies.h"

static const struct rails_policy *const short_policy[RAILS_CLASSES] = {
    [RAILS_BLOCKING] = &rails_binding,
    [RAILS_NONBLOCKING] = &rails_round_robin,
    [RAILS_PERSISTENT] = &rails_round_robin,
    [RAILS_COLLECTIVE] = &rails_binding,
};

static const struct rails_policy *const long_policy[RAILS_CLASSES] = {
    [RAILS_BLOCKING] = &rails_striping,
    [RAILS_NONBLOCKING] = &rails_round_robin,
    [RAILS_PERSISTENT] = &rails_round_robin,
    [RAILS_COLLECTIVE] = &rails_striping,
};

static void plan_epc(struct rails_set *set, const struct rails_message *message,
                     struct rails_plan *plan)
{
    const struct rails_policy *const *policies =
        stripes_allowed(set, message->size) ? long_policy : short_policy;

    policies[message->class]->plan(set, message, plan);
}

const struct rails_policy rails_epc = {
    .name = "epc",
    .summary = "by the kind of communication: blocking and collective striped, others in turn",
    .plan = plan_epc,
};
