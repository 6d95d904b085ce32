/* SPDX-License-Identifier: BSD-2-Clause */
/* The receive engine. It processes the packets of a QP in order: it looks up the QP context,
 * fetches the receive WQE if the packet needs one, hands the packet to the transport and writes its
 * payload to memory. A QPC miss delays only its own QP. */
#include "hca/observer.h"
#include "sim/model/hca.h"
#include "sim/model/payload.h"
#include "sim/model/recv_claim.h"

#include <string.h>

enum stage {
    STAGE_NEW,
    STAGE_QPC,      /* the QP context is in the cache */
    STAGE_WQE,      /* the WQE that the packet needs was fetched */
};

static bool needs_receive(const struct sim_packet *pkt)
{
    uint16_t flags = opcode_info(pkt->packet.opcode)->flags;

    return flags & OPCODE_RECEIVE && (pkt->first || !(flags & OPCODE_SEND));
}

/* The first response to a read or atomic needs the WQE that asked for it. The adapter keeps the last
 * hca.wqe_cache of them. */
static bool needs_lost_wqe(const struct sim_packet *pkt)
{
    uint64_t kept = model->parameters.hca.wqe_cache;
    const struct sim_qp *qp = pkt->to;

    return kept && pkt->response && pkt->first && pkt->payload &&
           qp->fetched - qp->transport.requester.oldest.index > kept;
}

/* Delays the QP's packets until 'time'. Returns false if that is now. */
static bool postpone(struct sim_packet *pkt, uint64_t time, enum stage stage)
{
    if (time < pkt->to->rx_earliest)
        time = pkt->to->rx_earliest;
    pkt->to->rx_earliest = time;
    if (time <= sched->now)
        return false;
    event_at(time, EVENT_PACKET_ARRIVED, pkt, stage);
    return true;
}

static double service_of(const struct sim_packet *pkt)
{
    const struct parameters *p = &model->parameters;
    double service = 0;

    if (pkt->payload)
        service += bus_writes(p, pkt->payload) * p->hca.write_time;
    if (pkt->response) {
        service += pkt->first ? p->hca.ack_time : 0;
        return service + (needs_lost_wqe(pkt) ? p->hca.wqe_miss : 0);
    }
    if (pkt->first)
        service += p->hca.recv_time;
    if (opcode_info(pkt->packet.opcode)->flags & OPCODE_SEND && pkt->payload) {
        if (pkt->first && pkt->to->recv_num_sge > 1)
            service += (pkt->to->recv_num_sge - 1) * p->hca.recv_sge_time;
        if (p->hca.scatter_rate > 0 && pkt->to->recv_num_sge > 1)
            service += pkt->payload / p->hca.scatter_rate;
    }
    return service;
}

/* The target address of the payload, for the MTT lookup. */
static uint64_t target_address(const struct sim_packet *pkt)
{
    const struct sim_qp *qp = pkt->to;
    const struct packet *packet = &pkt->packet;
    const struct sim_wqe *asked;

    if (pkt->response) {
        asked = sim_qp_wqe(qp, qp->transport.requester.oldest.index);
        return asked ? sim_sge_address(asked->sge, asked->num_sge,
                                       packet->payload.offset - asked->transport.remote_address)
                     : 0;
    }
    if (opcode_info(packet->opcode)->flags & OPCODE_WRITE)
        return packet->remote_address + packet->payload.offset;
    return sim_sge_address(qp->recv_sge, qp->recv_num_sge, packet->payload.offset);
}

static void process(struct sim_packet *pkt)
{
    const struct parameters *p = &model->parameters;
    struct sim_qp *qp = pkt->to;
    uint64_t time = serve(&pkt->destination->receiver, sched->now, service_of(pkt));

    if (p->hca.qpc_lock_time > 0)
        time = serve(&qp->qpc_lock, time, p->hca.qpc_lock_time);
    if (time < qp->rx_earliest)
        time = qp->rx_earliest;
    qp->rx_earliest = time;
    if (pkt->payload && !qp->written_line)
        icm_prefetch(&pkt->destination->hca->icm, qp->proc, target_address(pkt));
    event_at(time, EVENT_PACKET_PROCESSED, pkt, 0);
}

/* Returns false if the packet, the first of its QP, has to wait; an event continues later. */
static bool prepare(struct sim_packet *pkt, enum stage stage)
{
    const struct parameters *p = &model->parameters;
    struct sim_hca *hca = pkt->destination->hca;

    model_set_activity(pkt->to, pkt);
    if (stage == STAGE_NEW &&
        postpone(pkt, icm_qpc(&hca->icm, &pkt->to->context, sched->now), STAGE_QPC))
        return false;
    if (stage < STAGE_WQE && needs_lost_wqe(pkt) &&
        postpone(pkt, bus_fetch_wqe(&hca->bus, sched->now, p->hca.wqe_bytes), STAGE_WQE))
        return false;
    if (stage < STAGE_WQE && needs_receive(pkt)) {
        uint64_t time;

        recv_claim_peek(pkt->to, pkt->packet.srq);
        time = bus_fetch_wqe(&hca->bus, sched->now,
                             p->hca.wqe_bytes + (pkt->to->max_recv_sge - 1) * p->hca.sge_bytes);
        if (p->hca.recv_prefetch)
            time = sched->now; /* the transfer still occupies the bus */
        if (postpone(pkt, time + ns_of(p->hca.recv_wqe_time), STAGE_WQE))
            return false;
    }
    return true;
}

