/* Modelled queue pairs: posting, completing, and what the transport asks for. Times are the models'
 * business; this is what is done at those times. */
#include "sim/models/hca.h"

#include "hca/addr.h"
#include "hca/cq.h"
#include "hca/engine.h"
#include "hca/epoch.h"
#include "hca/mr.h"
#include "hca/proc.h"
#include "hca/qp.h"
#include "hca/rq.h"
#include "sim/carry.h"
#include "sim/engine.h"
#include "sim/turn.h"
#include "util/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define QP_TABLE_MASK ((1u << QP_INDEX_BITS) - 1)
#define ACK_EVERY 64
#define WINDOW_PACKETS 4096

/* ---- finding and making ---- */

struct queue *queue_by_number(uint32_t qpn)
{
    struct queue *queue = world->queue_table[qpn & QP_TABLE_MASK];

    return queue && queue->qpn == qpn ? queue : NULL;
}

static enum transport_service service_of(enum ibv_qp_type type)
{
    switch (type) {
    case IBV_QPT_UC:
        return SERVICE_UC;
    case IBV_QPT_UD:
        return SERVICE_UD;
    case IBV_QPT_XRC_SEND:
    case IBV_QPT_XRC_RECV:
        return SERVICE_XRC;
    default:
        return SERVICE_RC;
    }
}

static uint16_t peer_lid_of(const struct ibv_qp_attr *attr)
{
    const struct ibv_ah_attr *av = &attr->ah_attr;

    return av->dlid || !av->is_global ? av->dlid : addr_lid_from_gid(&av->grh.dgid);
}

static uint32_t path_mtu(const struct hca_qp *qp)
{
    uint32_t mtu = world->parameters.link.mtu;
    uint32_t asked = qp->attr.path_mtu ? 128u << qp->attr.path_mtu : mtu;

    return asked < mtu ? asked : mtu;
}

static void start_transport(struct queue *queue, const struct hca_qp *qp)
{
    struct transport_attributes attributes = {
        .service = service_of(qp->ibv.qp_type),
        .local_qpn = qp->ibv.qp_num,
        .remote_qpn = qp->attr.dest_qp_num,
        .pkey = HCA_PKEY,
        .qkey = qp->attr.qkey,
        .path_mtu = path_mtu(qp),
        .send_psn = qp->attr.sq_psn & 0xffffff,
        .receive_psn = qp->attr.rq_psn & 0xffffff,
        .window = WINDOW_PACKETS,
        .ack_every = ACK_EVERY,
        .timeout = qp->attr.timeout,
        .retry_count = qp->attr.retry_cnt,
        .rnr_retry_count = qp->attr.rnr_retry,
        .max_reads = qp->attr.max_rd_atomic ? qp->attr.max_rd_atomic : 1,
        .max_answers = qp->attr.max_dest_rd_atomic ? qp->attr.max_dest_rd_atomic : 1,
        .rnr_timer = qp->attr.min_rnr_timer,
    };

    if (attributes.max_answers > RESPONDER_MAX_ANSWERS)
        attributes.max_answers = RESPONDER_MAX_ANSWERS;
    if (attributes.max_reads > RESPONDER_MAX_ANSWERS)
        attributes.max_reads = RESPONDER_MAX_ANSWERS;
    transport_init(&queue->transport, &queue_transport_ops, &attributes);
}

static bool make_ring(struct queue *queue, uint32_t depth)
{
    uint32_t size = round_up_pow2(depth ? depth : 1);

    if (queue->ring && queue->mask + 1 >= size)
        return true;
    queue->ring = world_alloc((uint64_t)size * sizeof(*queue->ring));
    queue->mask = size - 1;
    return queue->ring != NULL;
}

static struct queue *make(struct hca_qp *qp)
{
    struct queue *queue = pool_take(&world->queues);
    struct request **ring;
    uint32_t mask;

