/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections between ranks, with the MTL's window of slots and its credits. */
#include "replay/rank.h"

#include "hca/segment.h"
#include "mtl/rail_rules.h"
#include "sim/model/hca.h"
#include "sim/model/server.h"

#include <stdio.h>
#include <stdlib.h>

#define WINDOW           DEFAULT_window
#define SIGNAL_INTERVAL  DEFAULT_signal_interval
#define INLINE_LIMIT     DEFAULT_inline_limit
#define FIRST_PEERS      8
#define MEMORY_ALIGNMENT 4096

/* User memory is far from the slots. If the schedule does not tell where, a rank has one buffer for
 * what it sends, and one behind it for what it receives. */
#define SEND_BUFFER (1ull << 40)
#define RECV_BUFFER (SEND_BUFFER + GOAL_SIZE_MAX)

/* The low bits of a wr_id are an enum work. */
#define WORK_MASK 7ull

/* ---- connections ---- */

static uint64_t slot_size(void)
{
    return rail_slot_size(replay_state.eager_limit);
}

static uint64_t memory_size(void)
{
    return rail_memory_size(1, WINDOW, slot_size());
}

static uint64_t slot_of(const struct peer *peer, uint32_t ring, uint32_t slot)
{
    return peer->memory + rail_ring_offset(1, ring, WINDOW, slot_size()) + slot * slot_size();
}

struct sim_port *peer_port(const struct rank *rank)
{
    return &model->ports[1 + (uint64_t)rank->node * seg->ports];
}

static struct peer **find_peer(const struct rank *rank, uint32_t number)
{
    for (uint32_t i = number * 0x9e3779b1u >> 7;; i++) {
        struct peer **slot = &rank->peers[i & rank->peer_mask];

        if (!*slot || (*slot)->other->rank->number == number)
            return slot;
    }
}

static bool grow_peers(struct rank *rank)
{
    uint32_t size = rank->peers ? (rank->peer_mask + 1) * 2 : FIRST_PEERS;
    struct rank old = *rank;

    if (rank->peers && rank->peer_count < size / 4)
        return true;
    rank->peers = calloc(size, sizeof(struct peer *));
    if (!rank->peers) {
        rank->peers = old.peers;
        return false;
    }
    rank->peer_mask = size - 1;
    for (uint32_t i = 0; old.peers && i <= old.peer_mask; i++) {
        if (old.peers[i])
            *find_peer(rank, old.peers[i]->other->rank->number) = old.peers[i];
    }
    free(old.peers);
    return true;
}

static struct peer *new_end(struct rank *rank)
{
    struct peer *peer = grow_peers(rank) ? pool_take(&replay_state.peers) : NULL;

    if (!peer)
        return NULL;
    *peer = (struct peer){ .rank = rank,
                           .number = ++rank->last_number,
                           .memory = rank->peer_count * round_up(memory_size(), MEMORY_ALIGNMENT),
                           .wireup = replay_state.goal->connects ? WIREUP_NEW : WIREUP_READY };
    rank->peer_count++;
    return peer;
}

static bool connect_qps(struct peer *a, struct peer *b)
{
    struct owned_qp_end ends[2] = { { peer_port(a->rank), a->rank->number, a },
                                    { peer_port(b->rank), b->rank->number, b } };
    struct sim_qp *qps[2];

    if (!owned_qp_connect(&peer_owner, replay_state.next_qpn, ends, qps))
        return false;
    replay_state.next_qpn += 2;
    a->qp = qps[0];
    b->qp = qps[1];
    return true;
}

static struct peer *connect(struct rank *rank, struct rank *other)
{
    struct peer *a = new_end(rank), *b = rank == other ? a : new_end(other);

