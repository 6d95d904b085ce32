/* SPDX-License-Identifier: BSD-2-Clause */
/* Rails between ranks, with the MTL's window of slots and its credits. */
#include "replay/rank.h"

#include "mtl/rail_rules.h"
#include "sim/model/hca.h"
#include "sim/model/server.h"

#include <stdio.h>

#define WINDOW          DEFAULT_window
#define SIGNAL_INTERVAL DEFAULT_signal_interval
#define INLINE_LIMIT    DEFAULT_inline_limit

/* User memory is far from the slots. If the schedule does not tell where, a rank has one buffer for
 * what it sends, and one behind it for what it receives. */
#define SEND_BUFFER (1ull << 40)
#define RECV_BUFFER (SEND_BUFFER + GOAL_SIZE_MAX)

/* The low bits of a wr_id are an enum work. */
#define WORK_MASK 7ull

/* ---- slots ---- */

static uint64_t slot_size(void)
{
    return rail_slot_size(replay_state.eager_limit);
}

uint64_t peer_rail_memory(void)
{
    return rail_memory_size(replay_state.rails, WINDOW, slot_size());
}

static struct peer_rail *other_end(const struct peer_rail *rail)
{
    return &rail->peer->other->rails[rail->index];
}

static uint64_t slot_of(const struct peer_rail *rail, uint32_t ring, uint32_t slot)
{
    return rail->peer->memory + rail_ring_offset(replay_state.rails, ring, WINDOW, slot_size()) +
           slot * slot_size();
}

