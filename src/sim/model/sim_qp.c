/* SPDX-License-Identifier: BSD-2-Clause */
/* Modelled QPs: posting and completing WQEs, and the callbacks of the transport. The engines, the
 * bus and the links decide when; this file does the work. */
#include "sim/model/hca.h"

#include "hca/cq.h"
#include "hca/engine.h"
#include "hca/epoch.h"
#include "hca/mr.h"
#include "hca/mw.h"
#include "hca/proc.h"
#include "hca/qp.h"
#include "hca/rq.h"
#include "sim/model/payload.h"
#include "sim/model/recv_claim.h"
#include "sim/sched/sched.h"
#include "transport/verbs/work.h"
#include "util/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- lookup and creation ---- */

struct sim_qp **sim_qp_slot(uint32_t qpn)
{
    return &model->qp_table[qpn & ((1u << model->qp_index_bits) - 1)];
}

struct sim_qp *sim_qp_find(uint32_t qpn)
{
    struct sim_qp *qp = *sim_qp_slot(qpn);

    return qp && qp->qpn == qpn ? qp : NULL;
}

static void start_transport(struct sim_qp *qp, const struct hca_qp *hqp)
{
    struct transport_attributes attributes = work_attributes(hqp, model->parameters.link.mtu);

    attributes.window = SIM_QP_WINDOW;
    attributes.ack_every = SIM_QP_ACK_EVERY;
    attributes.resources = qp->resources;
    attributes.counters = &model->counters;
    transport_init(&qp->transport, &sim_qp_transport_ops, &attributes);
}

static bool make_ring(struct sim_qp *qp, uint32_t depth)
{
    uint32_t size = round_up_pow2(depth ? depth : 1);

    if (qp->ring && qp->mask + 1 >= size)
        return true;
    qp->ring = pool_alloc_permanent((uint64_t)size * sizeof(*qp->ring));
    qp->mask = size - 1;
    return qp->ring != NULL;
}

static struct sim_qp *create(struct hca_qp *hqp)
{
    struct sim_qp *qp = pool_take(&model->qps);
    struct sim_wqe **ring;
    uint32_t mask;

    if (!qp)
        return NULL;
    ring = qp->ring;
    mask = qp->mask;
    memset(qp, 0, sizeof(*qp));
    qp->ring = ring;
    qp->mask = mask;
    qp->refcount = 1;
    qp->shared = hqp->shared;
    qp->qpn = hqp->ibv.qp_num;
    qp->proc = proc_self;
    qp->process = proc_word(proc_self);
    qp->hca_qp = (uintptr_t)hqp;
    qp->srqn = hqp->shared->srqn;
    qp->max_send_sge = hqp->cap.max_send_sge ? hqp->cap.max_send_sge : 1;
    qp->max_recv_sge = hqp->cap.max_recv_sge ? hqp->cap.max_recv_sge : 1;
    qp->port = hca_port_by_lid(hqp->shared->lid);
    qp->send_cq = hqp->ibv.send_cq ? ((struct hca_cq *)hqp->ibv.send_cq)->shared : NULL;
    if (!qp->port || !make_ring(qp, hqp->cap.max_send_wr)) {
        pool_give(&model->qps, qp);
        return NULL;
    }
    *sim_qp_slot(qp->qpn) = qp;
    return qp;
}

void sim_qp_begin_to_receive(struct sim_qp *qp)
{
    qp->context.number = icm_new_context(&qp->port->hca->icm);
    qp->receives = true;
}

struct sim_qp *sim_qp_get(struct hca_qp *hqp)
{
    struct sim_qp *qp = sim_qp_find(hqp->ibv.qp_num);

    if (!qp && (qp = create(hqp)))
        sim_qp_begin_to_receive(qp);
    return qp;
}

static void ring(struct sim_qp *qp)
{
    uint32_t count = qp->posted - qp->announced;

    if (!count)
        return;
    qp->announced = qp->posted;
    qp->refcount++;
    sched_event(sched_now() + ns_of(model->parameters.bus.doorbell_latency), EVENT_DOORBELL, qp,
                count);
}

