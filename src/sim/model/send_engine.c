/* SPDX-License-Identifier: BSD-2-Clause */
/* The send engines. After the doorbell, the adapter fetches WQEs across the bus, unless the
 * doorbell carried them (BlueFlame). QPs with something to send wait in FIFO order for an engine.
 * The engine sends a message, or a quantum of it while other QPs wait, packet by packet: it reads
 * the payload, then hands the packet to the link. The number of packets in flight per engine
 * (hca.engine_depth) and the packet buffer (hca.buffer) bound the rate of one QP on adapters whose
 * links are faster than their engines. */
#include "sim/model/hca.h"

/* All WQEs of a send queue have the same stride and are fetched whole (mthca). */
static uint64_t wqe_fetch_bytes(const struct sim_wqe *wqe)
{
    const struct parameters *p = &model->parameters;
    uint64_t bytes = p->hca.wqe_bytes + (wqe->qp->max_send_sge - 1) * p->hca.sge_bytes;
    uint64_t inlined = p->hca.wqe_bytes + wqe->length;

    return wqe->flags & IBV_SEND_INLINE && inlined > bytes ? inlined : bytes;
}

/* A doorbell carries the WQE itself, not its whole stride. */
static uint64_t wqe_doorbell_bytes(const struct sim_wqe *wqe)
{
    const struct parameters *p = &model->parameters;

    if (wqe->flags & IBV_SEND_INLINE)
        return p->hca.wqe_bytes + wqe->length;
    return p->hca.wqe_bytes + (wqe->num_sge > 1 ? wqe->num_sge - 1 : 0) * p->hca.sge_bytes;
}

/* How many WQEs may be requested now: at most hca.wqe_prefetch ahead of the one being sent. */
static uint32_t may_request(const struct sim_qp *qp)
{
    uint32_t ahead = qp->requested - qp->transport.requester.current.index;
    uint32_t most = model->parameters.hca.wqe_prefetch;
    uint32_t waiting = qp->rung - qp->requested;

    if (ahead >= most)
        return 0;
    return waiting < most - ahead ? waiting : most - ahead;
}

static void request(struct sim_qp *qp, uint32_t count, uint64_t ready_at)
{
    if (ready_at < qp->fetched_at)
        ready_at = qp->fetched_at;
    qp->fetched_at = ready_at;
    qp->requested += count;
    qp->fetches++;
    qp->refcount++;
    event_at(ready_at, EVENT_WQE_FETCHED, qp, count);
}

/* Fetches the WQEs of a QP: hca.wqe_fetch of them in a read, and hca.wqe_fetches reads at a time.
 */
static void fetch_next(struct sim_qp *qp)
{
    const struct parameters *p = &model->parameters;
    struct sim_hca *hca = qp->port->hca;
    uint32_t count;

    if (qp->dead) /* its doorbells have not all arrived */
        return;
    while (qp->fetches < p->hca.wqe_fetches && (count = may_request(qp))) {
        uint64_t time, bytes = 0;

        if (count > p->hca.wqe_fetch)
            count = p->hca.wqe_fetch;
        for (uint32_t i = 0; i < count; i++)
            bytes += wqe_fetch_bytes(sim_qp_wqe(qp, qp->requested + i));
        model_set_activity(qp, NULL);
        time = p->icm.in_order ? sched->now : icm_qpc(&hca->icm, &qp->context, sched->now);
        request(qp, count, bus_fetch_wqe(&hca->bus, time, bytes));
    }
}

/* A WQE that the doorbell carries need not be fetched, unless earlier ones are. */
static bool take_from_doorbell(struct sim_qp *qp, const struct sim_wqe *wqe)
{
    struct sim_hca *hca = qp->port->hca;
    uint64_t bytes = wqe_doorbell_bytes(wqe), time;

    if (bytes > model->parameters.hca.blueflame || qp->fetches || may_request(qp) != 1)
        return false;
    model_set_activity(qp, NULL);
    time = bus_store(&hca->bus, sched->now, bytes);
    request(qp, 1, icm_qpc(&hca->icm, &qp->context, time));
    return true;
}