void peer_rail_post(struct cpu *cpu, struct sim_qp *qp, const struct owned_qp_write *write)
{
    cpu_charge(cpu, model->parameters.host.post_send);
    if (!owned_qp_post(qp, write, cpu->clock))
        replay_state.out_of_memory = true;
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

/* What has to be known when the message has arrived. */
static void remember(struct cpu *cpu, struct peer_rail *rail, const struct message *message)
{
    bool is_fin = message->kind == MESSAGE_FIN;
    struct sent *sent;

    if (!is_fin && !message->transfer)
        return;
    if (!rail->sent)
        rail->sent = pool_alloc_permanent(WINDOW * sizeof(*rail->sent));
    sent = rail->sent ? pool_take(&replay_state.sents) : NULL;
    if (!sent) {
        replay_state.out_of_memory = true;
        return;
    }
    *sent = (struct sent){ .transfer = message->transfer,
                           .stripe = { .rail = rail->index,
                                       .offset = message->offset,
                                       .length = message->size,
                                       .rated = message->transfer && message->transfer->rated },
                           .sequence = message->sequence,
                           .op = message->send_op,
                           .is_fin = is_fin };
    rail->sent[rail->posted % WINDOW] = sent;
    if (!is_fin)
        rails_given(&rail->peer->policy->set, &sent->stripe, cpu->clock);
}

void peer_rail_write(struct cpu *cpu, struct peer_rail *rail, struct message *message)
{
    struct peer_policy *policy = rail->peer->policy;
    uint32_t slot = rail->posted % WINDOW;
    struct owned_qp_write write = {
        .wr_id = (uintptr_t)message | WORK_MESSAGE,
        .sq_index = rail->posted,
        .length = rail_message_length(body_length(message)),
        .local = slot_of(rail, replay_state.rails + rail->index, slot),
        .remote = slot_of(other_end(rail), rail->index, slot),
    };

    if (message->kind == MESSAGE_EAGER)
        rank_charge_copy(cpu, message->size);
    message->rail = rail->index;
    message->consumed = rail->reported = rail->consumed;
    if (policy) {
        message->ack = policy->expected_sequence;
        if (message->kind == MESSAGE_EAGER || message->kind == MESSAGE_RTS)
            message->sequence = policy->next_sequence++;
    }
    if (write.length <= INLINE_LIMIT)
        write.flags |= IBV_SEND_INLINE;
    if (message->kind == MESSAGE_FIN || (rail->posted + 1) % SIGNAL_INTERVAL == 0)
        write.flags |= IBV_SEND_SIGNALED;
    remember(cpu, rail, message);
    rail->posted++;
    peer_rail_post(cpu, rail->qp, &write);
}

/* ---- long messages ---- */

static uint64_t user_memory(const struct rank *rank, uint32_t op, uint64_t unknown)
{
    const struct goal_note *note = goal_note_of(rank->schedule, op);

    return note ? note->memory.address : unknown;
}

/* A range of a stripe. */
static void write_range(struct cpu *cpu, struct peer_rail *rail, const struct message *fin,
                        uint64_t begin, uint64_t length, enum work work)
{
    const struct rank *from = rail->peer->rank, *to = rail->peer->other->rank;
    uint64_t offset = fin->offset + begin;
    struct owned_qp_write write = {
        .wr_id = work,
        .flags = work == WORK_HEAD ? IBV_SEND_SIGNALED : 0,
        .length = length,
        .local = user_memory(from, fin->send_op, SEND_BUFFER) + offset,
        .remote = user_memory(to, fin->recv_op, RECV_BUFFER) + offset,
    };

    peer_rail_post(cpu, rail->qp, &write);
}

/* Between ranks that send to each other at once, the answer to an RTS must not wait behind all the
 * data: see should_send_head() in mtl/rendezvous.c. */
static bool should_send_head(const struct cpu *cpu, const struct peer_rail *rail,
                             const struct message *fin)
{
    return !fin->head && !rail->head && fin->size >= RAIL_HEAD_MIN &&
           match_any_posted(&cpu->rank->matching);
}

static void write_head(struct cpu *cpu, struct peer_rail *rail, struct message *fin)
{
    uint64_t half;

    fin->head = rail_head_length(fin->size);
    half = fin->head / 2;
    rail->head = fin;
    write_range(cpu, rail, fin, 0, half, WORK_HEAD);
    write_range(cpu, rail, fin, half, fin->head - half, WORK_DATA);
}

bool peer_rail_try_stripe(struct cpu *cpu, struct message *fin)
{
    struct peer_rail *rail = &fin->to->other->rails[fin->rail];

    if (!peer_rail_can_send(rail))
        return false;
    if (should_send_head(cpu, rail, fin)) {
        write_head(cpu, rail, fin);
        return true;
    }
    if (rail->head == fin)
        rail->head = NULL;
    for (uint64_t done = fin->head; done < fin->size;) {
        uint64_t length = fin->size - done < RAIL_COPY_MAX ? fin->size - done : RAIL_COPY_MAX;

        write_range(cpu, rail, fin, done, length, WORK_DATA);
        done += length;
    }
    cpu_charge(cpu, model->parameters.mpi.control);
    peer_rail_write(cpu, rail, fin);
    return true;
}

void peer_rail_send_stripe(struct cpu *cpu, struct message *fin)
{
    if (!peer_rail_try_stripe(cpu, fin))
        message_append(&cpu->rank->deferred, fin);
}

void peer_rail_consumed(struct cpu *cpu, struct peer_rail *rail)
{
    struct owned_qp_write write = { .wr_id = WORK_CREDIT,
                                    .flags = IBV_SEND_INLINE,
                                    .length = sizeof(uint32_t),
                                    .remote =
                                        rail->peer->other->memory + rail->index * CACHE_LINE };

    rail->consumed++;
    if (rail->consumed - rail->reported < WINDOW / 2)
        return;
    if (++rail->credits_posted % RAIL_CREDIT_SIGNALS == 0)
        write.flags |= IBV_SEND_SIGNALED;
    write.sq_index = rail->reported = rail->consumed;
    peer_rail_post(cpu, rail->qp, &write);
}

/* ---- what the model reports ---- */

static void add_cqe(struct peer_rail *rail, uint32_t index, enum work work)
{
    struct rank *rank = rail->peer->rank;
    struct rank_cq *cq = &rank->cqs[rail->device];
    struct rank_cqe *cqe = pool_take(&replay_state.cqes);

    if (!cqe) {
        replay_state.out_of_memory = true;
        return;
    }
    *cqe = (struct rank_cqe){ .rail = rail, .index = index, .work = work };
    if (cq->last)
        cq->last->next = cqe;
    else
        cq->first = cqe;
    cq->last = cqe;
    rank_changed(rank);
}

/* The wr_id of a wireup message is the end that sends it. Wireup uses the port of the first rail.
 */
static struct peer *wireup_sender(const struct sim_wqe *wqe)
{
    return (struct peer *)(uintptr_t)(wqe->wr_id & ~WORK_MASK);
}

static void delivered(const struct sim_packet *last)
{
    const struct sim_wqe *wqe = last->wqe;
    struct peer_rail *rail = last->to->owner_data;

    switch ((enum work)(wqe->wr_id & WORK_MASK)) {
    case WORK_MESSAGE:
        inbox_add((struct message *)(uintptr_t)wqe->wr_id);
        break;
    case WORK_WIREUP:
        add_cqe(wireup_sender(wqe)->other->rails, wqe->sq_index, WORK_WIREUP_RECV);
        return;
    case WORK_CREDIT:
        if ((int32_t)(wqe->sq_index - rail->peer_consumed) > 0)
            rail->peer_consumed = wqe->sq_index;
        break;
    default:
        break;
    }
    rank_changed(rail->peer->rank);
}

static void completed(struct sim_wqe *wqe)
{
    enum work work = wqe->wr_id & WORK_MASK;

    add_cqe(work == WORK_WIREUP ? wireup_sender(wqe)->rails : wqe->qp->owner_data, wqe->sq_index,
            work);
}

static void failed(struct sim_qp *qp, enum transport_status why)
{
    const struct peer *peer = ((const struct peer_rail *)qp->owner_data)->peer;

    if (!*replay_state.failure)
        snprintf(replay_state.failure, sizeof(replay_state.failure),
                 "the connection from rank %u to rank %u failed at %.3f us: %s", peer->rank->number,
                 peer->other->rank->number, sched->now / 1e3,
                 why == TRANSPORT_RETRY_EXCEEDED ? "transport retries exceeded"
                                                 : "transport error");
}

const struct sim_qp_owner peer_rail_owner = {
    .completed = completed,
    .delivered = delivered,
    .failed = failed,
    .timeout = DEFAULT_timeout,
    .retry_count = DEFAULT_retry_count,
};

/* ---- polling ---- */

/* All messages before 'end' have arrived; their slots can be used again. */
static void complete_until(struct cpu *cpu, struct peer_rail *rail, uint32_t end)
{
    if (rail->peer->policy)
        peer_policy_arrived(cpu, rail, end);
    while ((int32_t)(end - rail->completed) > 0) {
        struct sent **slot = rail->sent ? &rail->sent[rail->completed % WINDOW] : NULL;
        struct sent *fin = slot ? *slot : NULL;

        rail->completed++;
        if (!fin)
            continue;
        *slot = NULL;
        if (!fin->transfer || peer_policy_stripe_done(cpu, rail->peer, fin)) {
            protocol_release_memory(cpu, fin->op);
            rank_op_done(cpu, fin->op);
        }
        pool_give(&replay_state.sents, fin);
    }
}

static void handle(struct cpu *cpu, const struct rank_cqe *cqe)
{
    if (cqe->work == WORK_MESSAGE)
        complete_until(cpu, cqe->rail, cqe->index + 1);
    else if (cqe->work == WORK_HEAD && cqe->rail->head)
        peer_rail_send_stripe(cpu, cqe->rail->head);
    else if (cqe->work == WORK_WIREUP_RECV)
        wireup_arrived(cpu, cqe->rail->peer, cqe->index);
}

int peer_rail_poll_cq(struct cpu *cpu, uint32_t device)
{
    const struct parameters *p = &model->parameters;
    struct rank_cq *cq = &cpu->rank->cqs[device];
    struct rank_cqe *taken = cq->first, *cqe = taken, *next;
    int count = 0;

    while (cqe && count < RAIL_POLL_BATCH) {
        count++;
        cq->first = cqe->next;
        cqe = cqe->next;
    }
    if (!cq->first)
        cq->last = NULL;
    cpu_charge(cpu, count ? count * p->host.poll_hit : p->host.poll_empty);
    for (int i = 0; i < count; i++) {
        next = taken->next;
        handle(cpu, taken);
        pool_give(&replay_state.cqes, taken);
        taken = next;
    }
    return count;
}