    if (!queue)
        return NULL;
    ring = queue->ring;
    mask = queue->mask;
    memset(queue, 0, sizeof(*queue));
    queue->ring = ring;
    queue->mask = mask;
    queue->users = 1;
    queue->shared = qp->shared;
    queue->qpn = qp->ibv.qp_num;
    queue->proc = proc_self;
    queue->process = proc_word(proc_self);
    queue->qp = (uintptr_t)qp;
    queue->srqn = qp->shared->srqn;
    queue->send_entry = qp->cap.max_send_sge ? qp->cap.max_send_sge : 1;
    queue->receive_entry = qp->cap.max_recv_sge ? qp->cap.max_recv_sge : 1;
    queue->port = port_by_lid(qp->shared->lid);
    queue->send_cq = qp->ibv.send_cq ? ((struct hca_cq *)qp->ibv.send_cq)->shared : NULL;
    if (!queue->port || !make_ring(queue, qp->cap.max_send_wr)) {
        pool_give(&world->queues, queue);
        return NULL;
    }
    world->queue_table[queue->qpn & QP_TABLE_MASK] = queue;
    return queue;
}

/* The transport starts when the QP is ready to receive; what it sends with is known later. */
struct queue *queue_of(struct hca_qp *qp)
{
    struct queue *queue = queue_by_number(qp->ibv.qp_num);

    return queue ? queue : make(qp);
}

static void ring_doorbell(struct queue *queue)
{
    queue->users++;
    event_at(turn_now() + ns_of(world->parameters.bus.doorbell_latency), EVENT_DOORBELL, queue, 0);
}

void queue_begin(struct hca_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to)
{
    struct queue *queue = queue_of(qp);

    if (!queue)
        return;
    if (from == IBV_QPS_SQD) {
        for (; queue->held; queue->held--)
            ring_doorbell(queue);
        return;
    }
    queue->peer_lid = peer_lid_of(&qp->attr);
    queue->sl = qp->attr.ah_attr.sl;
    queue->port = port_by_lid(qp->shared->lid);
    stats_gather(queue);
    if (to == IBV_QPS_RTR) {
        start_transport(queue, qp);
        return;
    }
    struct responder kept = queue->transport.responder;
    start_transport(queue, qp);
    queue->transport.responder = kept;
    queue->posted = queue->rung = queue->fetched = queue->completed =
        queue->transport.requester.current.index;
}

void queue_release(struct queue *queue)
{
    if (--queue->users)
        return;
    stats_gather(queue);
    context_forget(&queue->port->hca->context, &queue->context);
    pool_give(&world->queues, queue);
}

void message_release(struct request *message)
{
    if (--message->users)
        return;
    if (unlikely(world->explain.on))
        explain_message(message);
    if (unlikely(trace_on))
        trace_message(message);
    carry_forget_copy(message);
    queue_release(message->queue);
    pool_give(&world->messages, message);
}

/* ---- posting ---- */

static enum transport_operation operation_of(const struct send_wqe *wqe)
{
    switch (wqe->opcode) {
    case IBV_WR_SEND_WITH_IMM:
        return TRANSPORT_SEND_IMMEDIATE;
    case IBV_WR_SEND_WITH_INV:
        return TRANSPORT_SEND_INVALIDATE;
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_ATOMIC_WRITE:
        return TRANSPORT_WRITE;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
        return TRANSPORT_WRITE_IMMEDIATE;
    case IBV_WR_RDMA_READ:
        return TRANSPORT_READ;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
        return TRANSPORT_COMPARE_SWAP;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        return TRANSPORT_FETCH_ADD;
    default:
        return TRANSPORT_SEND;
    }
}