void sim_qp_ring(struct hca_qp *hqp)
{
    struct sim_qp *qp = sim_qp_find(hqp->ibv.qp_num);

    if (qp && qp_state(hqp) != IBV_QPS_SQD)
        ring(qp);
}

void sim_qp_hide_receives(struct sim_qp *qp, uint32_t count)
{
    if (!sched_is_ahead())
        return;
    qp->hidden_receives += count;
    qp->refcount++;
    sched_event(sched_now(), EVENT_RECEIVES_POSTED, qp, count);
}

/* A process may be ahead of the time at which its QP receives, not of others' packets. */
static void prepare_to_receive(struct hca_qp *hqp)
{
    struct sim_qp *qp = create(hqp);

    if (!qp)
        return;
    qp->peer_lid = hqp->dest_lid;
    qp->sl = hqp->attr.ah_attr.sl;
    start_transport(qp, hqp);
    qp->refcount++;
    sched_event(sched_now(), EVENT_QP_READY, qp, 0);
}

/* The transport starts in RTR; its send attributes are only known in RTS. */
static void prepare_to_send(struct hca_qp *hqp)
{
    struct sim_qp *qp = sim_qp_get(hqp);
    struct responder kept;

    if (!qp)
        return;
    qp->peer_lid = hqp->dest_lid;
    qp->sl = hqp->attr.ah_attr.sl;
    qp->port = hca_port_by_lid(hqp->shared->lid);
    kept = qp->transport.responder;
    start_transport(qp, hqp);
    qp->transport.responder = kept;
    qp->posted = qp->announced = qp->rung = qp->requested = qp->fetched = qp->completed =
        qp->transport.requester.current.index;
}

void sim_qp_modified(struct hca_qp *hqp, enum ibv_qp_state from, enum ibv_qp_state to)
{
    if (to == IBV_QPS_RTR)
        prepare_to_receive(hqp);
    else if (from == IBV_QPS_SQD)
        sim_qp_ring(hqp);
    else
        prepare_to_send(hqp);
}

void sim_qp_put(struct sim_qp *qp)
{
    if (--qp->refcount)
        return;
    pool_give(&model->qps, qp);
}

void sim_wqe_put(struct sim_wqe *wqe)
{
    if (--wqe->refcount)
        return;
    if (unlikely(model_observer.wqe_done != NULL))
        model_observer.wqe_done(wqe);
    payload_drop_snapshot(wqe);
    sim_qp_put(wqe->qp);
    pool_give(&model->wqes, wqe);
}

/* ---- posting ---- */

/* Copies inline data or resolves the SGEs. Returns false if an lkey is invalid. */
static bool copy_sge_list(struct hca_qp *hqp, const struct send_wqe *swqe, struct sim_wqe *wqe)
{
    uint32_t inlined = 0;

    for (uint32_t i = 0; i < swqe->num_sge; i++) {
        const struct ibv_sge *sge = &swqe->sge[i];
        struct mem_ref ref;

        if (!sge->length)
            continue;
        if (swqe->flags & IBV_SEND_INLINE) {
            memcpy(wqe->inline_data + inlined, (void *)(uintptr_t)sge->addr, sge->length);
            inlined += sge->length;
        } else {
            if (!mr_local(sge->lkey, hqp->pd->id, sge->addr, sge->length, !work_reads_memory(swqe),
                          &ref))
                return false;
            wqe->in_device_memory |= ref.kind == MEM_SEGMENT;
            wqe->sge[wqe->num_sge++] = (struct sim_sge){ ref.addr, sge->length, ref.kind };
        }
        wqe->length += sge->length;
    }
    return true;
}

static struct sim_wqe *new_wqe(struct sim_qp *qp, struct hca_qp *hqp, const struct send_wqe *swqe,
                               bool *good)
{
    struct sim_wqe *wqe = pool_take(&model->wqes);

    if (!wqe)
        return NULL;
    memset(wqe, 0, offsetof(struct sim_wqe, sge));
    wqe->refcount = 1;
    wqe->qp = qp;
    qp->refcount++;
    wqe->wr_id = swqe->wr_id;
    wqe->sq_index = swqe->sq_index;
    wqe->flags = swqe->flags;
    wqe->opcode = swqe->opcode;
    wqe->sl = swqe->sl;
    wqe->dlid = swqe->dlid;
    wqe->has_grh = swqe->has_grh;
    wqe->dgid = swqe->dgid;
    wqe->marks[MARK_POSTED] = sched_now();
    *good = copy_sge_list(hqp, swqe, wqe);
    wqe->transport = work_request(swqe, wqe->length);
    wqe->transport.data = (uintptr_t)wqe;
    return wqe;
}