/* Where lookups are in order, a doorbell waits for its turn, and for those that ring meanwhile. */
static bool waits_for_context(struct sim_qp *qp)
{
    uint64_t time;

    if (qp->waits_for_context)
        return true;
    model_set_activity(qp, NULL);
    time = icm_qpc(&qp->port->hca->icm, &qp->context, sched->now);
    if (time <= sched->now)
        return false;
    qp->waits_for_context = true;
    qp->refcount++;
    event_at(time, EVENT_CONTEXT, qp, 0);
    return true;
}

void send_engine_context(struct sim_qp *qp)
{
    qp->waits_for_context = false;
    fetch_next(qp);
}

void send_engine_doorbell(struct sim_qp *qp, uint32_t count)
{
    if (qp->dead)
        return;
    for (uint32_t i = 0; i < count; i++)
        sim_qp_wqe(qp, qp->rung++)->marks[MARK_DOORBELL] = sched->now;
    if (count == 1 && take_from_doorbell(qp, sim_qp_wqe(qp, qp->rung - 1)))
        return;
    if (model->parameters.hca.doorbell_bytes)
        bus_store(&qp->port->hca->bus, sched->now, model->parameters.hca.doorbell_bytes);
    if (!model->parameters.icm.in_order || !waits_for_context(qp))
        fetch_next(qp);
}

void send_engine_wqe_fetched(struct sim_qp *qp, uint32_t count)
{
    qp->fetches--;
    if (qp->dead)
        return;
    for (uint32_t i = 0; i < count; i++)
        sim_qp_wqe(qp, qp->fetched++)->marks[MARK_FETCHED] = sched->now;
    fetch_next(qp);
    send_engine_kick(qp);
}

/* ---- engines ---- */

/* Pulls the next packet of a QP, or NULL. Responses go before requests. */
static struct sim_packet *pull(struct sim_qp *qp, bool *responding)
{
    uint32_t index = qp->transport.requester.current.index;
    struct packet packet;
    struct sim_packet *pkt;
    bool got;

    qp->transport.ops = &sim_qp_transport_ops;
    qp->pulled_last_wqe = NULL;
    *responding = qp->response_ready && transport_pull_response(&qp->transport, &packet);
    qp->response_ready = *responding;
    got = *responding || transport_pull_request(&qp->transport, sched->now, &packet);
    if (!got)
        return NULL;
    pkt = sim_packet_new(qp, &packet);
    if (pkt && !*responding) {
        pkt->wqe = sim_qp_wqe(qp, index);
        pkt->wqe->refcount++;
        pkt->completes_wqe = qp->pulled_last_wqe != NULL;
    }
    return pkt;
}

static bool is_idle(const struct send_engine *engine)
{
    return !engine->qp && !engine->drains;
}

static bool starts_message(const struct sim_packet *pkt)
{
    return opcode_info(pkt->packet.opcode)->flags & OPCODE_START;
}

static double wqe_service_time(const struct sim_packet *pkt)
{
    const struct parameters *p = &model->parameters;

    if (pkt->response || !pkt->wqe || !starts_message(pkt))
        return 0;
    return p->hca.wqe_time + (pkt->wqe->num_sge > 1 ? pkt->wqe->num_sge - 1 : 0) * p->hca.sge_time;
}

static struct sim_qp *pop_ready(struct sim_port *port)
{
    struct sim_qp *qp = port->ready_first;

    port->ready_first = qp->next_ready;
    if (!port->ready_first)
        port->ready_last = NULL;
    qp->is_ready = false;
    return qp;
}

/* Assigns ready QPs to idle engines. */
static void assign(struct sim_port *port)
{
    for (uint64_t i = 0; i < model->parameters.hca.engines && port->ready_first; i++) {
        struct send_engine *engine = &port->engines[i];

        while (is_idle(engine) && port->ready_first) {
            struct sim_qp *qp = pop_ready(port);
            struct sim_packet *pkt = qp->dead ? NULL : pull(qp, &engine->responding);
            uint64_t time;

            if (!pkt) {
                sim_qp_schedule_work(qp);
                sim_qp_put(qp);
                continue;
            }
            /* The engine inherits the reference of the ready list. */
            engine->qp = qp;
            qp->in_engine = true;
            engine->next_packet = pkt;
            engine->messages += starts_message(pkt);
            engine->quantum_used = 0;
            model_set_activity(qp, pkt);
            /* Where lookups are in order, the doorbell or packet has brought the context along. */
            time = model->parameters.icm.in_order
                       ? sched->now
                       : icm_qpc(&port->hca->icm, &qp->context, sched->now);
            event_at(time + ns_of(wqe_service_time(pkt)), EVENT_ENGINE, engine, 0);
        }
    }
}

