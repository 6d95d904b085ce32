#include "sim/models/hca.h"

#include "hca/addr.h"
#include "sim/capture.h"

#define WHOLE_WEIGHT 256

/* ---- lanes ---- */

static bool has_room(const struct lane *lane, const struct flight *flight)
{
    uint64_t room = world->parameters.link.receive_buffer;

    return !room || !lane->taken || lane->taken + flight->bytes <= room;
}

/* A lane that was idle has saved up nothing: it starts level with the others. */
static void line_up(struct cable *cable, struct flight *flight)
{
    struct lane *lane = &cable->lanes[flight->lane];

    flight->next = NULL;
    if (lane->first) {
        lane->last->next = flight;
    } else {
        lane->first = flight;
        cable->waiting |= 1u << flight->lane;
        if (lane->due < cable->due)
            lane->due = cable->due;
    }
    lane->last = flight;
}

/* Start-time fair queueing (Goyal, Vin, Cheng 1996) over the lanes that may send. */
static struct flight *take_next(struct cable *cable)
{
    struct lane *best = NULL;
    struct flight *flight;

    for (uint32_t left = cable->waiting; left; left &= left - 1) {
        struct lane *lane = &cable->lanes[__builtin_ctz(left)];

        if (has_room(lane, lane->first) && (!best || lane->due < best->due))
            best = lane;
    }
    if (!best)
        return NULL;
    flight = best->first;
    best->first = flight->next;
    if (!best->first)
        cable->waiting &= ~(1u << flight->lane);
    cable->due = best->due;
    best->due += (uint64_t)flight->bytes * WHOLE_WEIGHT / world->lane_weights[flight->lane];
    best->taken += flight->bytes;
    return flight;
}

/* ---- faults ---- */

/* A packet that is to reach its port at 'arrival'; returns when it really will. */
static uint64_t suffer_faults(struct flight *flight, uint64_t arrival)
{
    struct faults *faults = &world->faults;

    flight->spoilt = faults_strike(faults, FAULT_CORRUPT);
    if (faults_strike(faults, FAULT_DUPLICATE)) {
        struct flight *copy = flight_copy(flight);

        if (copy) {
            copy->via->lanes[copy->lane].taken += copy->bytes;
            event_at(arrival + faults_delay(faults), EVENT_PACKET_ARRIVED, copy, 0);
        }
    }
    return faults_strike(faults, FAULT_REORDER) ? arrival + faults_delay(faults) : arrival;
}

/* ---- sending ---- */

static void leave_port(struct cable *cable, struct flight *flight)
{
    struct port *port = cable->port;

    if (unlikely(capture_on))
        capture_packet(port, flight->destination, flight);
    flight_mark(flight, MARK_SENT);
    port->packets_out++;
    port->bytes_out += flight->bytes;
    flight->holds = 2;
}

/* The head of the packet goes on at once; its tail frees the cable. */
static void transmit(struct cable *cable, struct flight *flight)
{
    const struct parameters *p = &world->parameters;
    double length = flight->bytes / p->link.rate;
    uint64_t end;

    trace_about(flight->from, flight);
    end = serve(&cable->server, world->now, cable->port ? length + p->link.gap : length);
    cable->busy = true;
    if (cable->port) {
        leave_port(cable, flight);
        event_at(world->now + ns_of(p->link.latency + p->fabric.latency), EVENT_PACKET_AT_SWITCH,
                 flight, 0);
        event_at(end, EVENT_PACKET_LEFT, flight, 0);
        flight->via = cable;
        return;
    }
    cable->before = flight->via;
    cable->before_bytes = flight->bytes;
    cable->before_lane = flight->lane;
    flight->via = cable;
    if (cable->leads_to) {
        event_at(world->now + ns_of(p->link.latency + p->fabric.latency), EVENT_PACKET_AT_SWITCH,
                 flight, 0);
    } else {
        uint64_t arrival = end + ns_of(p->link.latency);

        if (unlikely(world->faults.any))
            arrival = suffer_faults(flight, arrival);
        event_at(arrival, EVENT_PACKET_ARRIVED, flight, 0);
    }
    event_at(end, EVENT_CABLE_FREE, cable, 0);
}

/* The packet goes nowhere. */
static void discard(struct flight *flight)
{
    flight->holds = 1;
    event_at(world->now, EVENT_PACKET_LEFT, flight, OFF_THE_LINK);
}

static void pump(struct cable *cable)
{
    while (!cable->busy) {
        struct flight *flight = take_next(cable);

        if (!flight)
            return;
        if (cable->port && addr_port_is_down(cable->port->lid)) {
            cable->lanes[flight->lane].taken -= flight->bytes;
            discard(flight);
        } else {
            transmit(cable, flight);
        }
    }
}

void cable_put(struct cable *cable, struct flight *flight)
{
    line_up(cable, flight);
    pump(cable);
}

static void give_back(struct cable *cable, uint8_t lane, uint32_t bytes)
{
    cable->lanes[lane].taken -= bytes;
    pump(cable);
}

void cable_give_room(struct flight *flight)
{
    struct cable *via = flight->via;

    flight->via = NULL;
    if (via)
        give_back(via, flight->lane, flight->bytes);
}

void cable_free(struct cable *cable)
{
    cable->busy = false;
    give_back(cable->before, cable->before_lane, cable->before_bytes);
    pump(cable);
}

/* ---- ports of adapters ---- */

static struct port *destination(const struct flight *flight)
{
    uint16_t lid = flight->from->transport.attributes.service == SERVICE_UD && flight->message
                       ? flight->message->dlid
                       : flight->from->peer_lid;

    return port_by_lid(lid);
}

static uint8_t lane_of(const struct flight *flight)
{
    bool datagram = flight->from->transport.attributes.service == SERVICE_UD && flight->message;
    uint8_t level = datagram ? flight->message->sl : flight->from->sl;

    return level % world->parameters.link.lanes;
}

/* Between queues of one adapter nothing goes out. */
static void loop_back(struct flight *flight)
{
    flight->holds = 2;
    flight_mark(flight, MARK_SENT);
    flight_mark(flight, MARK_SWITCHED);
    event_at(world->now, EVENT_PACKET_LEFT, flight, OFF_THE_LINK);
    event_at(world->now, EVENT_PACKET_ARRIVED, flight, 0);
}

void link_send(struct port *port, struct flight *flight)
{
    struct port *to = destination(flight);

    flight_mark(flight, MARK_READY);
    flight->destination = to;
    flight->lane = lane_of(flight);
    if (!to || addr_port_is_down(to->lid))
        discard(flight);
    else if (to->hca == port->hca)
        loop_back(flight);
    else
        cable_put(&port->out, flight);
}

void link_left(struct flight *flight)
{
    struct cable *cable = &flight->from->port->out;

    cable->busy = false;
    pump(cable);
}
