#include "mtl/connection.h"

#include "mtl/log.h"
#include "mtl/protocol.h"
#include "mtl/rendezvous.h"

#include <errno.h>
#include <stdlib.h>

#define CREDIT_SIGNALS 8  /* every so many writes of credit are completed */
#define READS_MAX      32 /* outstanding, of each rail */
#define PROBE_NS       500000000ull
#define POLL_BATCH     16
#define COPY_MAX       (1ull << 30) /* of one request */
#define FULL           0x80000000u

/* Whoever writes does not read: what goes ahead of a piece has the room of the reads. */
static uint32_t sends_of(const struct connection *connection)
{
    return 2 * connection->window + 2 * CREDIT_SIGNALS + READS_MAX;
}

static uint32_t receives_of(const struct connection *connection)
{
    return connection->written_ours ? 1 : connection->window;
}

static int make_queue_pair(struct rail_link *link)
{
    struct device *device = link->path->device;
    uint32_t sends = sends_of(link->connection), receives = receives_of(link->connection);
    struct ibv_qp_init_attr init = {
        .send_cq = device->cq,
        .recv_cq = device->cq,
        .cap = { .max_send_wr = sends,
                 .max_recv_wr = receives,
                 .max_send_sge = 1,
                 .max_recv_sge = 1,
                 .max_inline_data = mtl.parameters.inline_limit },
        .qp_type = IBV_QPT_RC,
    };
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = link->path->port,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
    };

    link->qp = ibv_create_qp(device->pd, &init);
    if (!link->qp) {
        mtl_log("no queue pair with %u and %u requests on %s: %s", sends, receives,
                ibv_get_device_name(device->context->device), strerror(errno));
        return errno;
    }
    return ibv_modify_qp(link->qp, &attr,
                         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

int rail_create(struct rail_link *link)
{
    struct connection *connection = link->connection;

    if (device_reserve(link->path->device, sends_of(connection) + receives_of(connection)))
        return ENOMEM;
    return make_queue_pair(link);
}

/* The new one is made before the old one goes, so that their numbers differ: completions of the old
 * one may still come, and are known by that. */
int rail_renew(struct rail_link *link)
{
    struct ibv_qp *old = link->qp;
    int err = make_queue_pair(link);

    if (err) {
        if (link->qp)
            ibv_destroy_qp(link->qp);
        link->qp = old;
        return err;
    }
    ibv_destroy_qp(old);
    link->posted = link->completed = link->freed = link->arrived = 0;
    link->consumed = link->told = 0;
    link->credits_posted = 0;
    memset((void *)link->credit, 0, CACHE_LINE);
    memset(link->ring, 0, (size_t)link->connection->window * link->connection->slot_size);
    return 0;
}

static void post_receive(struct rail_link *link, uint32_t slot)
{
    struct connection *connection = link->connection;
    struct ibv_sge place = {
        .addr = (uintptr_t)link->ring + (uint64_t)slot * connection->slot_size,
        .length = connection->slot_size,
        .lkey = connection->regions[link->path->device->index]->lkey,
    };
    struct ibv_recv_wr request = { .wr_id = (uintptr_t)&link->receives[slot],
                                   .sg_list = &place,
                                   .num_sge = 1 },
                       *bad;

    if (ibv_post_recv(link->qp, &request, &bad))
        rail_fail(link, "a receive cannot be posted");
}

int rail_connect(struct rail_link *link, uint32_t number)
{
    struct connection *connection = link->connection;
    const struct path_address *to = &connection->endpoint->address.path[link->path - devices.path];
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = to->mtu < link->path->mtu ? to->mtu : link->path->mtu,
        .dest_qp_num = number,
        .rq_psn = number & 0xffffff,
        .max_dest_rd_atomic = 4,
        .min_rnr_timer = 12,
    };
    int err;

    path_vector(link->path, to, &attr.ah_attr);
    err = ibv_modify_qp(link->qp, &attr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                            IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS,
        .sq_psn = link->qp->qp_num & 0xffffff,
        .max_rd_atomic = 4,
        .timeout = mtl.parameters.timeout,
        .retry_cnt = mtl.parameters.retry_count,
        .rnr_retry = 7,
    };
    if (!err)
        err = ibv_modify_qp(link->qp, &attr,
                            IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC |
                                IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY);
    if (err) {
        mtl_log("queue pair %u cannot be connected to %u: %s", link->qp->qp_num, number,
                strerror(err));
        return err;
    }
    link->open = true;
    link->shut_here = link->shut_there = false;
    for (uint32_t i = 0; i < connection->window && !connection->written_ours; i++)
        post_receive(link, i);
    return link->open ? 0 : EIO;
}