/* An atomic returns exactly 8 bytes. */
static bool length_is_valid(const struct sim_wqe *wqe)
{
    return wqe->transport.operation < TRANSPORT_COMPARE_SWAP || wqe->length == sizeof(uint64_t);
}

/* Completes a WQE that never reaches the network: a bind, an invalidate, or one that fails here. */
static void complete_locally(struct hca_qp *hqp, const struct send_wqe *swqe,
                             enum ibv_wc_status status)
{
    sched_sync();
    if (status != IBV_WC_SUCCESS)
        qp_set_error(hqp->shared);
    qp_complete_send(hqp, swqe, status, 0);
}

void sim_qp_post(struct hca_qp *hqp, const struct send_wqe *swqe, uint64_t called_at)
{
    bool sends = qp_state(hqp) == IBV_QPS_RTS || qp_state(hqp) == IBV_QPS_SQD;
    struct sim_qp *qp = sends ? sim_qp_get(hqp) : sim_qp_find(hqp->ibv.qp_num);
    struct sim_wqe *wqe;
    bool good;

    /* If earlier WQEs are still to be flushed, this one joins them. */
    if (!sends && !qp) {
        sched_sync();
        qp_complete_send(hqp, swqe, IBV_WC_WR_FLUSH_ERR, 0);
        return;
    }
    if (swqe->opcode == IBV_WR_BIND_MW || swqe->opcode == IBV_WR_LOCAL_INV) {
        sched_sync();
        complete_locally(hqp, swqe,
                         swqe->opcode == IBV_WR_BIND_MW ? mw_bind(hqp, swqe)
                                                        : mw_invalidate(hqp, swqe));
        return;
    }
    wqe = qp ? new_wqe(qp, hqp, swqe, &good) : NULL;
    if (!wqe) {
        complete_locally(hqp, swqe, IBV_WC_GENERAL_ERR);
        return;
    }
    if (sends && (!good || !length_is_valid(wqe))) {
        sim_wqe_put(wqe);
        complete_locally(hqp, swqe, good ? IBV_WC_LOC_LEN_ERR : IBV_WC_LOC_PROT_ERR);
        return;
    }
    wqe->marks[MARK_CALLED] = called_at;
    qp->ring[qp->posted++ & qp->mask] = wqe;
}

/* ---- completing ---- */

static void queue_cqe(struct sim_wqe *wqe, uint8_t status)
{
    struct sim_qp *qp = wqe->qp;
    struct sim_cqe_list *list = &model->cqe_lists[qp->proc];
    struct sim_cqe *cqe = pool_take(&model->cqes);

    if (!cqe)
        return;
    *cqe = (struct sim_cqe){ .hca_qp = qp->hca_qp,
                             .wr_id = wqe->wr_id,
                             .sq_index = wqe->sq_index,
                             .byte_len = wqe->length,
                             .flags = wqe->flags,
                             .opcode = wqe->opcode,
                             .status = status };
    if (list->last)
        list->last->next = cqe;
    else
        list->first = cqe;
    list->last = cqe;
}

bool sim_qp_has_cqes(void)
{
    return model->cqe_lists[proc_self].first;
}

void sim_qp_drain_cqes(void)
{
    struct sim_cqe_list *list = &model->cqe_lists[proc_self];

    while (list->first) {
        struct sim_cqe *cqe = list->first;
        struct send_wqe swqe = { .wr_id = cqe->wr_id,
                                 .sq_index = cqe->sq_index,
                                 .flags = cqe->flags,
                                 .opcode = cqe->opcode };

        list->first = cqe->next;
        if (!list->first)
            list->last = NULL;
        if (cqe->hca_qp)
            qp_complete_send((struct hca_qp *)(uintptr_t)cqe->hca_qp, &swqe, cqe->status,
                             cqe->byte_len);
        pool_give(&model->cqes, cqe);
    }
}

