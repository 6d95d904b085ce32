/* The receiving half of the adapter. Packets of a queue are taken in order: its context must be there,
 * a message that needs a receive waits for the descriptor to be fetched, then the packet is looked at
 * and its payload written to memory. A queue whose context is missing holds up itself alone. */
#include "sim/carry.h"
#include "sim/models/hca.h"

#include <string.h>

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

/* False: the packet, the first of its queue, waits for something. */
static bool prepare(struct flight *flight, enum stage stage)
{
    const struct parameters *p = &world->parameters;
    struct hca *hca = flight->destination->hca;

    trace_about(flight->to, flight);
    if (stage == STAGE_NEW &&
        postpone(flight, context_queue(&hca->context, &flight->to->context, world->now),
                 STAGE_CONTEXT))
        return false;
    if (stage < STAGE_REQUEST && needs_receive(flight)) {
        uint64_t time;

        carry_look_at_receive(flight->to, flight->packet.srq);
        time = bus_fetch_request(&hca->bus, world->now,
                                 p->hca.request_bytes +
                                     (flight->to->receive_entry - 1) * p->hca.segment_bytes);
        if (p->hca.receive_ahead)
            time = world->now; /* the bus had to carry it all the same */
        if (postpone(flight, time + ns_of(p->hca.receive_request), STAGE_REQUEST))
            return false;
    }
    return true;
}

static void line_up(struct flight *flight)
{
    struct queue *queue = flight->to;

    flight->next = NULL;
    if (queue->arrived_last)
        queue->arrived_last->next = flight;
    else
        queue->arrived_first = flight;
    queue->arrived_last = flight;
}

/* The first packet of a queue goes on, and then those behind it. */
static void go_on(struct flight *flight, enum stage stage)
{
    struct queue *queue = flight->to;

    while (flight && prepare(flight, stage)) {
        queue->arrived_first = flight->next;
        if (!queue->arrived_first)
            queue->arrived_last = NULL;
        take(flight);
        flight = queue->arrived_first;
        stage = STAGE_NEW;
    }
}

static void arrive(struct flight *flight)
{
    struct port *port = flight->destination;

    flight_mark(flight, MARK_ARRIVED);
    port->packets_in++;
    port->bytes_in += flight->bytes;
    flight->to = queue_by_number(flight->packet.destination_qpn);
    if (flight->spoilt || !flight->to || flight->to->dead || flight->to->port->hca != port->hca) {
        cable_give_room(flight);
        flight->to = NULL;
        flight_drop(flight);
        return;
    }
    flight->to->users++;
    line_up(flight);
    if (flight->to->arrived_first == flight)
        go_on(flight, STAGE_NEW);
}

void receive_arrived(struct flight *flight, uint32_t stage)
{
    if (stage == STAGE_NEW)
        arrive(flight);
    else
        go_on(flight, stage);
}

/* Where in memory the payload of a packet goes, for the translation. */
static uint64_t target_address(const struct flight *flight)
{
    const struct queue *queue = flight->to;
    const struct packet *packet = &flight->packet;
    const struct request *asked;

    if (flight->response) {
        asked = queue_message(queue, queue->transport.requester.oldest.index);
        return asked ? stretch_address(asked->list, asked->stretches,
                                       packet->payload.offset - asked->wqe.remote_address) :
                       0;
    }
    if (opcode_info(packet->opcode)->flags & OPCODE_WRITE)
        return packet->remote_address + packet->payload.offset;
    return stretch_address(queue->receive_list, queue->receive_segments, packet->payload.offset);
}

static uint64_t write_payload(struct flight *flight)
{
    struct queue *queue = flight->to;
    struct hca *hca = flight->destination->hca;
    uint64_t time = world->now;

    if (!flight->payload)
        return time;
    if (!flight->response && queue->remote_device_memory)
        return hca_memory(hca, time, flight->payload);
    time = context_pages(&hca->context, queue->proc, target_address(flight), flight->payload, time);
    return bus_write(&hca->bus, time, flight->payload);
}

/* The packet that ends a message tells the message how it came here. */
static void note_way(const struct flight *last)
{
    uint64_t *marks = last->message->marks;

    memcpy(marks + MARK_STARTED, last->marks, sizeof(last->marks));
    marks[MARK_DELIVERED] = world->now;
}

void receive_taken(struct flight *flight)
{
    struct queue *queue = flight->to;
    struct hca *hca = flight->destination->hca;
    uint32_t expected = queue->transport.responder.expected_psn;
    uint64_t visible;

    flight_mark(flight, MARK_TAKEN);
    cable_give_room(flight);
    if (queue->dead) {
        flight_drop(flight);
        return;
    }
    queue->transport.ops = &queue_transport_ops;
    queue->took_payload = queue->took_receive = queue->refused_receive = false;
    queue->arriving = flight;
    trace_about(queue, flight);
    if (flight->response)
        queue->visible = write_payload(flight);
    transport_receive(&queue->transport, world->now, &flight->packet);
    queue->arriving = NULL;
    visible = queue->took_payload && !queue->refused_receive ? write_payload(flight) : world->now;
    if (flight->last && flight->message && expected != queue->transport.responder.expected_psn)
        note_way(flight);
    if (!flight->response && (flight->last || queue->refused_receive) &&
        (queue->took_payload || queue->took_receive)) {
        if (queue->took_receive) {
            uint64_t told = bus_write(&hca->bus, world->now, world->parameters.hca.completion_bytes);

            visible = told > visible ? told : visible;
        }
        flight->takes_receive = queue->took_receive;
        visible = visible > queue->delivering ? visible : queue->delivering;
        queue->delivering = visible;
        event_at(visible, EVENT_DELIVER, flight, 0);
    } else {
        flight_drop(flight);
    }
    queue_settle(queue);
    send_kick(queue);
}
