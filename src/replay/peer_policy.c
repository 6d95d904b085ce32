/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections with several rails: a policy of src/rails/ chooses among them, as it does for the
 * MTL, and messages may arrive out of order. */
#include "replay/rank.h"

#include <stdlib.h>

/* The ranks of a node are bound to different ports. */
struct rails_traffic *peer_policy_traffic(const struct rank *rank)
{
    struct rails_traffic *traffic = malloc(sizeof(*traffic));
    struct rails_limits limits = rails_default_limits;

    limits.bound = rank->number % replay_state.ranks_per_node % replay_state.paths;
    if (traffic)
        rails_traffic_init(traffic, replay_state.policy, &limits);
    return traffic;
}

struct peer_policy *peer_policy_new(void)
{
    return pool_alloc_permanent(offsetof(struct peer_policy, set.rail[replay_state.rails]));
}

void peer_policy_open(struct peer *peer)
{
    struct peer_policy *policy = peer->policy;

    rails_set_init(&policy->set, peer->rank->traffic);
    for (uint32_t i = 0; i < replay_state.rails; i++) {
        uint32_t path = i % replay_state.paths;

        rails_add(&policy->set, path / replay_state.ports, path % replay_state.ports + 1,
                  i / replay_state.paths);
    }
}

/* ---- sending ---- */

static struct transfer *begin(struct peer *peer, enum rails_class class, uint64_t size,
                              struct rails_plan *plan)
{
    struct rails_message message = { .class = class, .size = size };
    struct transfer *transfer = pool_take(&replay_state.transfers);

    if (!transfer) {
        replay_state.out_of_memory = true;
        return NULL;
    }
    rails_plan(&peer->policy->set, &message, plan);
    *transfer = (struct transfer){ .begun = plan->begun,
                                   .sharing = plan->sharing,
                                   .class = class,
                                   .stripes_left = plan->count,
                                   .rated = plan->stripe[0].rated };
    return transfer;
}

uint32_t peer_policy_rail(struct peer *peer, struct message *message)
{
    struct rails_plan plan;

    if (message->transfer)
        return message->rail;
    message->transfer =
        begin(peer, rank_op(peer->rank, message->send_op)->class, message->size, &plan);
    message->rail = message->transfer ? plan.stripe[0].rail : 0;
    return message->rail;
}

uint32_t peer_policy_stripes(struct cpu *cpu, struct peer *peer, struct message *fin,
                             struct message *stripes[RAILS_MAX])
{
    struct rails_plan plan;

    fin->transfer = begin(peer, rank_op(peer->rank, fin->send_op)->class, fin->size, &plan);
    if (!fin->transfer)
        return 0;
    for (uint32_t i = 0; i < plan.count; i++) {
        stripes[i] = i ? protocol_new_message(peer, MESSAGE_FIN) : fin;
        if (!stripes[i])
            return 0;
        stripes[i]->transfer = fin->transfer;
        stripes[i]->send_op = fin->send_op;
        stripes[i]->recv_op = fin->recv_op;
        stripes[i]->size = plan.stripe[i].length;
        stripes[i]->offset = plan.stripe[i].offset;
        stripes[i]->rail = plan.stripe[i].rail;
        stripes[i]->stripes = plan.count;
        rails_given(&peer->policy->set, &plan.stripe[i], cpu->clock);
    }
    return plan.count;
}

/* ---- what has arrived ---- */

bool peer_policy_stripe_done(struct cpu *cpu, struct peer *peer, const struct sent *sent)
{
    struct transfer *transfer = sent->transfer;
    struct rails_plan plan;

    rails_completed(&peer->policy->set, &sent->stripe, true, cpu->clock);
    if (--transfer->stripes_left)
        return false;
    plan.class = transfer->class;
    plan.begun = transfer->begun;
    plan.sharing = transfer->sharing;
    plan.count = 1;
    plan.stripe[0] = sent->stripe;
    rails_ended(&peer->policy->set, &plan);
    pool_give(&replay_state.transfers, transfer);
    return true;
}

static struct sent **next_sent(const struct peer_rail *rail)
{
    return rail->sent ? &rail->sent[rail->reported_to_policy % DEFAULT_window] : NULL;
}

/* FINs wait for their completions. */
static void next_arrived(struct cpu *cpu, struct peer_rail *rail)
{
    struct sent **slot = next_sent(rail), *sent = slot ? *slot : NULL;

    rail->reported_to_policy++;
    if (!sent || sent->is_fin)
        return;
    *slot = NULL;
    peer_policy_stripe_done(cpu, rail->peer, sent);
    pool_give(&replay_state.sents, sent);
}

void peer_policy_arrived(struct cpu *cpu, struct peer_rail *rail, uint32_t end)
{
    while ((int32_t)(end - rail->reported_to_policy) > 0)
        next_arrived(cpu, rail);
}

void peer_policy_acked(struct cpu *cpu, struct peer *peer, uint32_t ack)
{
    if (peer->policy->acked == ack)
        return;
    peer->policy->acked = ack;
    for (uint32_t i = 0; i < replay_state.rails; i++) {
        struct peer_rail *rail = &peer->rails[i];

        while (rail->reported_to_policy != rail->posted) {
            struct sent **slot = next_sent(rail), *sent = slot ? *slot : NULL;

            if (sent && !sent->is_fin && (int32_t)(ack - sent->sequence) <= 0)
                break;
            next_arrived(cpu, rail);
        }
    }
}

/* ---- the order of messages ---- */

bool peer_policy_in_order(struct peer *peer, struct message *message)
{
    struct peer_policy *policy = peer->policy;
    struct message **at = &policy->reordered;

    if (message->sequence == policy->expected_sequence) {
        policy->expected_sequence++;
        return true;
    }
    while (*at && (int32_t)((*at)->sequence - message->sequence) < 0)
        at = &(*at)->next;
    message->next = *at;
    *at = message;
    return false;
}

struct message *peer_policy_next(struct peer *peer)
{
    struct peer_policy *policy = peer->policy;
    struct message *message = policy->reordered;

    if (!message || message->sequence != policy->expected_sequence)
        return NULL;
    policy->reordered = message->next;
    policy->expected_sequence++;
    return message;
}