static bool returns_data(const struct sim_wqe *wqe)
{
    return wqe->transport.operation >= TRANSPORT_READ;
}

static void done_list_add(struct sim_wqe *wqe, enum transport_status status)
{
    struct sim_qp *qp = wqe->qp;

    wqe->status = status;
    if (qp->done_last)
        qp->done_last->next_done = wqe;
    else
        qp->done_first = wqe;
    qp->done_last = wqe;
}

static void done_list_remove(struct sim_wqe *wqe)
{
    struct sim_qp *qp = wqe->qp;
    struct sim_wqe **link = &qp->done_first, *before = NULL;

    while (*link != wqe) {
        before = *link;
        link = &before->next_done;
    }
    *link = wqe->next_done;
    if (qp->done_last == wqe)
        qp->done_last = before;
    wqe->reported = true;
}

/* Makes the completion visible to its process. */
static void report_completion(struct sim_wqe *wqe)
{
    struct sim_qp *qp = wqe->qp;
    uint8_t status = work_status(wqe->status);
    enum sched_change change = CHANGE_COMPLETION;

    wqe->marks[MARK_COMPLETED] = sched->now;
    done_list_remove(wqe);
    if (qp->owner) {
        qp->owner->completed(wqe);
        return;
    }
    if (qp->dead || !proc_word_alive(qp->process))
        return;
    if (status == IBV_WC_SUCCESS && returns_data(wqe))
        status = payload_read_response(wqe);
    payload_snapshot(wqe);
    if (wqe->flags & IBV_SEND_SIGNALED || status != IBV_WC_SUCCESS) {
        queue_cqe(wqe, status);
        if (qp->send_cq && qp->send_cq->has_channel) {
            cq_fire(qp->send_cq, 0, status);
            change = CHANGE_SENT;
        }
    }
    sched_wake(qp->proc, change, qp->send_cq);
}

/* The transport has completed the WQE; its CQE crosses the bus next. */
static void finish_wqe(struct sim_wqe *wqe)
{
    struct sim_qp *qp = wqe->qp;
    bool visible = wqe->flags & IBV_SEND_SIGNALED || wqe->status != TRANSPORT_SUCCESS;
    uint64_t time = sched->now;

    wqe->marks[MARK_ACKED] = wqe->marks[MARK_COMPLETED] = time;
    if (wqe->reported) {
        sim_wqe_put(wqe);
        return;
    }
    if (!visible && !returns_data(wqe)) {
        done_list_remove(wqe);
        payload_snapshot(wqe);
        sim_wqe_put(wqe);
        return;
    }
    model_set_activity(qp, NULL);
    if (visible)
        time = bus_write(&qp->port->hca->bus, time, model->parameters.hca.cqe_bytes);
    if (returns_data(wqe) && time < qp->response_visible_at)
        time = qp->response_visible_at;
    if (time < qp->completed_at)
        time = qp->completed_at;
    qp->completed_at = time;
    event_at(time, EVENT_COMPLETE, wqe, 0);
}

void sim_wqe_sent(struct sim_wqe *wqe)
{
    finish_wqe(wqe);
}

void sim_qp_complete(struct sim_wqe *wqe)
{
    if (!wqe->reported)
        report_completion(wqe);
    sim_wqe_put(wqe);
}

/* ---- events around the transport ---- */

static void send_responses(struct sim_qp *qp)
{
    struct packet packet;

    while (transport_pull_response(&qp->transport, &packet)) {
        struct sim_packet *pkt = sim_packet_new(qp, &packet);

        if (pkt)
            link_send(qp->port, pkt);
    }
}

/* When the next response has its result. */
static uint64_t next_response_at(const struct sim_qp *qp)
{
    uint64_t done = qp->atomic_done_at[responder_next(&qp->transport)];

    return done > sched->now ? done : sched->now;
}

bool sim_qp_may_respond(const struct sim_qp *qp)
{
    return transport_has_response(&qp->transport) &&
           (!qp->transport.responder.pending || next_response_at(qp) <= sched->now);
}

