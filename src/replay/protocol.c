/* SPDX-License-Identifier: BSD-2-Clause */
/* Eager and rendezvous messages, as src/mtl exchanges them in virtual time: same messages, same
 * order, same charges. User memory counts as registered, connections as established. */
#include "replay/rank.h"

struct message *protocol_new_message(struct peer *from, enum message_kind kind)
{
    struct message *message = pool_take(&replay_state.messages);

    if (!message) {
        replay_state.out_of_memory = true;
        return NULL;
    }
    message->to = from->other;
    message->kind = kind;
    message->rail = 0;
    message->offset = message->head = 0;
    message->transfer = NULL;
    return message;
}

void protocol_free_message(struct message *message)
{
    pool_give(&replay_state.messages, message);
}

/* ---- receiving ---- */

static void send_control(struct cpu *cpu, struct peer *peer, const struct message *about,
                         enum message_kind kind)
{
    struct message *message = protocol_new_message(peer, kind);

    if (!message)
        return;
    message->size = about->size;
    message->send_op = about->send_op;
    message->recv_op = about->recv_op;
    cpu_charge(cpu, model->parameters.mpi.control);
    peer_send(cpu, peer, message);
}

/* The receiver copies a long message of its own node, or of itself. */
static void read_shared(struct cpu *cpu, const struct message *rts)
{
    const struct parameters *p = &model->parameters;
    bool own = rts->to->other == rts->to;

    if (p->mpi.shared_rate > 0 && !own)
        cpu_charge(cpu, rts->size / p->mpi.shared_rate);
    else
        rank_charge_copy(cpu, rts->size);
    if (own)
        rank_op_done(cpu, rts->send_op);
    else
        send_control(cpu, rts->to, rts, MESSAGE_ACK);
    rank_op_done(cpu, rts->recv_op);
}

static void deregister(struct cpu *cpu, const struct record_regions *gone)
{
    for (uint32_t i = 0; i < replay_state.devices; i++)
        cpu_charge(cpu, parameters_dereg_mr(&model->parameters, gone->regions, gone->bytes));
}

/* The memory of a message that goes by rendezvous, if that took time in the recorded run. */
static void register_memory(struct cpu *cpu, uint32_t op)
{
    const struct goal_note *note = goal_note_of(cpu->rank->schedule, op);
    const struct parameters *p = &model->parameters;

    if (!note || !note->memory.registered)
        return;
    deregister(cpu, &note->memory.first);
    for (uint32_t i = 0; i < replay_state.devices; i++)
        cpu_charge(cpu, parameters_reg_mr(p, note->memory.registered));
}

/* The memory of a message may have been unmapped, or registered together with other memory,
 * meanwhile. */
void protocol_release_memory(struct cpu *cpu, uint32_t op)
{
    const struct goal_note *note = goal_note_of(cpu->rank->schedule, op);

    if (note)
        deregister(cpu, &note->memory.last);
}

/* A message has met its receive. */
static void matched(struct cpu *cpu, struct message *message, uint32_t op)
{
    cpu->rank->received++;
    replay_state.unmatched--;
    message->recv_op = op;
    rank_op(cpu->rank, op)->state = OP_ACTIVE;
    cpu_charge(cpu, model->parameters.mpi.receive);
    if (message->kind == MESSAGE_EAGER) {
        rank_charge_copy(cpu, message->size);
        rank_op_done(cpu, op);
    } else if (message->to->is_remote) {
        rank_op(cpu->rank, op)->next = 0;
        register_memory(cpu, op);
        send_control(cpu, message->to, message, MESSAGE_CTS);
    } else {
        read_shared(cpu, message);
    }
    protocol_free_message(message);
}

static void offered(struct cpu *cpu, struct message *message)
{
    struct rank *rank = cpu->rank;
    struct match_receive *found = match_arrived(&rank->matching, &message->match.key);

    if (found) {
        struct receive *receive = container_of(found, struct receive, match);
        uint32_t op = receive->op;

        pool_give(&replay_state.receives, receive);
        matched(cpu, message, op);
        return;
    }
    if (message->kind == MESSAGE_EAGER)
        rank_charge_copy(cpu, message->size);
    if (match_keep(&rank->matching, &message->match))
        replay_state.out_of_memory = true;
}

