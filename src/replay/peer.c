/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections between ranks, and messages that wait for a free slot. */
#include "replay/rank.h"

#include "mtl/rail_rules.h"
#include "sim/model/hca.h"
#include "sim/model/prefetch.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_PEERS      8
#define MEMORY_ALIGNMENT 4096

/* ---- connections ---- */

struct sim_port *peer_port(const struct rank *rank, uint32_t rail)
{
    return &model->ports[1 + (uint64_t)rank->node * replay_state.paths + rail % replay_state.paths];
}

uint64_t peer_eager_limit(const struct peer *peer)
{
    return peer->is_remote ? rail_eager_limit(replay_state.rails, replay_state.eager_limit,
                                              rails_default_limits.stripe_threshold)
                           : MTL_SHARED_MEMORY_LIMIT;
}

/* Ranks with consecutive numbers have neighbouring slots, since collectives go through them in
 * order; one whose slot is taken is found by a hash. */
static struct peer **find_peer(const struct rank *rank, uint32_t number)
{
    struct peer **slot = &rank->peers[number & rank->peer_mask];

    for (uint32_t i = number * 0x9e3779b1u >> 7; *slot && (*slot)->other_rank != number; i++)
        slot = &rank->peers[i & rank->peer_mask];
    return slot;
}

static bool grow_peers(struct rank *rank)
{
    uint32_t size = rank->peers ? (rank->peer_mask + 1) * 2 : FIRST_PEERS;
    struct rank old = *rank;

    if (rank->peers && rank->peer_count < size / 4)
        return true;
    rank->peers = pool_take_block(size * sizeof(*rank->peers));
    if (!rank->peers) {
        rank->peers = old.peers;
        return false;
    }
    memset(rank->peers, 0, size * sizeof(*rank->peers));
    rank->peer_mask = size - 1;
    for (uint32_t i = 0; old.peers && i <= old.peer_mask; i++) {
        if (old.peers[i])
            *find_peer(rank, old.peers[i]->other_rank) = old.peers[i];
    }
    if (old.peers)
        pool_give_block(old.peers, (old.peer_mask + 1) * sizeof(*old.peers));
    return true;
}

void peer_set_order(struct peer *peer)
{
    uint32_t number = ++peer->rank->last_number;

    for (uint32_t i = 0; i < replay_state.rails; i++)
        peer->rails[i].order = (number + 1) * RAILS_MAX - i;
}

static struct peer *new_end(struct rank *rank)
{
    struct peer *peer = grow_peers(rank) ? pool_take(&replay_state.peers) : NULL;

    if (!peer)
        return NULL;
    memset(peer, 0, replay_state.peers.size);
    peer->rank = rank;
    peer->memory = rank->peer_count * round_up(peer_rail_memory(), MEMORY_ALIGNMENT);
    peer->wireup = replay_state.goal->connects ? WIREUP_NEW : WIREUP_READY;
    for (uint32_t i = 0; i < replay_state.rails; i++) {
        peer->rails[i].peer = peer;
        peer->rails[i].index = i;
        peer->rails[i].device = i % replay_state.paths / replay_state.ports;
    }
    peer_set_order(peer);
    rank->peer_count++;
    return peer;
}

static bool connect_rail(struct peer *a, struct peer *b, uint32_t rail)
{
    struct owned_qp_end ends[2] = {
        { peer_port(a->rank, rail), a->rank->number, &a->rails[rail] },
        { peer_port(b->rank, rail), b->rank->number, &b->rails[rail] },
    };
    struct sim_qp *qps[2];

    if (!owned_qp_connect(&peer_rail_owner, replay_state.next_qpn, ends, qps))
        return false;
    replay_state.next_qpn += 2;
    a->rails[rail].qp = qps[0];
    b->rails[rail].qp = qps[1];
    return true;
}

static bool connect_rails(struct peer *a, struct peer *b)
{
    a->is_remote = b->is_remote = true;
    for (uint32_t i = 0; i < replay_state.rails; i++) {
        if (!connect_rail(a, b, i))
            return false;
    }
    if (replay_state.rails == 1)
        return true;
    a->policy = peer_policy_new();
    b->policy = peer_policy_new();
    if (!a->policy || !b->policy)
        return false;
    if (!replay_state.goal->connects) {
        peer_policy_open(a);
        peer_policy_open(b);
    }
    return true;
}

static struct peer *connect(struct rank *rank, struct rank *other)
{
    struct peer *a = new_end(rank), *b = rank == other ? a : new_end(other);

    if (!a || !b)
        return NULL;
    a->other = b;
    a->other_rank = other->number;
    b->other = a;
    b->other_rank = rank->number;
    if (rank->node != other->node && !connect_rails(a, b))
        return NULL;
    *find_peer(rank, other->number) = a;
    if (a != b)
        *find_peer(other, rank->number) = b;
    replay_state.connections++;
    return a;
}