static void enqueue(struct sim_packet *pkt)
{
    struct sim_qp *qp = pkt->to;

    pkt->next = NULL;
    if (qp->arrived_last)
        qp->arrived_last->next = pkt;
    else
        qp->arrived_first = pkt;
    qp->arrived_last = pkt;
}

/* Processes the first packet of a QP, and then those behind it. */
static void process_arrivals(struct sim_packet *pkt, enum stage stage)
{
    struct sim_qp *qp = pkt->to;

    while (pkt && prepare(pkt, stage)) {
        qp->arrived_first = pkt->next;
        if (!qp->arrived_first)
            qp->arrived_last = NULL;
        process(pkt);
        pkt = qp->arrived_first;
        stage = model->parameters.icm.in_order ? STAGE_QPC : STAGE_NEW; /* the context is there */
    }
}

static void arrive(struct sim_packet *pkt)
{
    struct sim_port *port = pkt->destination;

    if (model_is_ethernet() && pkt->via && !ethernet_admit(pkt, NULL))
        return;
    sim_packet_mark(pkt, MARK_ARRIVED);
    port->packets_in++;
    port->bytes_in += pkt->bytes;
    pkt->to = sim_qp_find(pkt->packet.destination_qpn);
    if (pkt->corrupted || !pkt->to || !pkt->to->receives || pkt->to->dead ||
        pkt->to->port->hca != port->hca) {
        link_return_credits(pkt);
        pkt->to = NULL;
        sim_packet_put(pkt);
        return;
    }
    pkt->to->refcount++;
    if (model_is_ethernet() && ethernet_notified(pkt)) {
        link_return_credits(pkt);
        sim_packet_put(pkt);
        return;
    }
    enqueue(pkt);
    if (pkt->to->arrived_first == pkt)
        process_arrivals(pkt, STAGE_NEW);
}

void receive_engine_arrived(struct sim_packet *pkt, uint32_t stage)
{
    if (stage == STAGE_NEW)
        arrive(pkt);
    else
        process_arrivals(pkt, stage);
}

static uint64_t write_payload(struct sim_packet *pkt)
{
    struct sim_qp *qp = pkt->to;
    struct sim_hca *hca = pkt->destination->hca;
    uint64_t time = sched->now;

    if (!pkt->payload)
        return time;
    if (!pkt->response && qp->remote_device_memory)
        return hca_memory(hca, time, pkt->payload);
    time = icm_mtt(&hca->icm, &qp->written_line,
                   &(struct icm_range){ qp->proc, target_address(pkt), pkt->payload }, time);
    if (time < qp->translated_at)
        time = qp->translated_at;
    qp->translated_at = time;
    return bus_write_payload(&hca->bus, time, target_address(pkt), pkt->payload);
}

/* A message is explained by the marks of its last packet. */
static void save_packet_marks(const struct sim_packet *last)
{
    uint64_t *marks = last->wqe->marks;

    memcpy(marks + MARK_STARTED, last->marks, sizeof(last->marks));
    marks[MARK_DELIVERED] = sched->now;
}

void receive_engine_processed(struct sim_packet *pkt)
{
    struct sim_qp *qp = pkt->to;
    struct sim_hca *hca = pkt->destination->hca;
    uint32_t expected = qp->transport.responder.expected_psn;
    uint64_t visible;

    sim_packet_mark(pkt, MARK_PROCESSED);
    link_return_credits(pkt);
    if (qp->dead) {
        sim_packet_put(pkt);
        return;
    }
    qp->transport.ops = &sim_qp_transport_ops;
    qp->accepted_payload = qp->consumed_recv = qp->recv_failed = false;
    qp->arriving = pkt;
    model_set_activity(qp, pkt);
    if (pkt->response)
        qp->response_visible_at = write_payload(pkt);
    transport_receive(&qp->transport, sched->now, &pkt->packet);
    qp->arriving = NULL;
    visible = qp->accepted_payload && !qp->recv_failed ? write_payload(pkt) : sched->now;
    if (pkt->last && pkt->wqe && expected != qp->transport.responder.expected_psn)
        save_packet_marks(pkt);
    if (!pkt->response && (pkt->last || qp->recv_failed) &&
        (qp->accepted_payload || qp->consumed_recv)) {
        if (qp->consumed_recv) {
            uint64_t told = bus_write(&hca->bus, sched->now, model->parameters.hca.cqe_bytes);

            visible = told > visible ? told : visible;
        }
        pkt->consumes_recv = qp->consumed_recv;
        visible = visible > qp->last_delivery_at ? visible : qp->last_delivery_at;
        qp->last_delivery_at = visible;
        if (unlikely(hca_observer != NULL))
            payload_show_tail(pkt);
        event_at(visible, EVENT_DELIVER, pkt, 0);
    } else {
        sim_packet_put(pkt);
    }
    sim_qp_schedule_work(qp);
    send_engine_kick(qp);
}
