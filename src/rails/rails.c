/* SPDX-License-Identifier: BSD-2-Clause */
#include "rails.h"

#include <stddef.h>
#include <string.h>

/* A rail that is never idle is measured each time it has carried RATE_WINDOW bytes. A new rate has
 * the weight RATE_SHARE. */
#define RATE_WINDOW (1u << 20)
#define RATE_SHARE  0.125

/* After four messages 'adaptive' has learned most of a change. */
#define OVERLAP_SHARE 0.25

const char *const rails_class_names[RAILS_CLASSES] = { "blocking", "non-blocking", "persistent",
                                                       "collective" };

const struct rails_limits rails_default_limits = {
    .stripe_threshold = RAILS_STRIPE_THRESHOLD,
    .minimum_stripe = RAILS_MINIMUM_STRIPE,
    .alignment = 64,
    .stripe_cost_ns = RAILS_STRIPE_COST_NS,
};

const struct rails_policy *rails_policy_find(const char *name)
{
    for (const struct rails_policy *const *policy = rails_policies; *policy; policy++) {
        if (!strcmp((*policy)->name, name))
            return *policy;
    }
    return NULL;
}

/* Until messages have been observed, classes are assumed to do what their names say. */
void rails_traffic_init(struct rails_traffic *traffic, const struct rails_policy *policy,
                        const struct rails_limits *limits)
{
    memset(traffic, 0, sizeof(*traffic));
    traffic->policy = policy;
    traffic->limits = *limits;
    traffic->overlap[RAILS_NONBLOCKING] = RAILS_MAX;
    traffic->overlap[RAILS_PERSISTENT] = RAILS_MAX;
}

/* Sets start at different rails, or the first messages to all peers would share one. */
void rails_set_init(struct rails_set *set, struct rails_traffic *traffic)
{
    memset(set, 0, offsetof(struct rails_set, rail));
    set->traffic = traffic;
    set->next = set->home = traffic->sets++;
}

static uint32_t port_of(struct rails_traffic *traffic, uint32_t adapter, uint32_t port)
{
    uint32_t i;

    for (i = 0; i < traffic->port_count; i++) {
        if (traffic->port[i].adapter == adapter && traffic->port[i].port == port)
            return i;
    }
    if (i == RAILS_MAX)
        return i - 1;
    traffic->port[i] = (struct rails_port){ .adapter = adapter, .port = port };
    traffic->port_count++;
    return i;
}

int rails_add(struct rails_set *set, uint32_t adapter, uint32_t port, uint32_t qp)
{
    if (set->count == RAILS_MAX)
        return -1;
    set->rail[set->count] = (struct rail){
        .adapter = adapter,
        .port = port,
        .qp = qp,
        .load = port_of(set->traffic, adapter, port),
        .up = true,
    };
    return set->count++;
}

uint32_t rails_up(const struct rails_set *set)
{
    uint32_t up = 0;

    for (uint32_t i = 0; i < set->count; i++)
        up += set->rail[i].up;
    return up;
}

bool rails_replan(struct rails_set *set, const struct rails_message *message,
                  struct rails_plan *plan)
{
    bool rated = message->size && message->size >= set->traffic->limits.stripe_threshold;

    if (!rails_up(set))
        return false;
    plan->class = message->class;
    set->traffic->policy->plan(set, message, plan);
    for (uint32_t i = 0; i < plan->count; i++)
        plan->stripe[i].rated = rated;
    return true;
}

bool rails_plan(struct rails_set *set, const struct rails_message *message, struct rails_plan *plan)
{
    struct rails_traffic *traffic = set->traffic;

    if (!rails_replan(set, message, plan))
        return false;
    plan->begun = traffic->begun;
    plan->sharing = plan->begun - traffic->ended;
    traffic->begun += plan->stripe[0].rated;
    return true;
}

void rails_ended(struct rails_set *set, const struct rails_plan *plan)
{
    struct rails_traffic *traffic = set->traffic;
    uint64_t since = traffic->begun - plan->begun - 1;
    uint64_t others = plan->sharing + since;
    double *overlap = &traffic->overlap[plan->class];

    if (!plan->stripe[0].rated)
        return;
    traffic->ended++;
    if (others > RAILS_MAX)
        others = RAILS_MAX;
    *overlap += ((double)others - *overlap) * OVERLAP_SHARE;
}

static void start_measuring(struct rail *rail, uint64_t now_ns)
{
    rail->since_ns = now_ns;
    rail->served = 0;
}

void rails_given(struct rails_set *set, const struct rails_stripe *stripe, uint64_t now_ns)
{
    struct rail *rail = &set->rail[stripe->rail];

    rail->messages++;
    if (!stripe->rated)
        return;
    if (!rail->rated++)
        start_measuring(rail, now_ns);
    rail->bytes += stripe->length;
    set->traffic->port[rail->load].bytes += stripe->length;
}

/* Rates are measured over a busy period: completions are seen late, several at a time, so that a
 * rate from a single one means nothing. The first measurement is discarded, because the adapter
 * still has to fetch contexts and translations: a rail considered slow for that might never get
 * another stripe, and never be measured again. */
static void measure(struct rail *rail, uint64_t now_ns)
{
    double sample;

    if (rail->served < RATE_WINDOW && rail->rated)
        return;
    if (rail->warm && now_ns > rail->since_ns) {
        sample = (double)rail->served / (double)(now_ns - rail->since_ns);
        rail->rate += rail->rate ? (sample - rail->rate) * RATE_SHARE : sample;
    }
    rail->warm = true;
    start_measuring(rail, now_ns);
}

void rails_completed(struct rails_set *set, const struct rails_stripe *stripe, bool ok,
                     uint64_t now_ns)
{
    struct rail *rail = &set->rail[stripe->rail];

    rail->messages--;
    if (!stripe->rated)
        return;
    rail->rated--;
    rail->bytes -= stripe->length;
    set->traffic->port[rail->load].bytes -= stripe->length;
    if (!ok)
        return;
    rail->served += stripe->length;
    measure(rail, now_ns);
}

void rails_failed(struct rails_set *set, uint32_t which)
{
    struct rail *rail = &set->rail[which];

    set->traffic->port[rail->load].bytes -= rail->bytes;
    rail->bytes = 0;
    rail->messages = rail->rated = 0;
    rail->up = false;
}

void rails_restored(struct rails_set *set, uint32_t which)
{
    set->rail[which].warm = false;
    set->rail[which].rate = 0;
    set->rail[which].up = true;
}
