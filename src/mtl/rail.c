/* SPDX-License-Identifier: BSD-2-Clause */
#include "mtl/connection.h"

#include "mtl/log.h"
#include "mtl/protocol.h"
#include "mtl/rail_rules.h"
#include "mtl/rendezvous.h"
#include "mtl/rma.h"

#include <errno.h>
#include <stdlib.h>

#define PROBE_NS 500000000ull
#define FULL     0x80000000u

static uint32_t recv_depth(const struct connection *connection)
{
    return connection->polls_slots ? 1 : connection->window;
}

static struct ibv_qp *create_qp(const struct rail_link *link)
{
    return device_create_qp(link->path, rail_send_depth(link->connection->window),
                            recv_depth(link->connection),
                            IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
}

int rail_create(struct rail_link *link)
{
    struct connection *connection = link->connection;

    if (device_reserve(link->path->device,
                       rail_send_depth(connection->window) + recv_depth(connection)))
        return ENOMEM;
    link->qp = create_qp(link);
    return link->qp ? 0 : ENOMEM;
}

/* The new queue pair is created before the old one is destroyed, so that their numbers differ:
 * late completions of the old one are recognized by its number. */
int rail_renew(struct rail_link *link)
{
    struct ibv_qp *qp = create_qp(link);

    if (!qp)
        return ENOMEM;
    ibv_destroy_qp(link->qp);
    link->qp = qp;
    link->posted = link->completed = link->peer_consumed = link->arrived = 0;
    link->consumed = link->reported = 0;
    link->credits_posted = link->unsignaled = 0;
    memset((void *)link->credit, 0, CACHE_LINE);
    memset(link->ring, 0, (size_t)link->connection->window * link->connection->slot_size);
    if (link->cells)
        memset(link->cells, 0, (size_t)link->connection->window * RAIL_CELL_SIZE);
    return 0;
}

static void post_receive(struct rail_link *link, uint32_t slot)
{
    struct connection *connection = link->connection;
    struct ibv_sge sge = {
        .addr = (uintptr_t)link->ring + (uint64_t)slot * connection->slot_size,
        .length = connection->slot_size,
        .lkey = connection->regions[link->path->device->index]->lkey,
    };
    struct ibv_recv_wr wr = { .wr_id = (uintptr_t)&link->receives[slot],
                              .sg_list = &sge,
                              .num_sge = 1 },
                       *bad;

    if (ibv_post_recv(link->qp, &wr, &bad))
        rail_fail(link, "cannot post a receive");
}

static void prepare_messages(struct rail_link *link)
{
    struct connection *connection = link->connection;

    link->message_sge.lkey = connection->regions[link->path->device->index]->lkey;
    link->message = (struct ibv_send_wr){
        .sg_list = &link->message_sge,
        .num_sge = 1,
        .opcode = connection->peer_polls_slots ? IBV_WR_RDMA_WRITE : IBV_WR_SEND,
        .wr.rdma.rkey = link->remote_rkey,
    };
}

int rail_connect(struct rail_link *link, uint32_t qp_num)
{
    struct connection *connection = link->connection;
    const struct path_address *to = &connection->endpoint->address.path[link->path - devices.path];
    int err = device_connect_qp(link->path, to, link->qp, qp_num);

    if (err)
        return err;
    prepare_messages(link);
    link->connected = true;
    link->drained = link->peer_drained = false;
    for (uint32_t i = 0; i < connection->window && !connection->polls_slots; i++)
        post_receive(link, i);
    return link->connected ? 0 : EIO;
}

void rail_destroy(struct rail_link *link)
{
    if (link->qp)
        ibv_destroy_qp(link->qp);
}

bool rail_can_send(struct rail_link *link)
{
    uint32_t window = link->connection->window, freed;

    if (!link->up || link->posted - link->completed >= window)
        return false;
    if (link->posted - link->peer_consumed < window)
        return true;
    freed = load_acquire(link->credit);
    if ((int32_t)(freed - link->peer_consumed) > 0)
        link->peer_consumed = freed;
    return link->posted - link->peer_consumed < window;
}

/* A division takes as long as a fifth of all that a message needs. */
static uint32_t slot_of(const struct connection *connection, uint32_t count)
{
    return likely(connection->window_mask) ? count & connection->window_mask
                                           : count % connection->window;
}

/* Never zero, and different each time a slot is reused. */
static uint32_t mark_of(uint32_t count)
{
    return count | FULL;
}

static bool post(struct rail_link *link, struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad;
    int err = ibv_post_send(link->qp, wr, &bad);

    if (err)
        rail_fail(link, strerror(err));
    return !err;
}

/* The policy measures long messages only, and reading the clock takes as long as sending a short one. */
static uint64_t time_for(const struct rails_stripe *stripe)
{
    return stripe->rated ? mtl_now() : 0;
}

/* ---- a message in its slot or in its cell ---- */

struct frame {
    struct wire_header *header;
    char *body;
};

static struct frame in_slot(const struct rail_link *link, char *ring, uint32_t index)
{
    char *slot = ring + (uint64_t)index * link->connection->slot_size;