struct peer *peer_get(struct rank *rank, uint32_t number)
{
    struct peer *peer = rank->peers ? *find_peer(rank, number) : NULL;

    if (!peer)
        peer = connect(rank, &replay_state.ranks[number]);
    if (!peer)
        replay_state.out_of_memory = true;
    return peer;
}

void peer_prefetch(const struct rank *rank, uint32_t number)
{
    const struct peer *peer = rank->peers ? rank->peers[number & rank->peer_mask] : NULL;

    if (peer)
        prefetch_bytes(peer, sizeof(*peer) + sizeof(peer->rails[0]));
}

/* ---- messages ---- */

/* Puts the message into shared memory of its receiver. */
static void write_shared(struct cpu *cpu, struct message *message)
{
    if (message->kind == MESSAGE_EAGER)
        rank_charge_copy(cpu, message->size);
    cpu_charge(cpu, model->parameters.mpi.shared_latency);
    event_at(cpu->clock, EVENT_SHARED, message, 0);
}

void peer_shared_arrived(struct message *message)
{
    inbox_add(message);
    rank_changed(message->to->rank);
}

/* Control messages take the first rail with a free slot. */
static struct peer_rail *free_rail(struct peer *peer)
{
    uint32_t i = 0;

    while (i + 1 < replay_state.rails && !peer_rail_can_send(&peer->rails[i]))
        i++;
    return &peer->rails[i];
}

static struct peer_rail *rail_for(struct peer *peer, struct message *message)
{
    if (!peer->policy)
        return peer->rails;
    return message->kind == MESSAGE_EAGER ? &peer->rails[peer_policy_rail(peer, message)]
                                          : free_rail(peer);
}

static bool try_send_remote(struct cpu *cpu, struct peer *peer, struct message *message)
{
    struct peer_rail *rail;

    if (peer->wireup != WIREUP_READY) {
        wireup_start(cpu, peer);
        return false;
    }
    rail = rail_for(peer, message);
    if (!peer_rail_can_send(rail))
        return false;
    peer_rail_write(cpu, rail, message);
    return true;
}

static bool try_send(struct cpu *cpu, struct peer *peer, struct message *message)
{
    if (!peer->is_remote)
        write_shared(cpu, message);
    else if (!try_send_remote(cpu, peer, message))
        return false;
    protocol_sent(cpu, message);
    return true;
}

static void add_busy(struct peer *peer)
{
    struct rank *rank = peer->rank;

    if (peer->is_busy)
        return;
    peer->is_busy = true;
    peer->next_busy = NULL;
    if (rank->last_busy)
        rank->last_busy->next_busy = peer;
    else
        rank->busy = peer;
    rank->last_busy = peer;
}

void peer_send(struct cpu *cpu, struct peer *peer, struct message *message)
{
    if (!peer->waiting.first && try_send(cpu, peer, message))
        return;
    message_append(&peer->waiting, message);
    add_busy(peer);
}

void peer_send_data(struct cpu *cpu, struct peer *peer, struct message *cts)
{
    struct message *stripes[RAILS_MAX] = { cts };
    uint32_t count = 1;

    cts->kind = MESSAGE_FIN;
    cts->to = peer->other;
    cts->stripes = 1;
    if (peer->policy)
        count = peer_policy_stripes(cpu, peer, cts, stripes);
    for (uint32_t i = 0; i < count; i++)
        peer_rail_send_stripe(cpu, stripes[i]);
}

/* ---- slots that become free ---- */

static int flush(struct cpu *cpu, struct peer *peer)
{
    int count = 0;

    while (peer->waiting.first) {
        struct message *message = peer->waiting.first, *next = message->next;

        if (!try_send(cpu, peer, message))
            break;
        peer->waiting.first = next;
        if (!next)
            peer->waiting.last = NULL;
        count++;
    }
    return count;
}

int peer_flush(struct cpu *cpu)
{
    struct rank *rank = cpu->rank;
    struct peer *peer = rank->busy, *next_peer;
    struct message *fin = rank->deferred.first, *next;
    int count = 0;

    rank->busy = rank->last_busy = NULL;
    for (; peer; peer = next_peer) {
        next_peer = peer->next_busy;
        peer->is_busy = false;
        count += flush(cpu, peer);
        if (peer->waiting.first)
            add_busy(peer);
    }
    rank->deferred = (struct message_list){ NULL, NULL };
    for (; fin; fin = next) {
        next = fin->next;
        if (peer_rail_try_stripe(cpu, fin))
            count++;
        else
            message_append(&rank->deferred, fin);
    }
    return count;
}