static void acknowledge(struct sim_qp *qp)
{
    if (qp->translated_at <= sched->now) {
        send_responses(qp);
    } else if (!qp->ack_scheduled) {
        qp->ack_scheduled = true;
        qp->refcount++;
        event_at(qp->translated_at, EVENT_ACK, qp, 0);
    }
}

void sim_qp_schedule_work(struct sim_qp *qp)
{
    uint64_t deadline;

    if (qp->dead)
        return;
    qp->transport.ops = &sim_qp_transport_ops;
    if (transport_has_response(&qp->transport) && !qp->response_ready) {
        if (!qp->transport.responder.pending) {
            acknowledge(qp);
        } else if (!qp->response_scheduled) {
            qp->response_scheduled = true;
            qp->refcount++;
            event_at(next_response_at(qp) + ns_of(model->parameters.hca.read_response),
                     EVENT_RESPOND, qp, 0);
        }
    }
    if (qp->waits_for_ack && !qp->transport.requester.in_flight && !qp->ack_event_scheduled) {
        qp->ack_event_scheduled = true;
        qp->refcount++;
        event_at(sched->now + ns_of(model->parameters.hca.ack_turnaround), EVENT_ACK_TURNAROUND, qp,
                 0);
    }
    deadline = transport_deadline(&qp->transport);
    if (deadline != TRANSPORT_NEVER && (!qp->timer_at || deadline < qp->timer_at)) {
        qp->timer_at = deadline > sched->now ? deadline : sched->now;
        qp->refcount++;
        event_at(qp->timer_at, EVENT_TIMEOUT, qp, 0);
    }
}

void sim_qp_respond(struct sim_qp *qp)
{
    qp->response_scheduled = false;
    qp->response_ready = true;
    send_engine_kick(qp);
}

void sim_qp_ack(struct sim_qp *qp)
{
    qp->ack_scheduled = false;
    sim_qp_schedule_work(qp);
}

void sim_qp_ack_turnaround_done(struct sim_qp *qp)
{
    qp->ack_event_scheduled = false;
    qp->waits_for_ack = false;
    send_engine_kick(qp);
}

void sim_qp_timeout(struct sim_qp *qp, uint64_t event_time)
{
    if (qp->dead || event_time != qp->timer_at)
        return;
    qp->timer_at = 0;
    qp->transport.ops = &sim_qp_transport_ops;
    if (transport_deadline(&qp->transport) <= sched->now)
        transport_timeout(&qp->transport, sched->now);
    sim_qp_schedule_work(qp);
    send_engine_kick(qp);
}

/* ---- flush and destroy ---- */

/* Pending CQEs of a destroyed QP are dropped. */

static void detach_cqes(struct hca_qp *hqp)
{
    for (struct sim_cqe *cqe = model->cqe_lists[proc_self].first; cqe; cqe = cqe->next) {
        if (cqe->hca_qp == (uintptr_t)hqp)
            cqe->hca_qp = 0;
    }
}

void sim_qp_flush(struct hca_qp *hqp)
{
    struct sim_qp *qp = sim_qp_find(hqp->ibv.qp_num);
    bool flushes = qp_state(hqp) == IBV_QPS_ERR;

    if (!qp)
        return;
    qp->transport.ops = &sim_qp_transport_ops;
    if (flushes) {
        /* Regular completions come before flush errors. */
        while (qp->done_first)
            report_completion(qp->done_first);
        transport_stop(&qp->transport);
        qp->fetched = qp->requested = qp->posted;
        transport_flush(&qp->transport);
        sim_qp_drain_cqes();
    }
    recv_claim_cancel(qp);
    while (qp->completed != qp->posted)
        sim_wqe_put(sim_qp_wqe(qp, qp->completed++));
    qp->dead = true;
    icm_free_context(&qp->port->hca->icm, qp->context.number);
    *sim_qp_slot(qp->qpn) = NULL;
    sim_qp_put(qp);
    if (!flushes)
        detach_cqes(hqp);
}

/* ---- callbacks of the transport ---- */

static struct sim_qp *sim_qp_of(struct transport_qp *transport)
{
    return container_of(transport, struct sim_qp, transport);
}

