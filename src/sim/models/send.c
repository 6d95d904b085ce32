/* The sending half of the adapter. A work request is fetched across the bus after the doorbell; queues
 * with something to send wait in turn for an engine, which sends one message at a time, or some of it
 * while others wait, packet by packet: fetch the payload, then hand it to the link. That an engine's packets are limited in
 * number, and all of them by a buffer, is what bounds one queue's rate on adapters whose links are
 * faster than their engines; the adapter files say which. */
#include "sim/models/hca.h"

/* Entries of a queue are of one size, and fetched whole (mthca: the stride of its work requests). */
static uint64_t request_bytes(const struct request *message)
{
    const struct parameters *p = &world->parameters;
    uint64_t bytes = p->hca.request_bytes + (message->queue->send_entry - 1) * p->hca.segment_bytes;
    uint64_t inlined = p->hca.request_bytes + message->length;

    return message->flags & IBV_SEND_INLINE && inlined > bytes ? inlined : bytes;
}

/* One request of a queue is fetched at a time, and only a few ahead of the one being sent. */
static void fetch_next(struct queue *queue)
{
    struct hca *hca = queue->port->hca;
    uint32_t ahead = queue->fetched - queue->transport.requester.current.index;
    uint64_t time = world->now;

    if (queue->fetching || queue->fetched == queue->rung ||
        ahead >= world->parameters.hca.request_window)
        return;
    queue->fetching = true;
    trace_about(queue, NULL);
    time = context_queue(&hca->context, &queue->context, time);
    time = bus_fetch_request(&hca->bus, time, request_bytes(queue_message(queue, queue->fetched)));
    queue->users++;
    event_at(time, EVENT_REQUEST_FETCHED, queue, 0);
}

void send_rung(struct queue *queue)
{
    if (queue->dead)
        return;
    queue_message(queue, queue->rung++)->marks[MARK_RUNG] = world->now;
    fetch_next(queue);
}

void send_fetched(struct queue *queue)
{
    queue->fetching = false;
    if (queue->dead)
        return;
    queue_message(queue, queue->fetched++)->marks[MARK_FETCHED] = world->now;
    fetch_next(queue);
    send_kick(queue);
}

/* ---- engines ---- */

/* The next packet of a queue, or NULL. Answers go before requests. */
static struct flight *pull(struct queue *queue, bool *responding)
{
    uint32_t index = queue->transport.requester.current.index;
    struct packet packet;
    struct flight *flight;
    bool got;

    queue->transport.ops = &queue_transport_ops;
    queue->pulled_over = NULL;
    *responding = queue->has_response && transport_pull_response(&queue->transport, &packet);
    queue->has_response = *responding;
    got = *responding || transport_pull_request(&queue->transport, world->now, &packet);
    if (!got)
        return NULL;
    flight = flight_new(queue, &packet);
    if (flight && !*responding) {
        flight->message = queue_message(queue, index);
        flight->message->users++;
        flight->ends_message = queue->pulled_over != NULL;
    }
    return flight;
}

static bool is_idle(const struct engine *engine)
{
    return !engine->queue && !engine->waits_for_drain;
}

static bool begins_message(const struct flight *flight)
{
    return opcode_info(flight->packet.opcode)->flags & OPCODE_START;
}

static double message_service(const struct flight *flight)
{
    const struct parameters *p = &world->parameters;

    if (flight->response || !flight->message || !begins_message(flight))
        return 0;
    return p->hca.message +
           (flight->message->stretches > 1 ? flight->message->stretches - 1 : 0) * p->hca.segment;
}

static struct queue *pop_ready(struct port *port)
{
    struct queue *queue = port->ready_first;

    port->ready_first = queue->next_ready;
    if (!port->ready_first)
        port->ready_last = NULL;
    queue->is_ready = false;
    return queue;
}

/* Gives waiting queues to idle engines. */
static void assign(struct port *port)
{
    for (uint64_t i = 0; i < world->parameters.hca.engines && port->ready_first; i++) {
        struct engine *engine = &port->engines[i];

        while (is_idle(engine) && port->ready_first) {
            struct queue *queue = pop_ready(port);
            struct flight *flight = queue->dead ? NULL : pull(queue, &engine->responding);
            uint64_t time;

            if (!flight) {
                queue_settle(queue);
                queue_release(queue);
                continue;
            }
            /* The reference of the list is now the engine's. */
            engine->queue = queue;
            queue->is_served = true;
            engine->next_flight = flight;
            engine->messages += begins_message(flight);
            engine->turn = 0;
            trace_about(queue, flight);
            time = context_queue(&port->hca->context, &queue->context, world->now);
            event_at(time + ns_of(message_service(flight)), EVENT_ENGINE, engine, 0);
        }
    }
}

void send_kick(struct queue *queue)
{
    struct port *port = queue->port;

    if (queue->is_ready || queue->is_served || queue->dead ||
        (queue->waits_for_ack && !queue->has_response))
        return;
    queue->is_ready = true;
    queue->next_ready = NULL;
    queue->users++;
    if (port->ready_last)
        port->ready_last->next_ready = queue;
    else
        port->ready_first = queue;
    port->ready_last = queue;
    assign(port);
}

static void finish_message(struct engine *engine, const struct flight *last)
{
    struct queue *queue = engine->queue;
    struct port *port = engine->port;

    if (world->parameters.hca.wait_for_ack && !engine->responding && last->message &&
        opcode_info(last->packet.opcode)->flags & OPCODE_SEND &&
        transport_is_reliable(&queue->transport))
        queue->waits_for_ack = true;
    engine->queue = NULL;
    queue->is_served = false;
    if (engine->responding)
        queue->has_response = transport_has_response(&queue->transport);
    engine->waits_for_drain = world->parameters.hca.drain && engine->under_way;
    fetch_next(queue);
    queue_settle(queue);
    send_kick(queue);
    queue_release(queue);
    assign(port);
}