    return (struct frame){ (struct wire_header *)slot, slot + sizeof(struct wire_header) };
}

static struct wire_header *cell_header(char *cells, uint32_t index)
{
    return (struct wire_header *)(cells + (uint64_t)(index + 1) * RAIL_CELL_SIZE) - 1;
}

static struct frame in_cell(struct wire_header *header, uint32_t length)
{
    return (struct frame){ header, (char *)header - rail_cell_body(length) };
}

static uint32_t *tail_of(struct wire_header *slot, uint32_t length)
{
    return (uint32_t *)((char *)slot + rail_message_length(length)) - 1;
}

static uint64_t *head_of(const struct frame *cell)
{
    return (uint64_t *)cell->body - 1;
}

static struct frame staged(const struct rail_link *link, uint32_t index, bool cell)
{
    struct wire_header *header;

    if (!cell)
        return in_slot(link, link->staging, index);
    header = cell_header(link->staging_cells, index);
    return in_cell(header, header->length);
}

static void remember(struct rail_link *link, uint32_t slot, const struct sent *sent, bool in_cell)
{
    struct sent *to = &link->sent[slot];

    link->sends[slot].index = link->posted;
    if (sent) {
        *to = *sent;
    } else {
        to->stripe = NULL;
        to->planned = false;
    }
    to->in_cell = in_cell;
    if (to->planned)
        rails_given(&link->connection->set, &to->rails, time_for(&to->rails));
}

/* Returns the first byte of the message. */
static char *fill_slot(struct rail_link *link, uint32_t index, struct message *message,
                       uint32_t length)
{
    struct frame frame = in_slot(link, link->staging, index);

    endpoint_write_message(frame.body, message);
    wire_copy_header(frame.header, &message->header);
    frame.header->length = length;
    frame.header->consumed = link->consumed;
    frame.header->ack = link->connection->expected_sequence;
    frame.header->mark = mark_of(link->posted);
    *tail_of(frame.header, length) = frame.header->mark;
    return (char *)frame.header;
}

static char *fill_cell(struct rail_link *link, uint32_t index, struct message *message,
                       uint32_t length)
{
    struct frame frame = in_cell(cell_header(link->staging_cells, index), length);
    uint32_t mark = mark_of(link->posted);

    endpoint_write_message(frame.body, message);
    message->header.length = length;
    message->header.consumed = link->consumed;
    message->header.ack = link->connection->expected_sequence;
    wire_store_header(frame.header, &message->header, mark);
    if (!rail_cell_has_head(length))
        return frame.body;
    *head_of(&frame) = mark;
    return (char *)head_of(&frame);
}

static unsigned int flags_of(struct rail_link *link, enum wire_type type, uint32_t length,
                             const struct sent *sent)
{
    const struct connection *connection = link->connection;
    unsigned int flags = 0;

    if (length <= (uint32_t)mtl.parameters.inline_limit)
        flags |= IBV_SEND_INLINE;
    if (!connection->peer_polls_slots && wire_wants_answer(type))
        flags |= IBV_SEND_SOLICITED;
    if (++link->unsignaled == connection->signal_interval)
        link->unsignaled = 0;
    if (!link->unsignaled || (sent && sent->stripe))
        flags |= IBV_SEND_SIGNALED;
    return flags;
}

void rail_send(struct rail_link *link, struct message *message, const struct sent *sent)
{
    struct connection *connection = link->connection;
    uint32_t slot = slot_of(connection, link->posted), length = endpoint_message_length(message);
    bool cell = connection->peer_polls_cells && length <= RAIL_CELL_BODY_MAX;
    char *start = cell ? fill_cell(link, slot, message, length)
                       : fill_slot(link, slot, message, length);
    struct ibv_send_wr *wr = &link->message;

    link->message_sge.addr = (uintptr_t)start;
    link->message_sge.length =
        cell ? link->staging_cells + (uint64_t)(slot + 1) * RAIL_CELL_SIZE - start
             : rail_message_length(length);
    wr->wr_id = (uintptr_t)&link->sends[slot];
    wr->wr.rdma.remote_addr = cell ? link->remote_cells + (start - link->staging_cells)
                                   : link->remote_ring + (start - link->staging);
    wr->send_flags = flags_of(link, message->header.type, link->message_sge.length, sent);
    remember(link, slot, sent, cell);
    link->reported = link->consumed;
    link->posted++;
    mtl.counters.rail_messages[link->index]++;
    mtl.counters.rail_bytes[link->index] += length;
    post(link, wr);
}

/* An unsignaled write completes only if it fails, like the message that follows it. */
static void write_range(struct rail_link *link, const struct remote_copy *copy, uint64_t offset,
                        uint64_t length, struct work *signal)
{
    struct ibv_sge sge = { .addr = copy->local + offset, .length = length, .lkey = copy->lkey };
    struct ibv_send_wr wr = {
        .wr_id = (uintptr_t)(signal ? signal : &link->credit_work),
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = IBV_WR_RDMA_WRITE,
        .send_flags = signal ? IBV_SEND_SIGNALED : 0,
        .wr.rdma = { .remote_addr = copy->remote + offset, .rkey = copy->rkey },
    };

    mtl.counters.rail_bytes[link->index] += length;
    post(link, &wr);
}

void rail_write(struct rail_link *link, const struct remote_copy *copy)
{
    for (uint64_t done = 0; done < copy->length && link->up;) {
        uint64_t length = copy->length - done < RAIL_COPY_MAX ? copy->length - done : RAIL_COPY_MAX;

        write_range(link, copy, done, length, NULL);
        done += length;
    }
}

void rail_write_head(struct rail_link *link, const struct remote_copy *copy, struct stripe *stripe)
{
    uint64_t half = copy->length / 2;

    link->head_stripe = stripe;
    write_range(link, copy, 0, half, &link->head_work);
    if (link->up)
        write_range(link, copy, half, copy->length - half, NULL);
}

static void read_failed(struct work *work)
{
    work->link->reads--;
    rendezvous_read_failed((struct stripe *)work);
}

bool rail_can_read(const struct rail_link *link)
{
    return link->up && link->reads < RAIL_READS_MAX;
}

void rail_read(struct rail_link *link, const struct remote_copy *copy, struct work *work)
{
    struct ibv_sge sge = { .addr = copy->local, .length = copy->length, .lkey = copy->lkey };
    struct ibv_send_wr wr = {
        .wr_id = (uintptr_t)work,
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = IBV_WR_RDMA_READ,
        .send_flags = IBV_SEND_SIGNALED,
        .wr.rdma = { .remote_addr = copy->remote, .rkey = copy->rkey },
    };

    *work = (struct work){ .kind = WORK_READ, .link = link };
    link->reads++;
    mtl.counters.rail_bytes[link->index] += copy->length;
    if (!post(link, &wr))
        read_failed(work);
}

/* Writes the number of consumed messages into the credit word of the peer. */
static void return_credit(struct rail_link *link)
{
    struct connection *connection = link->connection;
    _Atomic uint32_t *word = link->credit + 1;
    struct ibv_sge sge = {
        .addr = (uintptr_t)word,
        .length = sizeof(*word),
        .lkey = connection->regions[link->path->device->index]->lkey,
    };
    struct ibv_send_wr wr = {
        .wr_id = (uintptr_t)&link->credit_work,
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = IBV_WR_RDMA_WRITE,
        .wr.rdma = { .remote_addr = link->remote_credit, .rkey = link->remote_rkey },
    };

    store_release(word, link->consumed);
    if (mtl.parameters.inline_limit >= (int)sizeof(*word))
        wr.send_flags |= IBV_SEND_INLINE;
    if (++link->credits_posted % RAIL_CREDIT_SIGNALS == 0)
        wr.send_flags |= IBV_SEND_SIGNALED;
    link->reported = link->consumed;
    post(link, &wr);
}

/* A process that only waits would never learn that a rail is dead. Returning credit is always
 * allowed, and fails if the rail has failed. */
void rails_probe(void)
{
    static uint64_t next;
    uint64_t now = coarse_now_ns();

    if (now < next)
        return;
    next = now + PROBE_NS;
    for (struct connection *connection = connections; connection; connection = connection->next) {
        for (uint32_t i = 0; i < connection->rail_count; i++) {
            if (connection->state == CONNECTION_READY && connection->rails[i].up)
                return_credit(&connection->rails[i]);
        }
    }
    rails_recover();
}

static void end_planned(struct rail_link *link, const struct sent *sent)
{
    struct rails_plan plan;

    plan.class = sent->class;
    plan.begun = sent->begun;
    plan.sharing = sent->sharing;
    plan.count = 1;
    plan.stripe[0] = sent->rails;
    rails_ended(&link->connection->set, &plan);
}

/* Tells the policy that the next message has arrived. */
static void next_arrived(struct rail_link *link)
{
    struct sent *sent = &link->sent[slot_of(link->connection, link->arrived++)];

    if (!sent->planned)
        return;
    sent->planned = false;
    rails_completed(&link->connection->set, &sent->rails, true, time_for(&sent->rails));
    end_planned(link, sent);
}

/* The peer has received all messages before this sequence number, over any rail. Completions would
 * tell much later, one for many messages. */
static void ack_until(struct connection *connection, uint16_t ack)
{
    if (connection->acked_sequence == ack)
        return;
    connection->acked_sequence = ack;
    for (uint32_t i = 0; i < connection->rail_count; i++) {
        struct rail_link *link = &connection->rails[i];

        while (link->up && link->arrived != link->posted) {
            const struct sent *sent = &link->sent[slot_of(connection, link->arrived)];

            if (sent->planned && (int16_t)(ack - (uint16_t)sent->sequence) <= 0)
                break;
            next_arrived(link);
        }
    }
}

static void consume(struct rail_link *link, const struct wire_header *header, const void *body)
{
    rail_peer_connected(link);
    if ((int32_t)(header->consumed - link->peer_consumed) > 0)
        link->peer_consumed = header->consumed;
    ack_until(link->connection, header->ack);
    connection_arrived(link->connection, header, body);
    link->consumed++;
}

static void maybe_return_credit(struct rail_link *link)
{
    if (link->consumed - link->reported >= link->connection->window / 2 && link->up)
        return_credit(link);
}

static bool has_mark(const void *word, uint32_t wanted)
{
    return load_acquire((const _Atomic uint32_t *)word) == wanted;
}

static bool slot_is_full(struct wire_header *slot, uint32_t wanted)
{
    return has_mark(&slot->mark, wanted) && has_mark(tail_of(slot, slot->length), wanted);
}

static bool cell_is_full(struct frame *cell, uint32_t wanted)
{
    if (!has_mark(&cell->header->mark, wanted))
        return false;
    *cell = in_cell(cell->header, cell->header->length);
    return !rail_cell_has_head(cell->header->length) || has_mark(head_of(cell), wanted);
}

/* The next message is in its slot or in its cell. The other one may not have been used for long: its
 * mark is cleared, before the numbers come round to it again. */
static bool next_full(struct rail_link *link, struct frame *frame)
{
    uint32_t index = slot_of(link->connection, link->consumed), wanted = mark_of(link->consumed);
    struct frame slot = in_slot(link, link->ring, index), cell;

    *frame = slot;
    if (!link->cells)
        return slot_is_full(slot.header, wanted);
    cell.header = cell_header(link->cells, index);
    if (cell_is_full(&cell, wanted)) {
        if (slot.header->mark)
            slot.header->mark = 0;
        *frame = cell;
        return true;
    }
    if (!slot_is_full(slot.header, wanted))
        return false;
    cell.header->mark = 0;
    return true;
}

static int poll_slots(struct rail_link *link)
{
    struct frame frame;
    int count = 0;

    for (; next_full(link, &frame); count++) {
        consume(link, frame.header, frame.body);
        maybe_return_credit(link);
    }
    return count;
}

int rails_poll_slots(void)
{
    int count = 0;

    for (struct connection *connection = connections_polled; connection;
         connection = connection->next_polled) {
        if (!connection->connected)
            continue;
        for (uint32_t i = 0; i < connection->rail_count; i++)
            count += poll_slots(&connection->rails[i]);
    }
    return count;
}

/* All messages before 'end' have arrived, and their slots are free. */
static void complete_until(struct rail_link *link, uint32_t end)
{
    while ((int32_t)(end - link->arrived) > 0)
        next_arrived(link);
    while ((int32_t)(end - link->completed) > 0) {
        struct sent *sent = &link->sent[slot_of(link->connection, link->completed++)];

        if (sent->stripe)
            rendezvous_stripe_done(sent->stripe);
    }
}

static void received(struct rail_link *link, uint32_t slot)
{
    struct frame frame = in_slot(link, link->ring, slot);

    consume(link, frame.header, frame.body);
    if (link->connected)
        post_receive(link, slot);
    maybe_return_credit(link);
}

static void failed(const struct ibv_wc *completion, struct work *work)
{
    rail_fail(work->link, ibv_wc_status_str(completion->status));
    if (work->kind == WORK_READ)
        read_failed(work);
}

static void completed(const struct ibv_wc *completion)
{
    struct work *work = (struct work *)(uintptr_t)completion->wr_id;

    if (work->kind == WORK_WIREUP_RECV || work->kind == WORK_WIREUP_SEND) {
        wireup_completed(completion, work);
        return;
    }
    if (work->kind == WORK_RMA) {
        rma_completed(completion, work);
        return;
    }
    if (completion->qp_num != work->link->qp->qp_num)
        return;
    if (completion->status != IBV_WC_SUCCESS) {
        failed(completion, work);
        return;
    }
    switch (work->kind) {
    case WORK_MESSAGE:
        complete_until(work->link, work->index + 1);
        break;
    case WORK_RECEIVE:
        received(work->link, work->index);
        break;
    case WORK_READ:
        work->link->reads--;
        rendezvous_stripe_done((struct stripe *)work);
        break;
    case WORK_HEAD:
        if (work->link->head_stripe)
            rendezvous_head_done(work->link->head_stripe);
        break;
    default:
        break;
    }
}

int rails_poll_cqs(void)
{
    int total = 0;

    for (uint32_t i = 0; i < devices.count; i++) {
        struct ibv_wc completions[RAIL_POLL_BATCH];
        int count = ibv_poll_cq(devices.device[i].cq, RAIL_POLL_BATCH, completions);

        for (int k = 0; k < count; k++)
            completed(&completions[k]);
        total += count > 0 ? count : 0;
    }
    return total;
}

/* ---- failures ---- */

static void stop(struct rail_link *link)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

