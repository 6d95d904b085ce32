/* The receiving half of the adapter. Packets of a queue are taken in order: its context must be there,
 * a message that needs a receive waits for the descriptor to be fetched, then the packet is looked at
 * and its payload written to memory. A queue whose context is missing holds up itself alone. */
#include "sim/model/payload.h"
#include "sim/model/hca.h"

#include <string.h>

enum stage {
    STAGE_NEW,
    STAGE_CONTEXT, /* the context is there */
    STAGE_REQUEST, /* the receive descriptor is there */
};

static bool needs_receive(const struct sim_packet *pkt)
{
    uint16_t flags = opcode_info(pkt->packet.opcode)->flags;

    return flags & OPCODE_RECEIVE && (pkt->first || !(flags & OPCODE_SEND));
}

/* The queue's packets go on at 'time', this one first. */
static bool postpone(struct sim_packet *pkt, uint64_t time, enum stage stage)
{
    if (time < pkt->to->receive_ready)
        time = pkt->to->receive_ready;
    pkt->to->receive_ready = time;
    if (time <= sched->now)
        return false;
    event_at(time, EVENT_PACKET_ARRIVED, pkt, stage);
    return true;
}

static double service_of(const struct sim_packet *pkt)
{
    const struct parameters *p = &model->parameters;
    double service = 0;

    if (pkt->response)
        return 0;
    if (pkt->first)
        service += p->hca.recv_time;
    if (opcode_info(pkt->packet.opcode)->flags & OPCODE_SEND && pkt->payload) {
        if (pkt->first && pkt->to->receive_segments > 1)
            service += (pkt->to->receive_segments - 1) * p->hca.recv_sge_time;
        if (p->hca.scatter_rate > 0 && pkt->to->receive_segments > 1)
            service += pkt->payload / p->hca.scatter_rate;
    }
    return service;
}

static void take(struct sim_packet *pkt)
{
    const struct parameters *p = &model->parameters;
    struct sim_qp *qp = pkt->to;
    uint64_t time = serve(&pkt->destination->receiver, sched->now, service_of(pkt));

    if (p->hca.qpc_lock_time > 0)
        time = serve(&qp->lock, time, p->hca.qpc_lock_time);
    if (time < qp->receive_ready)
        time = qp->receive_ready;
    qp->receive_ready = time;
    event_at(time, EVENT_PACKET_TAKEN, pkt, 0);
}

/* False: the packet, the first of its queue, waits for something. */
static bool prepare(struct sim_packet *pkt, enum stage stage)
{
    const struct parameters *p = &model->parameters;
    struct sim_hca *hca = pkt->destination->hca;

    model_works_for(pkt->to, pkt);
    if (stage == STAGE_NEW &&
        postpone(pkt, icm_qpc(&hca->icm, &pkt->to->qpc, sched->now),
                 STAGE_CONTEXT))
        return false;
    if (stage < STAGE_REQUEST && needs_receive(pkt)) {
        uint64_t time;

        recv_claim_peek(pkt->to, pkt->packet.srq);
        time = bus_fetch_wqe(&hca->bus, sched->now,
                                 p->hca.wqe_bytes +
                                     (pkt->to->receive_entry - 1) * p->hca.sge_bytes);
        if (p->hca.recv_prefetch)
            time = sched->now; /* the bus had to carry it all the same */
        if (postpone(pkt, time + ns_of(p->hca.recv_wqe_time), STAGE_REQUEST))
            return false;
    }
    return true;
}

static void line_up(struct sim_packet *pkt)
{
    struct sim_qp *qp = pkt->to;

    pkt->next = NULL;
    if (qp->arrived_last)
        qp->arrived_last->next = pkt;
    else
        qp->arrived_first = pkt;
    qp->arrived_last = pkt;
}

/* The first packet of a queue goes on, and then those behind it. */
static void go_on(struct sim_packet *pkt, enum stage stage)
{
    struct sim_qp *qp = pkt->to;

    while (pkt && prepare(pkt, stage)) {
        qp->arrived_first = pkt->next;
        if (!qp->arrived_first)
            qp->arrived_last = NULL;
        take(pkt);
        pkt = qp->arrived_first;
        stage = STAGE_NEW;
    }
}