/* Its rate does not allow another packet now. */
static bool is_paced(const struct sim_qp *qp)
{
    return model_is_ethernet() && dcqcn_waits(&qp->dcqcn, sched->now);
}

void send_engine_kick(struct sim_qp *qp)
{
    struct sim_port *port = qp->port;

    if (qp->is_ready || qp->in_engine || qp->draining || qp->dead ||
        (qp->waits_for_ack && !qp->response_ready))
        return;
    if (is_paced(qp)) {
        ethernet_pace(qp);
        return;
    }
    qp->is_ready = true;
    qp->next_ready = NULL;
    qp->refcount++;
    if (port->ready_last)
        port->ready_last->next_ready = qp;
    else
        port->ready_first = qp;
    port->ready_last = qp;
    assign(port);
}

/* The engine holds the QP no longer; either may go on. */
static void release_qp(struct send_engine *engine, struct sim_qp *qp)
{
    send_engine_kick(qp);
    sim_qp_put(qp);
    assign(engine->port);
}

static void finish_wqe_on_engine(struct send_engine *engine, const struct sim_packet *last)
{
    struct sim_qp *qp = engine->qp;

    if (model->parameters.hca.wait_for_ack && !engine->responding && last->wqe &&
        opcode_info(last->packet.opcode)->flags & OPCODE_SEND &&
        transport_is_reliable(&qp->transport))
        qp->waits_for_ack = true;
    engine->qp = NULL;
    qp->in_engine = false;
    if (engine->responding)
        qp->response_ready = sim_qp_may_respond(qp);
    if (model->parameters.hca.drain && engine->in_flight_packets) {
        engine->drains = qp;
        qp->draining = true;
        qp->refcount++;
    }
    fetch_next(qp);
    sim_qp_schedule_work(qp);
    release_qp(engine, qp);
}

/* Moves the QP to the end of the ready list; it continues its message later. */
static void preempt(struct send_engine *engine)
{
    struct sim_qp *qp = engine->qp;

    engine->qp = NULL;
    qp->in_engine = false;
    release_qp(engine, qp);
}

/* A waiting QP does not preempt this one if another engine, now draining, will serve it. */
static bool quantum_is_used_up(const struct send_engine *engine)
{
    uint64_t quantum = model->parameters.hca.arbitration_quantum;
    const struct sim_qp *waiting = engine->port->ready_first;

    if (!quantum || engine->quantum_used < quantum)
        return false;
    for (uint64_t i = 0; i < model->parameters.hca.engines && waiting; i++) {
        if (engine->port->engines[i].drains)
            waiting = waiting->next_ready;
    }
    return waiting;
}

static bool has_slot(const struct send_engine *engine, const struct sim_packet *pkt)
{
    const struct parameters *p = &model->parameters;
    const struct sim_hca *hca = engine->port->hca;

    if (engine->in_flight_packets >= p->hca.engine_depth)
        return false;
    return !p->hca.buffer || !hca->buffer_used || hca->buffer_used + pkt->payload <= p->hca.buffer;
}

/* The address of the payload, for the MTT lookup. */
static uint64_t payload_address(const struct sim_packet *pkt)
{
    uint64_t offset = pkt->packet.payload.offset;

    if (pkt->response || !pkt->wqe)
        return offset;
    return sim_sge_address(pkt->wqe->sge, pkt->wqe->num_sge, offset);
}

static void enqueue(struct sim_qp *qp, struct sim_packet *pkt)
{
    if (qp->sending_last)
        qp->sending_last->next_sending = pkt;
    else
        qp->sending_first = pkt;
    qp->sending_last = pkt;
}