void rail_destroy(struct rail_link *link)
{
    if (link->qp)
        ibv_destroy_qp(link->qp);
}

bool rail_has_room(struct rail_link *link)
{
    uint32_t window = link->connection->window;
    uint32_t freed = load_acquire(link->credit);

    if ((int32_t)(freed - link->freed) > 0)
        link->freed = freed;
    return link->up && link->posted - link->completed < window &&
           link->posted - link->freed < window;
}

/* Never zero, and another one when the slot is used again. */
static uint32_t mark_of(uint32_t count)
{
    return count | FULL;
}

static uint32_t *tail_of(char *slot, uint32_t length)
{
    return (uint32_t *)(slot + sizeof(struct wire_header) + round_up(length, 4));
}

static bool post(struct rail_link *link, struct ibv_send_wr *request)
{
    struct ibv_send_wr *bad;
    int err = ibv_post_send(link->qp, request, &bad);

    if (err)
        rail_fail(link, strerror(err));
    return !err;
}

void rail_send(struct rail_link *link, struct message *message, const struct sent *sent)
{
    struct connection *connection = link->connection;
    uint32_t slot = link->posted % connection->window;
    char *staging = link->staging + (uint64_t)slot * connection->slot_size;
    struct wire_header *header = (struct wire_header *)staging;
    uint32_t length = message_write(header + 1, message);
    struct ibv_sge piece = {
        .addr = (uintptr_t)staging,
        .lkey = connection->regions[link->path->device->index]->lkey,
    };
    struct ibv_send_wr request = {
        .wr_id = (uintptr_t)&link->sends[slot],
        .sg_list = &piece,
        .num_sge = 1,
        .opcode = connection->write_theirs ? IBV_WR_RDMA_WRITE : IBV_WR_SEND,
    };

    *header = message->header;
    header->length = length;
    header->mark = mark_of(link->posted);
    header->consumed = link->told = link->consumed;
    header->heard = connection->expected_sequence;
    *tail_of(staging, length) = header->mark;
    piece.length = (char *)(tail_of(staging, length) + 1) - staging;
    if (connection->write_theirs) {
        request.wr.rdma.remote_addr = link->remote_ring + (uint64_t)slot * connection->slot_size;
        request.wr.rdma.rkey = link->remote_rkey;
    }
    if (piece.length <= (uint32_t)mtl.parameters.inline_limit)
        request.send_flags |= IBV_SEND_INLINE;
    if (sent->piece || (link->posted + 1) % connection->signal_interval == 0)
        request.send_flags |= IBV_SEND_SIGNALED;
    link->sends[slot].index = link->posted;
    link->sent[slot] = *sent;
    if (sent->planned)
        rails_given(&connection->set, &link->sent[slot].rails, mtl_now());
    link->posted++;
    mtl.counters.rail_messages[link->index]++;
    mtl.counters.rail_bytes[link->index] += length;
    post(link, &request);
}

/* Without a signal only failures complete, and are those of the message behind. */
static void write_part(struct rail_link *link, const struct remote_copy *copy, uint64_t offset,
                       uint64_t length, struct work *signal)
{
    struct ibv_sge part = { .addr = copy->here + offset, .length = length, .lkey = copy->lkey };
    struct ibv_send_wr request = {
        .wr_id = (uintptr_t)(signal ? signal : &link->credit_work),
        .sg_list = &part,
        .num_sge = 1,
        .opcode = IBV_WR_RDMA_WRITE,
        .send_flags = signal ? IBV_SEND_SIGNALED : 0,
        .wr.rdma = { .remote_addr = copy->there + offset, .rkey = copy->rkey },
    };

    mtl.counters.rail_bytes[link->index] += length;
    post(link, &request);
}

void rail_write(struct rail_link *link, const struct remote_copy *copy)
{
    for (uint64_t done = 0; done < copy->length && link->up;) {
        uint64_t length = copy->length - done < COPY_MAX ? copy->length - done : COPY_MAX;

        write_part(link, copy, done, length, NULL);
        done += length;
    }
}

void rail_lead(struct rail_link *link, const struct remote_copy *copy, struct piece *piece)
{
    uint64_t half = copy->length / 2;

    link->leading = piece;
    write_part(link, copy, 0, half, &link->lead_work);
    if (link->up)
        write_part(link, copy, half, copy->length - half, NULL);
}