static void arrive(struct sim_packet *pkt)
{
    struct sim_port *port = pkt->destination;

    sim_packet_mark(pkt, MARK_ARRIVED);
    port->packets_in++;
    port->bytes_in += pkt->bytes;
    pkt->to = sim_qp_find(pkt->packet.destination_qpn);
    if (pkt->spoilt || !pkt->to || pkt->to->dead || pkt->to->port->hca != port->hca) {
        link_return_credits(pkt);
        pkt->to = NULL;
        sim_packet_put(pkt);
        return;
    }
    pkt->to->users++;
    line_up(pkt);
    if (pkt->to->arrived_first == pkt)
        go_on(pkt, STAGE_NEW);
}

void receive_engine_arrived(struct sim_packet *pkt, uint32_t stage)
{
    if (stage == STAGE_NEW)
        arrive(pkt);
    else
        go_on(pkt, stage);
}

/* Where in memory the payload of a packet goes, for the translation. */
static uint64_t target_address(const struct sim_packet *pkt)
{
    const struct sim_qp *qp = pkt->to;
    const struct packet *packet = &pkt->packet;
    const struct sim_wqe *asked;

    if (pkt->response) {
        asked = sim_qp_wqe(qp, qp->transport.requester.oldest.index);
        return asked ? sim_sge_address(asked->list, asked->num_sge,
                                       packet->payload.offset - asked->transport.remote_address) :
                       0;
    }
    if (opcode_info(packet->opcode)->flags & OPCODE_WRITE)
        return packet->remote_address + packet->payload.offset;
    return sim_sge_address(qp->receive_list, qp->receive_segments, packet->payload.offset);
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
    time = icm_mtt(&hca->icm, qp->proc, target_address(pkt), pkt->payload, time);
    return bus_write(&hca->bus, time, pkt->payload);
}

/* The packet that ends a message tells the message how it came here. */
static void note_way(const struct sim_packet *last)
{
    uint64_t *marks = last->wqe->marks;

    memcpy(marks + MARK_STARTED, last->marks, sizeof(last->marks));
    marks[MARK_DELIVERED] = sched->now;
}

void receive_engine_taken(struct sim_packet *pkt)
{
    struct sim_qp *qp = pkt->to;
    struct sim_hca *hca = pkt->destination->hca;
    uint32_t expected = qp->transport.responder.expected_psn;
    uint64_t visible;

    sim_packet_mark(pkt, MARK_TAKEN);
    link_return_credits(pkt);
    if (qp->dead) {
        sim_packet_put(pkt);
        return;
    }
    qp->transport.ops = &sim_qp_transport_ops;
    qp->took_payload = qp->took_receive = qp->refused_receive = false;
    qp->arriving = pkt;
    model_works_for(qp, pkt);
    if (pkt->response)
        qp->visible = write_payload(pkt);
    transport_receive(&qp->transport, sched->now, &pkt->packet);
    qp->arriving = NULL;
    visible = qp->took_payload && !qp->refused_receive ? write_payload(pkt) : sched->now;
    if (pkt->last && pkt->wqe && expected != qp->transport.responder.expected_psn)
        note_way(pkt);
    if (!pkt->response && (pkt->last || qp->refused_receive) &&
        (qp->took_payload || qp->took_receive)) {
        if (qp->took_receive) {
            uint64_t told = bus_write(&hca->bus, sched->now, model->parameters.hca.cqe_bytes);

            visible = told > visible ? told : visible;
        }
        pkt->takes_receive = qp->took_receive;
        visible = visible > qp->delivering ? visible : qp->delivering;
        qp->delivering = visible;
        event_at(visible, EVENT_DELIVER, pkt, 0);
    } else {
        sim_packet_put(pkt);
    }
    sim_qp_settle(qp);
    send_engine_kick(qp);
}