    ibv_modify_qp(link->qp, &attr, IBV_QP_STATE);
    link->connected = link->up = false;
}

/* The policy forgets all messages on a rail that has failed. */
static void forget_plans(struct rail_link *link)
{
    rails_failed(&link->connection->set, link->index);
    for (uint32_t i = link->completed; i != link->posted; i++) {
        struct sent *sent = &link->sent[slot_of(link->connection, i)];

        if (sent->planned)
            end_planned(link, sent);
        sent->planned = false;
    }
}

void rail_fail(struct rail_link *link, const char *reason)
{
    struct connection *connection = link->connection;

    if (!link->connected)
        return;
    stop(link);
    forget_plans(link);
    mtl.counters.rail_failures++;
    mtl_log("rail %u (%s port %u) to process %u failed: %s; %u of %u rails are left", link->index,
            ibv_get_device_name(link->path->device->context->device), link->path->port,
            connection->endpoint->name.vpid, reason, rails_up(&connection->set),
            connection->rail_count);
    rail_schedule_retry(link);
    if (rails_up(&connection->set))
        rail_send_control(link, WIRE_RAIL_DOWN);
    else
        endpoint_fail(connection->endpoint);
}

/* Consumes everything that has arrived. Nothing arrives after that, so the peer may send the rest
 * over other rails. */
void rail_peer_down(struct rail_link *link)
{
    rail_fail(link, "the peer has stopped using it");
    if (link->connection->polls_slots)
        poll_slots(link);
    link->drained = true;
    rail_send_control(link, WIRE_RAIL_DRAINED);
}

/* Sends again what the peer has not consumed. A lost FIN stands for its data, too. */
void rail_peer_drained(struct rail_link *link)
{
    struct connection *connection = link->connection;

    if (link->connected || link->peer_drained)
        return;
    link->peer_drained = true;
    if (link->head_stripe)
        rendezvous_stripe_lost(link->head_stripe);
    link->head_stripe = NULL;
    for (; link->completed != link->posted; link->completed++) {
        uint32_t slot = slot_of(connection, link->completed);
        struct sent *sent = &link->sent[slot];
        struct frame frame = staged(link, slot, sent->in_cell);

        mtl.counters.resent++;
        if (sent->stripe)
            rendezvous_stripe_lost(sent->stripe);
        else
            endpoint_resend(connection->endpoint, frame.header, frame.body);
    }
}