static void read_failed(struct work *work)
{
    work->link->reads--;
    piece_read_failed((struct piece *)work);
}

bool rail_can_read(const struct rail_link *link)
{
    return link->up && link->reads < READS_MAX;
}

void rail_read(struct rail_link *link, const struct remote_copy *copy, struct work *work)
{
    struct ibv_sge piece = { .addr = copy->here, .length = copy->length, .lkey = copy->lkey };
    struct ibv_send_wr request = {
        .wr_id = (uintptr_t)work,
        .sg_list = &piece,
        .num_sge = 1,
        .opcode = IBV_WR_RDMA_READ,
        .send_flags = IBV_SEND_SIGNALED,
        .wr.rdma = { .remote_addr = copy->there, .rkey = copy->rkey },
    };

    *work = (struct work){ .kind = WORK_READ, .link = link };
    link->reads++;
    mtl.counters.rail_bytes[link->index] += copy->length;
    if (!post(link, &request))
        read_failed(work);
}

/* The number of messages taken out goes into the other side's word. */
static void return_credit(struct rail_link *link)
{
    struct connection *connection = link->connection;
    _Atomic uint32_t *word = link->credit + 1;
    struct ibv_sge piece = {
        .addr = (uintptr_t)word,
        .length = sizeof(*word),
        .lkey = connection->regions[link->path->device->index]->lkey,
    };
    struct ibv_send_wr request = {
        .wr_id = (uintptr_t)&link->credit_work,
        .sg_list = &piece,
        .num_sge = 1,
        .opcode = IBV_WR_RDMA_WRITE,
        .wr.rdma = { .remote_addr = link->remote_credit, .rkey = link->remote_rkey },
    };

    store_release(word, link->consumed);
    if (mtl.parameters.inline_limit >= (int)sizeof(*word))
        request.send_flags |= IBV_SEND_INLINE;
    if (++link->credits_posted % CREDIT_SIGNALS == 0)
        request.send_flags |= IBV_SEND_SIGNALED;
    link->told = link->consumed;
    post(link, &request);
}

/* Who only waits would never learn that a rail is dead. The number of messages taken out can be
 * told at any time; if that cannot be done, the rail has failed. */
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
    rails_revive();
}

static void end_planned(struct rail_link *link, const struct sent *sent)
{
    struct rails_plan plan;

    plan.class = sent->class;
    plan.begun = sent->begun;
    plan.sharing = sent->sharing;
    plan.count = 1;
    plan.piece[0] = sent->rails;
    rails_ended(&link->connection->set, &plan);
}

/* The policy hears of the next message that it is over. */
static void arrived(struct rail_link *link)
{
    struct sent *sent = &link->sent[link->arrived++ % link->connection->window];

    if (!sent->planned)
        return;
    sent->planned = false;
    rails_completed(&link->connection->set, &sent->rails, true, mtl_now());
    end_planned(link, sent);
}

/* The other side has had so many messages to be matched, over whatever rails: their completions
 * come much later, one for many. */
static void heard_until(struct connection *connection, uint16_t heard)
{
    if (connection->other_heard == heard)
        return;
    connection->other_heard = heard;
    for (uint32_t i = 0; i < connection->rail_count; i++) {
        struct rail_link *link = &connection->rails[i];

        while (link->up && link->arrived != link->posted) {
            const struct sent *sent = &link->sent[link->arrived % connection->window];

            if (sent->planned && (int16_t)(heard - (uint16_t)sent->sequence) <= 0)
                break;
            arrived(link);
        }
    }
}

static void take_out(struct rail_link *link, char *slot)
{
    const struct wire_header *header = (struct wire_header *)slot;

    rail_heard(link);
    if ((int32_t)(header->consumed - link->freed) > 0)
        link->freed = header->consumed;
    heard_until(link->connection, header->heard);
    connection_arrived(link->connection, header, header + 1);
    link->consumed++;
}

static void give_credit(struct rail_link *link)
{
    if (link->consumed - link->told >= link->connection->window / 2 && link->up)
        return_credit(link);
}

static bool has_come(struct rail_link *link, char *slot)
{
    const _Atomic uint32_t *mark = (const _Atomic uint32_t *)&((struct wire_header *)slot)->mark;
    uint32_t wanted = mark_of(link->consumed);

    if (load_acquire(mark) != wanted)
        return false;
    return load_acquire((const _Atomic uint32_t *)tail_of(
               slot, ((struct wire_header *)slot)->length)) == wanted;
}