/* The queue goes on with its message when the others that wait have had their turn. */
static void yield(struct engine *engine)
{
    struct queue *queue = engine->queue;

    engine->queue = NULL;
    queue->is_served = false;
    send_kick(queue);
    queue_release(queue);
    assign(engine->port);
}

/* A queue that waits for an engine which is about to be free takes nobody's turn. */
static bool turn_is_over(const struct engine *engine)
{
    uint64_t turn = world->parameters.hca.turn;
    const struct queue *waiting = engine->port->ready_first;

    if (!turn || engine->turn < turn)
        return false;
    for (uint64_t i = 0; i < world->parameters.hca.engines && waiting; i++) {
        if (engine->port->engines[i].waits_for_drain)
            waiting = waiting->next_ready;
    }
    return waiting;
}

static bool has_slot(const struct engine *engine, const struct flight *flight)
{
    const struct parameters *p = &world->parameters;
    const struct hca *hca = engine->port->hca;

    if (engine->under_way >= p->hca.engine_depth)
        return false;
    return !p->hca.buffer || !hca->buffer_used ||
           hca->buffer_used + flight->payload <= p->hca.buffer;
}

/* Where in memory the payload of a packet begins, for the translation. */
static uint64_t payload_address(const struct flight *flight)
{
    uint64_t offset = flight->packet.payload.offset;

    if (flight->response || !flight->message)
        return offset;
    return stretch_address(flight->message->list, flight->message->stretches, offset);
}

static void line_up(struct queue *queue, struct flight *flight)
{
    if (queue->sending_last)
        queue->sending_last->behind = flight;
    else
        queue->sending_first = flight;
    queue->sending_last = flight;
}

static void start_packet(struct engine *engine, struct flight *flight)
{
    const struct parameters *p = &world->parameters;
    struct queue *queue = engine->queue;
    struct hca *hca = engine->port->hca;
    uint64_t time = world->now;

    line_up(queue, flight);
    trace_about(queue, flight);
    flight_mark(flight, MARK_STARTED);
    engine->under_way++;
    hca->buffer_used += flight->payload;
    flight->engine = engine;
    if (p->hca.queue_lock > 0)
        time = serve(&queue->lock, time, p->hca.queue_lock);
    if (!flight->payload || (flight->message && flight->message->flags & IBV_SEND_INLINE)) {
        event_at(time, EVENT_PACKET_READY, flight, 0);
        return;
    }
    if (flight->response ? queue->remote_device_memory : flight->message->in_device_memory) {
        event_at(hca_memory(hca, time, flight->payload), EVENT_PACKET_READY, flight, 0);
        return;
    }
    time = context_pages(&hca->context, queue->proc, payload_address(flight), flight->payload, time);
    if (time < engine->translated)
        time = engine->translated;
    engine->translated = time;
    event_at(bus_read_request(&hca->bus, time, flight->payload), EVENT_PACKET_READ, flight, 0);
}

void send_read(struct flight *flight)
{
    struct hca *hca = flight->from->port->hca;

    event_at(bus_read_return(&hca->bus, world->now, flight->payload), EVENT_PACKET_READY, flight,
             0);
}

void send_step(struct engine *engine)
{
    struct flight *flight = engine->next_flight;
    bool responding;

    if (!has_slot(engine, flight)) {
        engine->waits_for_slot = true;
        return;
    }
    start_packet(engine, flight);
    engine->next_flight = NULL;
    engine->turn += flight->payload;
    if (!flight->last && !engine->responding && turn_is_over(engine)) {
        yield(engine);
        return;
    }
    if (!flight->last && !engine->queue->dead)
        engine->next_flight = pull(engine->queue, &responding);
    if (engine->next_flight)
        event_at(world->now + ns_of(world->parameters.hca.packet), EVENT_ENGINE, engine, 0);
    else
        finish_message(engine, flight);
}

/* Packets of a queue leave in order, however long each of them was fetched. */
void send_ready(struct flight *flight)
{
    struct queue *queue = flight->from;

    flight->ready = true;
    while (queue->sending_first && queue->sending_first->ready) {
        struct flight *first = queue->sending_first;

        queue->sending_first = first->behind;
        if (!queue->sending_first)
            queue->sending_last = NULL;
        link_send(queue->port, first);
    }
}

/* A slot and some buffer are free again. */
static void release_slot(struct engine *engine)
{
    struct hca *hca = engine->port->hca;

    engine->under_way--;
    for (uint32_t i = 0; i < hca->port_count; i++) {
        for (uint64_t k = 0; k < world->parameters.hca.engines; k++) {
            struct engine *other = &hca->ports[i].engines[k];

            if (other->waits_for_slot && has_slot(other, other->next_flight)) {
                other->waits_for_slot = false;
                send_step(other);
            }
        }
    }
    if (engine->waits_for_drain && !engine->under_way) {
        engine->waits_for_drain = false;
        assign(engine->port);
    }
}

void send_left(struct flight *flight)
{
    struct engine *engine = flight->engine;

    if (flight->ends_message)
        message_over(flight->message);
    if (!engine)
        return;
    flight->engine = NULL;
    engine->port->hca->buffer_used -= flight->payload;
    release_slot(engine);
}