void protocol_receive(struct cpu *cpu, uint32_t index)
{
    struct rank *rank = cpu->rank;
    struct goal_op *op = rank_op(rank, index);
    struct match_key key = { .source = op->peer, .tag = op->tag };
    struct match_message *found = match_find(&rank->matching, &key);
    struct receive *receive;

    if (found) {
        match_take(&rank->matching, found);
        matched(cpu, container_of(found, struct message, match), index);
        return;
    }
    receive = pool_take(&replay_state.receives);
    if (!receive) {
        replay_state.out_of_memory = true;
        return;
    }
    op->state = OP_POSTED;
    receive->op = index;
    receive->match.key = key;
    if (match_post(&rank->matching, &receive->match))
        replay_state.out_of_memory = true;
}

/* Messages over several rails are taken in the order in which they were sent. */
static void offered_in_order(struct cpu *cpu, struct peer *peer, struct message *message)
{
    if (peer->policy && !peer_policy_in_order(peer, message))
        return;
    offered(cpu, message);
    while (peer->policy && (message = peer_policy_next(peer)))
        offered(cpu, message);
}

/* A stripe is complete. */
static void finished(struct cpu *cpu, struct message *fin)
{
    struct goal_op *op = rank_op(cpu->rank, fin->recv_op);

    if (++op->next == fin->stripes) {
        protocol_release_memory(cpu, fin->recv_op);
        rank_op_done(cpu, fin->recv_op);
    }
    protocol_free_message(fin);
}

static void handle(struct cpu *cpu, struct peer *peer, struct message *message)
{
    switch ((enum message_kind)message->kind) {
    case MESSAGE_EAGER:
    case MESSAGE_RTS:
        offered_in_order(cpu, peer, message);
        break;
    case MESSAGE_CTS:
        rank_op(cpu->rank, message->send_op)->state = OP_ACTIVE;
        register_memory(cpu, message->send_op);
        peer_send_data(cpu, peer, message);
        break;
    case MESSAGE_FIN:
        finished(cpu, message);
        break;
    case MESSAGE_ACK:
        rank_op_done(cpu, message->send_op);
        protocol_free_message(message);
        break;
    }
}

void protocol_arrived(struct cpu *cpu, struct message *message)
{
    struct peer *peer = message->to;
    struct peer_rail *rail = &peer->rails[message->rail];

    if (!peer->is_remote) {
        handle(cpu, peer, message);
        return;
    }
    if ((int32_t)(message->consumed - rail->peer_consumed) > 0)
        rail->peer_consumed = message->consumed;
    if (peer->policy)
        peer_policy_acked(cpu, peer, message->ack);
    handle(cpu, peer, message);
    peer_rail_consumed(cpu, rail);
}

/* ---- sending ---- */

void protocol_sent(struct cpu *cpu, const struct message *message)
{
    if (message->kind == MESSAGE_EAGER)
        rank_op_done(cpu, message->send_op);
    else if (message->kind == MESSAGE_RTS)
        rank_op(cpu->rank, message->send_op)->state = OP_OFFERED;
}

void protocol_send(struct cpu *cpu, uint32_t index)
{
    struct rank *rank = cpu->rank;
    struct goal_op *op = rank_op(rank, index);
    struct peer *peer = peer_get(rank, op->peer);
    struct message *message;

    if (!peer)
        return;
    message = protocol_new_message(peer, op->size <= peer_eager_limit(peer) ? MESSAGE_EAGER
                                                                            : MESSAGE_RTS);
    if (!message)
        return;
    wireup_open(cpu, peer);
    rank->sent++;
    replay_state.unmatched++;
    rank->sent_bytes += op->size;
    op->state = OP_QUEUED;
    cpu_charge(cpu, model->parameters.mpi.send);
    message->match.key = (struct match_key){ .source = rank->number, .tag = op->tag };
    message->size = op->size;
    message->send_op = index;
    if (peer->other == peer) {
        protocol_sent(cpu, message);
        offered(cpu, message);
    } else {
        peer_send(cpu, peer, message);
    }
}