static int look(struct rail_link *link)
{
    struct connection *connection = link->connection;
    int count = 0;

    for (;;) {
        char *slot =
            link->ring + (uint64_t)(link->consumed % connection->window) * connection->slot_size;

        if (!has_come(link, slot))
            return count;
        take_out(link, slot);
        give_credit(link);
        count++;
    }
}

int rails_look(void)
{
    int count = 0;

    for (struct connection *connection = connections; connection; connection = connection->next) {
        if (!connection->heard || !connection->written_ours)
            continue;
        for (uint32_t i = 0; i < connection->rail_count; i++)
            count += look(&connection->rails[i]);
    }
    return count;
}

/* All messages up to that one have arrived, and their slots are free. */
static void sent_until(struct rail_link *link, uint32_t end)
{
    while ((int32_t)(end - link->arrived) > 0)
        arrived(link);
    while ((int32_t)(end - link->completed) > 0) {
        struct sent *sent = &link->sent[link->completed++ % link->connection->window];

        if (sent->piece)
            piece_over(sent->piece);
    }
}

static void received(struct rail_link *link, uint32_t slot)
{
    take_out(link, link->ring + (uint64_t)slot * link->connection->slot_size);
    if (link->open)
        post_receive(link, slot);
    give_credit(link);
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

    if (work->kind == WORK_GREETING_IN || work->kind == WORK_GREETING_OUT) {
        greeter_completed(completion, work);
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
        sent_until(work->link, work->index + 1);
        break;
    case WORK_RECEIVE:
        received(work->link, work->index);
        break;
    case WORK_READ:
        work->link->reads--;
        piece_over((struct piece *)work);
        break;
    case WORK_LEAD:
        if (work->link->leading)
            piece_led(work->link->leading);
        break;
    default:
        break;
    }
}

int rails_poll(void)
{
    int total = 0;

    for (uint32_t i = 0; i < devices.count; i++) {
        struct ibv_wc completions[POLL_BATCH];
        int count = ibv_poll_cq(devices.device[i].cq, POLL_BATCH, completions);

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
    link->open = link->up = false;
}

/* Whatever becomes of the messages on a rail that has failed, the policy hears no more of them. */
static void forget_plans(struct rail_link *link)
{
    rails_failed(&link->connection->set, link->index);
    for (uint32_t i = link->completed; i != link->posted; i++) {
        struct sent *sent = &link->sent[i % link->connection->window];

        if (sent->planned)
            end_planned(link, sent);
        sent->planned = false;
    }
}

void rail_fail(struct rail_link *link, const char *reason)
{
    struct connection *connection = link->connection;

    if (!link->open)
        return;
    stop(link);
    forget_plans(link);
    mtl.counters.rail_failures++;
    mtl_log("rail %u (%s port %u) to process %u failed: %s; %u of %u left", link->index,
            ibv_get_device_name(link->path->device->context->device), link->path->port,
            connection->endpoint->name.vpid, reason, rails_up(&connection->set),
            connection->rail_count);
    rail_await(link);
    if (rails_up(&connection->set))
        rail_tell(link, WIRE_RAIL_DOWN);
    else
        endpoint_fail(connection->endpoint);
}

/* The other side has given it up. What it had sent and has arrived is taken out; nothing comes
 * after that, so the other side may send the rest by another way. */
void rail_down(struct rail_link *link)
{
    rail_fail(link, "the other side has given it up");
    if (link->connection->written_ours)
        look(link);
    link->shut_here = true;
    rail_tell(link, WIRE_RAIL_SHUT);
}

/* What the other side has not taken out of the rail goes again. Data go with the message that
 * follows them. */
void rail_shut(struct rail_link *link)
{
    struct connection *connection = link->connection;

    if (link->open || link->shut_there)
        return;
    link->shut_there = true;
    if (link->leading)
        piece_lost(link->leading);
    link->leading = NULL;
    for (; link->completed != link->posted; link->completed++) {
        uint32_t slot = link->completed % connection->window;
        struct sent *sent = &link->sent[slot];
        const struct wire_header *header =
            (struct wire_header *)(link->staging + (uint64_t)slot * connection->slot_size);

        mtl.counters.repeated++;
        if (sent->piece)
            piece_lost(sent->piece);
        else
            endpoint_repeat(connection->endpoint, header, header + 1);
    }
}