static bool reads_memory(const struct send_wqe *wqe)
{
    return wqe->opcode != IBV_WR_RDMA_READ && wqe->opcode != IBV_WR_ATOMIC_CMP_AND_SWP &&
           wqe->opcode != IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* False: a key is bad. */
static bool take_list(struct hca_qp *qp, const struct send_wqe *wqe, struct request *message)
{
    uint32_t inlined = 0;

    for (uint32_t i = 0; i < wqe->num_sge; i++) {
        const struct ibv_sge *sge = &wqe->sge[i];
        struct place place;

        if (!sge->length)
            continue;
        if (wqe->flags & IBV_SEND_INLINE) {
            memcpy(message->inline_data + inlined, (void *)(uintptr_t)sge->addr, sge->length);
            inlined += sge->length;
        } else {
            if (!mr_local(sge->lkey, qp->pd->id, sge->addr, sge->length, !reads_memory(wqe),
                          &place))
                return false;
            message->in_device_memory |= place.kind == PLACE_SEGMENT;
            message->list[message->stretches++] =
                (struct stretch){ place.addr, sge->length, place.kind };
        }
        message->length += sge->length;
    }
    return true;
}

static struct request *new_message(struct queue *queue, struct hca_qp *qp,
                                   const struct send_wqe *wqe, bool *good)
{
    struct request *message = pool_take(&world->messages);

    if (!message)
        return NULL;
    memset(message, 0, offsetof(struct request, list));
    message->users = 1;
    message->queue = queue;
    queue->users++;
    message->wr_id = wqe->wr_id;
    message->sq_index = wqe->sq_index;
    message->flags = wqe->flags;
    message->opcode = wqe->opcode;
    message->sl = wqe->sl;
    message->dlid = wqe->dlid;
    message->has_grh = wqe->has_grh;
    message->dgid = wqe->dgid;
    message->marks[MARK_CALLED] = engine_call_began();
    message->marks[MARK_POSTED] = turn_now();
    *good = take_list(qp, wqe, message);
    message->wqe = (struct transport_wqe){
        .operation = operation_of(wqe),
        .fence = wqe->flags & IBV_SEND_FENCE,
        .solicited = wqe->flags & IBV_SEND_SOLICITED,
        .length = message->length,
        .data = (uintptr_t)message,
        .remote_address = wqe->remote_addr,
        .remote_key = wqe->rkey,
        .immediate = wqe->imm,
        .swap_or_add = wqe->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? wqe->compare_add : wqe->swap,
        .compare = wqe->compare_add,
        .remote_srq = wqe->srqn,
        .remote_qpn = wqe->remote_qpn,
        .qkey = wqe->remote_qkey,
    };
    return message;
}

/* An atomic brings back one word. */
static bool fits_answer(const struct request *message)
{
    return message->wqe.operation < TRANSPORT_COMPARE_SWAP || message->length == sizeof(uint64_t);
}

/* Without the network: binding windows and the like, and requests that fail here. */
static void complete_here(struct hca_qp *qp, const struct send_wqe *wqe, enum ibv_wc_status status)
{
    if (status != IBV_WC_SUCCESS)
        qp_set_error(qp->shared);
    qp_complete_send(qp, wqe, status, 0);
}

void queue_post(struct hca_qp *qp, const struct send_wqe *wqe)
{
    bool sends = qp_state(qp) == IBV_QPS_RTS || qp_state(qp) == IBV_QPS_SQD;
    struct queue *queue = sends ? queue_of(qp) : queue_by_number(qp->ibv.qp_num);
    struct request *message;
    bool good;

    /* With others before it that are yet to be flushed it waits for that among them. */
    if (!sends && !queue) {
        qp_complete_send(qp, wqe, IBV_WC_WR_FLUSH_ERR, 0);
        return;
    }
    if (wqe->opcode == IBV_WR_BIND_MW || wqe->opcode == IBV_WR_LOCAL_INV) {
        complete_here(qp, wqe, carry_local(qp, wqe));
        return;
    }
    message = queue ? new_message(queue, qp, wqe, &good) : NULL;
    if (!message) {
        complete_here(qp, wqe, IBV_WC_GENERAL_ERR);
        return;
    }
    if (sends && (!good || !fits_answer(message))) {
        message_release(message);
        complete_here(qp, wqe, good ? IBV_WC_LOC_LEN_ERR : IBV_WC_LOC_PROT_ERR);
        return;
    }
    queue->ring[queue->posted++ & queue->mask] = message;
    if (qp_state(qp) == IBV_QPS_SQD)
        queue->held++;
    else
        ring_doorbell(queue);
}

/* ---- completing ---- */

static void put_note(struct request *message, uint8_t status)
{
    struct queue *queue = message->queue;
    struct inbox *inbox = &world->inboxes[queue->proc];
    struct note *note = pool_take(&world->notes);

    if (!note)
        return;
    *note = (struct note){ .qp = queue->qp,
                           .wr_id = message->wr_id,
                           .sq_index = message->sq_index,
                           .byte_len = message->length,
                           .flags = message->flags,
                           .opcode = message->opcode,
                           .status = status };
    if (inbox->last)
        inbox->last->next = note;
    else
        inbox->first = note;
    inbox->last = note;
}

void queue_drain_inbox(void)
{
    struct inbox *inbox = &world->inboxes[proc_self];

    while (inbox->first) {
        struct note *note = inbox->first;
        struct send_wqe wqe = { .wr_id = note->wr_id,
                                .sq_index = note->sq_index,
                                .flags = note->flags,
                                .opcode = note->opcode };

        inbox->first = note->next;
        if (!inbox->first)
            inbox->last = NULL;
        if (note->qp)
            qp_complete_send((struct hca_qp *)(uintptr_t)note->qp, &wqe, note->status,
                             note->byte_len);
        pool_give(&world->notes, note);
    }
}

static enum ibv_wc_status wc_status(enum transport_status status)
{
    static const uint8_t statuses[] = {
        [TRANSPORT_SUCCESS] = IBV_WC_SUCCESS,
        [TRANSPORT_NOT_READY] = IBV_WC_RNR_RETRY_EXC_ERR,
        [TRANSPORT_INVALID_REQUEST] = IBV_WC_REM_INV_REQ_ERR,
        [TRANSPORT_ACCESS_ERROR] = IBV_WC_REM_ACCESS_ERR,
        [TRANSPORT_OPERATIONAL_ERROR] = IBV_WC_REM_OP_ERR,
        [TRANSPORT_LOCAL_LENGTH] = IBV_WC_LOC_LEN_ERR,
        [TRANSPORT_LOCAL_PROTECTION] = IBV_WC_LOC_PROT_ERR,
        [TRANSPORT_BAD_RESPONSE] = IBV_WC_BAD_RESP_ERR,
        [TRANSPORT_RETRY_EXCEEDED] = IBV_WC_RETRY_EXC_ERR,
        [TRANSPORT_RNR_RETRY_EXCEEDED] = IBV_WC_RNR_RETRY_EXC_ERR,
        [TRANSPORT_FLUSHED] = IBV_WC_WR_FLUSH_ERR,
    };

    return statuses[status];
}

static bool brings_data(const struct request *message)
{
    return message->wqe.operation >= TRANSPORT_READ;
}

static void put_over(struct request *message, enum transport_status status)
{
    struct queue *queue = message->queue;

    message->status = status;
    if (queue->over_last)
        queue->over_last->next_over = message;
    else
        queue->over_first = message;
    queue->over_last = message;
}

static void take_over(struct request *message)
{
    struct queue *queue = message->queue;
    struct request **link = &queue->over_first, *before = NULL;

    while (*link != message) {
        before = *link;
        link = &before->next_over;
    }
    *link = message->next_over;
    if (queue->over_last == message)
        queue->over_last = before;
    message->reported = true;
}

/* Its process learns of it. */
static void report(struct request *message)
{
    struct queue *queue = message->queue;
    uint8_t status = wc_status(message->status);
    enum turn_change change = CHANGE_COMPLETION;

    message->marks[MARK_COMPLETED] = world->now;
    take_over(message);
    if (queue->dead || !proc_word_alive(queue->process))
        return;
    if (status == IBV_WC_SUCCESS && brings_data(message))
        status = carry_answer(message);
    carry_snapshot(message);
    if (message->flags & IBV_SEND_SIGNALED || status != IBV_WC_SUCCESS) {
        put_note(message, status);
        if (queue->send_cq && queue->send_cq->has_channel) {
            cq_fire(queue->send_cq, 0, status);
            change = CHANGE_SENT;
        }
    }
    turn_wake(queue->proc, change);
}

/* The request is over; what its process sees of that comes across the bus. */
static void finish(struct request *message)
{
    struct queue *queue = message->queue;
    bool visible =
        message->flags & IBV_SEND_SIGNALED || message->status != TRANSPORT_SUCCESS;
    uint64_t time = world->now;

    message->marks[MARK_OVER] = message->marks[MARK_COMPLETED] = time;
    if (message->reported) {
        message_release(message);
        return;
    }
    if (!visible && !brings_data(message)) {
        take_over(message);
        carry_snapshot(message);
        message_release(message);
        return;
    }
    trace_about(queue, NULL);
    if (visible)
        time = bus_write(&queue->port->hca->bus, time, world->parameters.hca.completion_bytes);
    if (brings_data(message) && time < queue->visible)
        time = queue->visible;
    event_at(time, EVENT_COMPLETE, message, 0);
}

void message_over(struct request *message)
{
    finish(message);
}

void queue_complete(struct request *message)
{
    if (!message->reported)
        report(message);
    message_release(message);
}

/* ---- events around the transport ---- */

static void send_answer(struct queue *queue)
{
    struct packet packet;

    while (transport_pull_response(&queue->transport, &packet)) {
        struct flight *flight = flight_new(queue, &packet);

        if (flight)
            link_send(queue->port, flight);
    }
}

void queue_settle(struct queue *queue)
{
    uint64_t deadline;

    if (queue->dead)
        return;
    queue->transport.ops = &queue_transport_ops;
    if (transport_has_response(&queue->transport) && !queue->has_response) {
        if (!queue->transport.responder.pending) {
            send_answer(queue);
        } else if (!queue->answer_due) {
            queue->answer_due = true;
            queue->users++;
            event_at(world->now + ns_of(world->parameters.hca.read_response), EVENT_RESPOND, queue,
                     0);
        }
    }
    if (queue->waits_for_ack && !queue->transport.requester.in_flight && !queue->ack_event) {
        queue->ack_event = true;
        queue->users++;
        event_at(world->now + ns_of(world->parameters.hca.ack_turnaround), EVENT_ACK_WAITED, queue,
                 0);
    }
    deadline = transport_deadline(&queue->transport);
    if (deadline != TRANSPORT_NEVER && (!queue->timer_at || deadline < queue->timer_at)) {
        queue->timer_at = deadline > world->now ? deadline : world->now;
        queue->users++;
        event_at(queue->timer_at, EVENT_TIMEOUT, queue, 0);
    }
}

void queue_respond(struct queue *queue)
{
    queue->answer_due = false;
    queue->has_response = true;
    send_kick(queue);
}

void queue_ack_waited(struct queue *queue)
{
    queue->ack_event = false;
    queue->waits_for_ack = false;
    send_kick(queue);
}

void queue_timeout(struct queue *queue, uint64_t event_time)
{
    if (queue->dead || event_time != queue->timer_at)
        return;
    queue->timer_at = 0;
    queue->transport.ops = &queue_transport_ops;
    if (transport_deadline(&queue->transport) <= world->now)
        transport_timeout(&queue->transport, world->now);
    queue_settle(queue);
    send_kick(queue);
}

/* ---- the end of a queue ---- */

static void forget_notes(struct hca_qp *qp)
{
    for (struct note *note = world->inboxes[proc_self].first; note; note = note->next) {
        if (note->qp == (uintptr_t)qp)
            note->qp = 0;
    }
}

void queue_drop(struct hca_qp *qp)
{
    struct queue *queue = queue_by_number(qp->ibv.qp_num);
    bool flushes = qp_state(qp) == IBV_QPS_ERR;

    if (!queue)
        return;
    queue->transport.ops = &queue_transport_ops;
    if (flushes) {
        /* What has come to its end otherwise goes before what is flushed. */
        while (queue->over_first)
            report(queue->over_first);
        transport_stop(&queue->transport);
        queue->fetched = queue->posted;
        transport_flush(&queue->transport);
        queue_drain_inbox();
    }
    carry_give_back_receive(queue);
    while (queue->completed != queue->posted)
        message_release(queue_message(queue, queue->completed++));
    queue->dead = true;
    world->queue_table[queue->qpn & QP_TABLE_MASK] = NULL;
    queue_release(queue);
    if (!flushes)
        forget_notes(qp);
}

/* ---- what the transport asks for ---- */

static struct queue *queue_at(struct transport_qp *transport)
{
    return container_of(transport, struct queue, transport);
}

static const struct transport_wqe *wqe_at(struct transport_qp *transport, uint32_t index)
{
    struct queue *queue = queue_at(transport);

    if ((int32_t)(index - queue->fetched) >= 0)
        return NULL;
    return &queue_message(queue, index)->wqe;
}

static void complete(struct transport_qp *transport, uint32_t index, enum transport_status status)
{
    struct queue *queue = queue_at(transport);
    struct request *message = queue_message(queue, index);

    queue->completed = index + 1;
    if (status == TRANSPORT_FLUSHED) {
        message->status = status;
        put_note(message, wc_status(status));
        message_release(message);
        return;
    }
    put_over(message, status);
    if (!transport_is_reliable(transport) && status == TRANSPORT_SUCCESS) {
        /* Its last packet was just pulled: it is over when that has left. */
        queue->pulled_over = message;
        return;
    }
    finish(message);
}

static bool place_read(struct transport_qp *transport, uint32_t index, uint32_t offset,
                       const struct packet_payload *payload)
{
    return true;
}

static bool place_atomic(struct transport_qp *transport, uint32_t index, uint64_t original)
{
    queue_message(queue_at(transport), index)->original = original;
    return true;
}

static enum transport_status receive_begin(struct transport_qp *transport,
                                           const struct packet *packet)
{
    return carry_claim_receive(queue_at(transport), packet->srq);
}

static enum transport_status receive_place(struct transport_qp *transport, uint32_t offset,
                                           const struct packet_payload *payload)
{
    struct queue *queue = queue_at(transport);

    queue->took_payload = true;
    return (uint64_t)offset + payload->length > queue->receive_capacity ?
               TRANSPORT_LOCAL_LENGTH :
               TRANSPORT_SUCCESS;
}

static void receive_end(struct transport_qp *transport, const struct packet *last, uint32_t length)
{
    queue_at(transport)->took_receive = true;
}

static enum transport_status invalidate(struct transport_qp *transport, uint32_t key)
{
    return carry_invalidate(queue_at(transport), key) ? TRANSPORT_SUCCESS : TRANSPORT_ACCESS_ERROR;
}

static enum transport_status check_remote(struct transport_qp *transport,
                                          enum transport_access access, uint32_t key,
                                          uint64_t address, uint32_t length, uint64_t *region)
{
    *region = address;
    return carry_check_remote(queue_at(transport), access, key, address, length);
}

static enum transport_status place_write(struct transport_qp *transport, uint64_t region,
                                         uint64_t address, const struct packet_payload *payload)
{
    queue_at(transport)->took_payload = true;
    return TRANSPORT_SUCCESS;
}

static enum transport_status atomic(struct transport_qp *transport, uint64_t region,
                                    const struct packet *request, uint64_t *original)
{
    return carry_atomic(queue_at(transport), request, original);
}

static void failed(struct transport_qp *transport, enum transport_status why)
{
    struct queue *queue = queue_at(transport);
    bool arriving = queue->arriving && !queue->arriving->response;
    bool responder = why == TRANSPORT_INVALID_REQUEST || why == TRANSPORT_ACCESS_ERROR ||
                     why == TRANSPORT_OPERATIONAL_ERROR;

    /* Its receive completes with the error when its turn comes, and takes the queue pair along. */
    if (arriving && (why == TRANSPORT_LOCAL_LENGTH || why == TRANSPORT_LOCAL_PROTECTION)) {
        queue->took_receive = queue->refused_receive = true;
        transport->responder.message.receive_taken = false;
        return;
    }
    if (responder && arriving)
        qp_fail(queue->shared, why == TRANSPORT_ACCESS_ERROR ? IBV_EVENT_QP_ACCESS_ERR :
                                                               IBV_EVENT_QP_REQ_ERR);
    else
        qp_set_error(queue->shared);
    turn_wake(queue->proc, CHANGE_RECEIVED);
}

const struct transport_ops queue_transport_ops = {
    .wqe_at = wqe_at,
    .complete = complete,
    .place_read = place_read,
    .place_atomic = place_atomic,
    .receive_begin = receive_begin,
    .receive_place = receive_place,
    .receive_end = receive_end,
    .invalidate = invalidate,
    .check_remote = check_remote,
    .place_write = place_write,
    .atomic = atomic,
    .failed = failed,
};