static void start_packet(struct send_engine *engine, struct sim_packet *pkt)
{
    const struct parameters *p = &model->parameters;
    struct sim_qp *qp = engine->qp;
    struct sim_hca *hca = engine->port->hca;
    uint64_t time = sched->now;

    enqueue(qp, pkt);
    model_set_activity(qp, pkt);
    sim_packet_mark(pkt, MARK_STARTED);
    engine->in_flight_packets++;
    hca->buffer_used += pkt->payload;
    pkt->engine = engine;
    if (p->hca.qpc_lock_time > 0)
        time = serve(&qp->qpc_lock, time, p->hca.qpc_lock_time);
    if (!pkt->payload || (pkt->wqe && pkt->wqe->flags & IBV_SEND_INLINE)) {
        event_at(time, EVENT_PACKET_READY, pkt, 0);
        return;
    }
    if (pkt->response ? qp->remote_device_memory : pkt->wqe->in_device_memory) {
        event_at(hca_memory(hca, time, pkt->payload), EVENT_PACKET_READY, pkt, 0);
        return;
    }
    time = icm_mtt(&hca->icm, &qp->read_line,
                   &(struct icm_range){ qp->proc, payload_address(pkt), pkt->payload }, time);
    if (time < engine->translated_at)
        time = engine->translated_at;
    engine->translated_at = time;
    if (p->hca.engine_window) {
        double service = pkt->payload * p->bus.read_latency / p->hca.engine_window;
        uint64_t end = serve(&engine->reader, time, service);

        pkt->read_until = end + ns_of(p->bus.read_latency);
        time = end - ns_of(service) > time ? end - ns_of(service) : time;
    }
    event_at(bus_read_request(&hca->bus, time, pkt->payload), EVENT_PACKET_READ, pkt, 0);
}

void send_engine_payload_read(struct sim_packet *pkt)
{
    struct sim_hca *hca = pkt->from->port->hca;
    uint64_t time = bus_read_return(&hca->bus, sched->now, pkt->payload);

    event_at(time > pkt->read_until ? time : pkt->read_until, EVENT_PACKET_READY, pkt, 0);
}

void send_engine_step(struct send_engine *engine)
{
    struct sim_packet *pkt = engine->next_packet;
    bool responding;

    if (!has_slot(engine, pkt)) {
        engine->port->waiting_engines |= 1u << (engine - engine->port->engines);
        return;
    }
    start_packet(engine, pkt);
    engine->next_packet = NULL;
    engine->quantum_used += pkt->payload;
    if (model_is_ethernet())
        dcqcn_sent(&engine->qp->dcqcn, &model->parameters, sched->now, pkt->bytes);
    if (!pkt->last &&
        (is_paced(engine->qp) || (!engine->responding && quantum_is_used_up(engine)))) {
        preempt(engine);
        return;
    }
    if (!pkt->last && !engine->qp->dead)
        engine->next_packet = pull(engine->qp, &responding);
    if (engine->next_packet)
        event_at(sched->now + ns_of(model->parameters.hca.packet_time), EVENT_ENGINE, engine, 0);
    else
        finish_wqe_on_engine(engine, pkt);
}

/* Packets of a QP leave in order, whichever payload arrives first. */
void send_engine_packet_ready(struct sim_packet *pkt)
{
    struct sim_qp *qp = pkt->from;

    pkt->ready = true;
    while (qp->sending_first && qp->sending_first->ready) {
        struct sim_packet *first = qp->sending_first;

        qp->sending_first = first->next_sending;
        if (!qp->sending_first)
            qp->sending_last = NULL;
        link_send(qp->port, first);
    }
}

static void drained(struct send_engine *engine)
{
    struct sim_qp *qp = engine->drains;

    engine->drains = NULL;
    qp->draining = false;
    release_qp(engine, qp);
}

/* Lets engines that wait for a slot or for buffer space continue, one after the other. */
static void continue_engines(struct sim_port *port)
{
    uint32_t left = port->waiting_engines;

    while (left) {
        unsigned int number = __builtin_ctz(left);
        struct send_engine *engine = &port->engines[number];

        if (has_slot(engine, engine->next_packet)) {
            port->waiting_engines &= ~(1u << number);
            send_engine_step(engine);
        }
        left = port->waiting_engines & ~1u << number;
    }
}

static void release_slot(struct send_engine *engine)
{
    struct sim_hca *hca = engine->port->hca;

    engine->in_flight_packets--;
    for (uint32_t i = 0; i < hca->port_count; i++)
        continue_engines(&hca->ports[i]);
    if (engine->drains && !engine->in_flight_packets)
        drained(engine);
}

void send_engine_packet_left(struct sim_packet *pkt)
{
    struct send_engine *engine = pkt->engine;

    if (pkt->completes_wqe)
        sim_wqe_sent(pkt->wqe);
    if (!engine)
        return;
    pkt->engine = NULL;
    engine->port->hca->buffer_used -= pkt->payload;
    release_slot(engine);
}