static const struct transport_wqe *wqe_at(struct transport_qp *transport, uint32_t index)
{
    struct sim_qp *qp = sim_qp_of(transport);

    if ((int32_t)(index - qp->fetched) >= 0)
        return NULL;
    return &sim_qp_wqe(qp, index)->transport;
}

static void complete(struct transport_qp *transport, uint32_t index, enum transport_status status)
{
    struct sim_qp *qp = sim_qp_of(transport);
    struct sim_wqe *wqe = sim_qp_wqe(qp, index);

    qp->completed = index + 1;
    if (status == TRANSPORT_FLUSHED) {
        wqe->status = status;
        queue_cqe(wqe, work_status(status));
        sim_wqe_put(wqe);
        return;
    }
    done_list_add(wqe, status);
    if (!transport_is_reliable(transport) && status == TRANSPORT_SUCCESS) {
        /* Its last packet was just pulled; the WQE completes when that packet has left. */
        qp->pulled_last_wqe = wqe;
        return;
    }
    finish_wqe(wqe);
}

static bool place_read(struct transport_qp *transport, uint32_t index, uint32_t offset,
                       const struct packet_payload *payload)
{
    return true;
}

static bool place_atomic(struct transport_qp *transport, uint32_t index, uint64_t original)
{
    sim_qp_wqe(sim_qp_of(transport), index)->original = original;
    return true;
}

static enum transport_status receive_begin(struct transport_qp *transport,
                                           const struct packet *packet)
{
    return recv_claim_take(sim_qp_of(transport), packet->srq);
}

static enum transport_status receive_place(struct transport_qp *transport, uint32_t offset,
                                           const struct packet_payload *payload)
{
    struct sim_qp *qp = sim_qp_of(transport);

    qp->accepted_payload = true;
    return work_check_receive(qp->recv_capacity, (uint64_t)offset + payload->length);
}

static void receive_end(struct transport_qp *transport, const struct packet *last, uint32_t length)
{
    sim_qp_of(transport)->consumed_recv = true;
}

static enum transport_status invalidate(struct transport_qp *transport, uint32_t key)
{
    return payload_invalidate(sim_qp_of(transport), key) ? TRANSPORT_SUCCESS
                                                         : TRANSPORT_ACCESS_ERROR;
}

static enum transport_status check_remote(struct transport_qp *transport,
                                          enum transport_access access, uint32_t key,
                                          uint64_t address, uint32_t length, uint64_t *region)
{
    *region = address;
    return payload_check_remote(sim_qp_of(transport), access, key, address, length);
}

static enum transport_status place_write(struct transport_qp *transport, uint64_t region,
                                         uint64_t address, const struct packet_payload *payload)
{
    sim_qp_of(transport)->accepted_payload = true;
    return TRANSPORT_SUCCESS;
}

static enum transport_status atomic(struct transport_qp *transport, uint64_t region,
                                    const struct packet *wqe, uint64_t *original)
{
    struct sim_qp *qp = sim_qp_of(transport);

    qp->atomic_done_at[transport->responder.oldest] =
        hca_atomic(qp, wqe->remote_address, sched->now);
    return payload_atomic(qp, wqe, original);
}

static void failed(struct transport_qp *transport, enum transport_status why)
{
    struct sim_qp *qp = sim_qp_of(transport);
    bool arriving = qp->arriving && !qp->arriving->response;
    bool responder = why == TRANSPORT_INVALID_REQUEST || why == TRANSPORT_ACCESS_ERROR ||
                     why == TRANSPORT_OPERATIONAL_ERROR;

    if (qp->owner) {
        qp->owner->failed(qp, why);
        return;
    }
    /* The receive completes with an error when it is delivered, which also fails the QP. */
    if (arriving && (why == TRANSPORT_LOCAL_LENGTH || why == TRANSPORT_LOCAL_PROTECTION)) {
        qp->consumed_recv = qp->recv_failed = true;
        transport->responder.message.receive_taken = false;
        return;
    }
    if (responder && arriving)
        work_fail_responder(qp->shared, why);
    else
        qp_set_error(qp->shared);
    sched_wake(qp->proc, CHANGE_RECEIVED, NULL);
}

const struct transport_ops sim_qp_transport_ops = {
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
