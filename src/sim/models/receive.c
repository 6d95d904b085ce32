/* The receiving half of the adapter. Packets of a queue are taken in order: its context must be there,
 * a message that needs a receive waits for the descriptor to be fetched, then the packet is looked at
 * and its payload written to memory. A queue whose context is missing holds up itself alone. */
#include "sim/carry.h"
#include "sim/models/hca.h"

enum stage {
    STAGE_NEW,
    STAGE_CONTEXT, /* the context is there */
    STAGE_REQUEST, /* the receive descriptor is there */
};

static bool needs_receive(const struct flight *flight)
{
    uint16_t flags = opcode_info(flight->packet.opcode)->flags;

    return flags & OPCODE_RECEIVE && (flight->first || !(flags & OPCODE_SEND));
}

/* The queue's packets go on at 'time', this one first. */
static bool postpone(struct flight *flight, uint64_t time, enum stage stage)
{
    if (time < flight->to->receive_ready)
        time = flight->to->receive_ready;
    flight->to->receive_ready = time;
    if (time <= world->now)
        return false;
    event_at(time, EVENT_PACKET_ARRIVED, flight, stage);
    return true;
}

static double service_of(const struct flight *flight)
{
    const struct parameters *p = &world->parameters;
    double service = 0;

    if (flight->response)
        return 0;
    if (flight->first)
        service += p->hca.receive_message;
    if (opcode_info(flight->packet.opcode)->flags & OPCODE_SEND && flight->payload) {
        if (flight->first && flight->to->receive_segments > 1)
            service += (flight->to->receive_segments - 1) * p->hca.receive_segment;
        if (p->hca.scatter_rate > 0 && flight->to->receive_segments > 1)
            service += flight->payload / p->hca.scatter_rate;
    }
    return service;
}

static void take(struct flight *flight)
{
    const struct parameters *p = &world->parameters;
    struct queue *queue = flight->to;
    uint64_t time = serve(&flight->destination->receiver, world->now, service_of(flight));

    if (p->hca.queue_lock > 0)
        time = serve(&queue->lock, time, p->hca.queue_lock);
    if (time < queue->receive_ready)
        time = queue->receive_ready;
    queue->receive_ready = time;
    event_at(time, EVENT_PACKET_TAKEN, flight, 0);
}

void receive_arrived(struct flight *flight, uint32_t stage)
{
    const struct parameters *p = &world->parameters;
    struct hca *hca = flight->destination->hca;

    if (stage == STAGE_NEW) {
        flight->destination->packets_in++;
        flight->to = queue_by_number(flight->packet.destination_qpn);
        if (!flight->to || flight->to->dead || flight->to->port->hca != hca) {
            link_credit(flight->destination, flight);
            flight->to = NULL;
            flight_drop(flight);
            return;
        }
        flight->to->users++;
        if (postpone(flight, context_queue(&hca->context, &flight->to->context, world->now),
                     STAGE_CONTEXT))
            return;
    }
    if (stage < STAGE_REQUEST && needs_receive(flight)) {
        carry_look_at_receive(flight->to, flight->packet.srq);
        uint64_t time = context_fetch(&hca->context, p->hca.request_bytes, world->now);

        if (postpone(flight, time + ns_of(p->hca.receive_request), STAGE_REQUEST))
            return;
    }
    take(flight);
}

static uint64_t write_payload(struct flight *flight)
{
    const struct parameters *p = &world->parameters;
    struct queue *queue = flight->to;
    struct hca *hca = flight->destination->hca;
    uint64_t time = world->now;

    if (!flight->payload)
        return time;
    if (!flight->response && queue->remote_device_memory)
        return time + ns_of(p->hca.memory_latency + flight->payload / p->hca.memory_rate);
    time = context_pages(&hca->context, queue->proc, flight->packet.remote_address, flight->payload,
                         time);
    return bus_write(&hca->bus, time, flight->payload);
}

void receive_taken(struct flight *flight)
{
    struct queue *queue = flight->to;
    struct hca *hca = flight->destination->hca;
    uint64_t visible;

    link_credit(flight->destination, flight);
    if (queue->dead) {
        flight_drop(flight);
        return;
    }
    queue->transport.ops = &queue_transport_ops;
    queue->took_payload = queue->took_receive = false;
    queue->arriving = flight;
    visible = write_payload(flight);
    queue->visible = visible;
    transport_receive(&queue->transport, world->now, &flight->packet);
    queue->arriving = NULL;
    if (!flight->response && flight->last && (queue->took_payload || queue->took_receive)) {
        if (queue->took_receive) {
            uint64_t told = bus_write(&hca->bus, world->now, world->parameters.hca.completion_bytes);

            visible = told > visible ? told : visible;
        }
        flight->takes_receive = queue->took_receive;
        event_at(visible, EVENT_DELIVER, flight, 0);
    } else {
        flight_drop(flight);
    }
    queue_settle(queue);
    send_kick(queue);
}
