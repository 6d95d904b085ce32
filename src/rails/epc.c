/* Enhanced point-to-point and collective (Vishnu, Benton and Panda, "High Performance MPI on IBM
 * 12x InfiniBand Architecture"): the kind of communication chooses. A blocking message is alone and
 * gets all rails; non-blocking ones come in numbers and take turns; the steps of a collective wait
 * for one another, so each is striped. What is alone and too short for that keeps to one rail. */
#include "pieces.h"
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
        pieces_may_stripe(set, message->size) ? long_policy : short_policy;

    policies[message->class]->plan(set, message, plan);
}

const struct rails_policy rails_epc = {
    .name = "epc",
    .summary = "by the kind of communication: blocking and collective striped, others in turn",
    .plan = plan_epc,
};