    if (!a || !b)
        return NULL;
    a->other = b;
    b->other = a;
    if (rank->node != other->node && !connect_qps(a, b))
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

uint64_t peer_eager_limit(const struct peer *peer)
{
    return peer->qp ? replay_state.eager_limit : DEFAULT_shared_memory_limit;
}

/* ---- posting ---- */

void peer_post(struct cpu *cpu, struct sim_qp *qp, const struct owned_qp_write *write)
{
    cpu_charge(cpu, model->parameters.host.post_send);
    if (!owned_qp_post(qp, write, cpu->clock))
        replay_state.out_of_memory = true;
}

static bool can_send(const struct peer *peer)
{
    return peer->posted - peer->completed < WINDOW && peer->posted - peer->peer_consumed < WINDOW;
}

static uint32_t body_length(const struct message *message)
{
    switch ((enum message_kind)message->kind) {
    case MESSAGE_EAGER:
        return message->size;
    case MESSAGE_RTS:
        return sizeof(struct wire_rts);
    case MESSAGE_CTS:
        return sizeof(struct wire_cts);
    case MESSAGE_FIN:
        return sizeof(struct wire_fin);
    default:
        return sizeof(struct wire_ack);
    }
}

/* Remembers which send a FIN completes. */
static void remember_fin(struct peer *peer, uint32_t op)
{
    if (!peer->fins)
        peer->fins = pool_alloc_permanent(WINDOW * sizeof(*peer->fins));
    if (!peer->fins)
        replay_state.out_of_memory = true;
    else
        peer->fins[peer->posted % WINDOW] = op + 1;
}

/* Writes the message into a slot of the other end. */
static void write_slot(struct cpu *cpu, struct peer *peer, struct message *message)
{
    uint32_t slot = peer->posted % WINDOW;
    struct owned_qp_write write = {
        .wr_id = (uintptr_t)message | WORK_MESSAGE,
        .sq_index = peer->posted,
        .length = sizeof(struct wire_header) + round_up(body_length(message), 4) + sizeof(uint32_t),
        .local = slot_of(peer, 1, slot),
        .remote = slot_of(peer->other, 0, slot),
    };

    if (message->kind == MESSAGE_EAGER)
        rank_charge_copy(cpu, message->size);
    message->consumed = peer->reported = peer->consumed;
    if (write.length <= INLINE_LIMIT)
        write.flags |= IBV_SEND_INLINE;
    if (message->kind == MESSAGE_FIN || (peer->posted + 1) % SIGNAL_INTERVAL == 0)
        write.flags |= IBV_SEND_SIGNALED;
    if (message->kind == MESSAGE_FIN)
        remember_fin(peer, message->send_op);
    peer->posted++;
    peer_post(cpu, peer->qp, &write);
}

/* Puts the message into shared memory of its receiver. */
static void write_shared(struct cpu *cpu, struct message *message)
{
    if (message->kind == MESSAGE_EAGER)
        rank_charge_copy(cpu, message->size);
    cpu_charge(cpu, model->parameters.mpi.shared_latency);
    event_at(cpu->clock, EVENT_SHARED, message, 0);
}

static bool try_send(struct cpu *cpu, struct peer *peer, struct message *message)
{
    if (!peer->qp) {
        write_shared(cpu, message);
    } else if (peer->wireup != WIREUP_READY) {
        wireup_start(cpu, peer);
        return false;
    } else if (can_send(peer)) {
        write_slot(cpu, peer, message);
    } else {
        return false;
    }
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

/* ---- long messages ---- */

static uint64_t user_memory(const struct rank *rank, uint32_t op, uint64_t unknown)
{
    const struct goal_note *note = goal_note_of(rank->schedule, op);

    return note ? note->memory.address : unknown;
}

static void write_range(struct cpu *cpu, struct peer *peer, const struct message *fin,
                        uint64_t offset, uint64_t length, enum work work)
{
    struct owned_qp_write write = {
        .wr_id = work,
        .flags = work == WORK_HEAD ? IBV_SEND_SIGNALED : 0,
        .length = length,
        .local = user_memory(peer->rank, fin->send_op, SEND_BUFFER) + offset,
        .remote = user_memory(peer->other->rank, fin->recv_op, RECV_BUFFER) + offset,
    };

    peer_post(cpu, peer->qp, &write);
}

/* Between ranks that send to each other at once, the answer to an RTS must not wait behind all the
 * data: see should_send_head() in mtl/rendezvous.c. */
static bool should_send_head(const struct cpu *cpu, const struct peer *peer,
                             const struct message *fin)
{
    return !fin->head && !peer->head && fin->size >= RAIL_HEAD_MIN &&
           match_any_posted(&cpu->rank->matching);
}

static void write_head(struct cpu *cpu, struct peer *peer, struct message *fin)
{
    uint64_t half;

    fin->head = rail_head_length(fin->size);
    half = fin->head / 2;
    peer->head = fin;
    write_range(cpu, peer, fin, 0, half, WORK_HEAD);
    write_range(cpu, peer, fin, half, fin->head - half, WORK_DATA);
}

static bool try_send_data(struct cpu *cpu, struct peer *peer, struct message *fin)
{
    if (!can_send(peer))
        return false;
    if (should_send_head(cpu, peer, fin)) {
        write_head(cpu, peer, fin);
        return true;
    }
    if (peer->head == fin)
        peer->head = NULL;
    for (uint64_t done = fin->head; done < fin->size;) {
        uint64_t length = fin->size - done < RAIL_COPY_MAX ? fin->size - done : RAIL_COPY_MAX;

        write_range(cpu, peer, fin, done, length, WORK_DATA);
        done += length;
    }
    cpu_charge(cpu, model->parameters.mpi.control);
    write_slot(cpu, peer, fin);
    return true;
}

void peer_send_data(struct cpu *cpu, struct peer *peer, struct message *fin)
{
    if (!try_send_data(cpu, peer, fin))
        message_append(&cpu->rank->deferred, fin);
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
        if (try_send_data(cpu, fin->to->other, fin))
            count++;
        else
            message_append(&rank->deferred, fin);
    }
    return count;
}

void peer_consumed(struct cpu *cpu, struct peer *peer)
{
    struct owned_qp_write write = { .wr_id = WORK_CREDIT,
                                    .flags = IBV_SEND_INLINE,
                                    .length = sizeof(uint32_t),
                                    .remote = peer->other->memory };

    peer->consumed++;
    if (peer->consumed - peer->reported < WINDOW / 2)
        return;
    if (++peer->credits_posted % RAIL_CREDIT_SIGNALS == 0)
        write.flags |= IBV_SEND_SIGNALED;
    write.sq_index = peer->reported = peer->consumed;
    peer_post(cpu, peer->qp, &write);
}

/* ---- what the model reports ---- */

static void arrived(struct message *message)
{
    inbox_add(message);
    rank_changed(message->to->rank);
}

void peer_shared_arrived(struct message *message)
{
    arrived(message);
}

static void add_cqe(struct peer *peer, uint32_t index, enum work work)
{
    struct rank *rank = peer->rank;
    struct rank_cqe *cqe = pool_take(&replay_state.cqes);

    if (!cqe) {
        replay_state.out_of_memory = true;
        return;
    }
    *cqe = (struct rank_cqe){ .peer = peer, .index = index, .work = work };
    if (rank->cq_last)
        rank->cq_last->next = cqe;
    else
        rank->cq_first = cqe;
    rank->cq_last = cqe;
    rank_changed(rank);
}

/* The wr_id of a wireup message is the end that sends it. */
static struct peer *wireup_sender(const struct sim_wqe *wqe)
{
    return (struct peer *)(uintptr_t)(wqe->wr_id & ~WORK_MASK);
}

static void delivered(const struct sim_packet *last)
{
    const struct sim_wqe *wqe = last->wqe;
    struct peer *peer = last->to->owner_data;

    switch ((enum work)(wqe->wr_id & WORK_MASK)) {
    case WORK_MESSAGE:
        arrived((struct message *)(uintptr_t)wqe->wr_id);
        return;
    case WORK_WIREUP:
        add_cqe(wireup_sender(wqe)->other, wqe->sq_index, WORK_WIREUP_RECV);
        return;
    case WORK_CREDIT:
        if ((int32_t)(wqe->sq_index - peer->peer_consumed) > 0)
            peer->peer_consumed = wqe->sq_index;
        break;
    default:
        break;
    }
    rank_changed(peer->rank);
}

static void completed(struct sim_wqe *wqe)
{
    enum work work = wqe->wr_id & WORK_MASK;

    add_cqe(work == WORK_WIREUP ? wireup_sender(wqe) : wqe->qp->owner_data, wqe->sq_index, work);
}

static void failed(struct sim_qp *qp, enum transport_status why)
{
    const struct peer *peer = qp->owner_data;

    if (!*replay_state.failure)
        snprintf(replay_state.failure, sizeof(replay_state.failure),
                 "the connection from rank %u to rank %u failed at %.3f us: %s", peer->rank->number,
                 peer->other->rank->number, sched->now / 1e3,
                 why == TRANSPORT_RETRY_EXCEEDED ? "transport retries exceeded"
                                                 : "transport error");
}

const struct sim_qp_owner peer_owner = {
    .completed = completed,
    .delivered = delivered,
    .failed = failed,
    .timeout = DEFAULT_timeout,
    .retry_count = DEFAULT_retry_count,
};

/* ---- polling ---- */

/* All messages before 'end' have arrived; their slots can be used again. */
static void complete_until(struct cpu *cpu, struct peer *peer, uint32_t end)
{
    while ((int32_t)(end - peer->completed) > 0) {
        uint32_t *fin = peer->fins ? &peer->fins[peer->completed % WINDOW] : NULL;

        peer->completed++;
        if (fin && *fin) {
            uint32_t op = *fin - 1;

            *fin = 0;
            protocol_release_memory(cpu, op);
            rank_op_done(cpu, op);
        }
    }
}

static void handle(struct cpu *cpu, const struct rank_cqe *cqe)
{
    if (cqe->work == WORK_MESSAGE)
        complete_until(cpu, cqe->peer, cqe->index + 1);
    else if (cqe->work == WORK_HEAD && cqe->peer->head)
        peer_send_data(cpu, cqe->peer, cqe->peer->head);
    else if (cqe->work == WORK_WIREUP_RECV)
        wireup_arrived(cpu, cqe->peer, cqe->index);
}

int peer_poll_cq(struct cpu *cpu)
{
    const struct parameters *p = &model->parameters;
    struct rank *rank = cpu->rank;
    struct rank_cqe *taken = rank->cq_first, *cqe = taken, *next;
    int count = 0;

    while (cqe && count < RAIL_POLL_BATCH) {
        count++;
        rank->cq_first = cqe->next;
        cqe = cqe->next;
    }
    if (!rank->cq_first)
        rank->cq_last = NULL;
    cpu_charge(cpu, count ? count * p->host.poll_hit : p->host.poll_empty);
    for (int i = 0; i < count; i++) {
        next = taken->next;
        handle(cpu, taken);
        pool_give(&replay_state.cqes, taken);
        taken = next;
    }
    return count;
}
