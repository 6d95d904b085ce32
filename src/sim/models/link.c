/* Cables and the switch between the adapters: a packet takes the link for its length and a gap, crosses
 * a switch that forwards it as soon as its head is there, and waits for the output it needs. A port
 * sends only what the buffer at the other end can hold (InfiniBand's link credits). */
#include "sim/models/hca.h"

#include "hca/addr.h"
#include "sim/capture.h"

static struct port *destination(const struct flight *flight)
{
    uint16_t lid = flight->from->transport.attributes.service == SERVICE_UD && flight->message ?
                       flight->message->dlid :
                       flight->from->peer_lid;

    return port_by_lid(lid);
}

static bool has_credit(const struct port *to, const struct flight *flight)
{
    uint64_t room = world->parameters.link.receive_buffer;

    return !room || !to->credit_used || to->credit_used + flight->bytes <= room;
}

static void pop_out(struct port *port)
{
    port->out_first = port->out_first->next;
    if (!port->out_first)
        port->out_last = NULL;
}

/* Between queues of one adapter nothing goes out. */
static void loop_back(struct flight *flight, struct port *to)
{
    flight->destination = to;
    flight->holds = 2;
    to->credit_used += flight->bytes;
    flight_mark(flight, MARK_SENT);
    flight_mark(flight, MARK_SWITCHED);
    event_at(world->now, EVENT_PACKET_LEFT, flight, OFF_THE_LINK);
    event_at(world->now, EVENT_PACKET_ARRIVED, flight, 0);
}

static void transmit(struct port *port, struct flight *flight, struct port *to)
{
    const struct parameters *p = &world->parameters;
    uint64_t end;

    if (unlikely(capture_on))
        capture_packet(port, to, flight);
    trace_about(flight->from, flight);
    end = serve(&port->link, world->now, flight->bytes / p->link.rate + p->link.gap);
    flight_mark(flight, MARK_SENT);
    port->link_busy = true;
    port->packets_out++;
    port->bytes_out += flight->bytes;
    to->credit_used += flight->bytes;
    flight->destination = to;
    flight->holds = 2;
    event_at(world->now + ns_of(p->link.latency + p->fabric.latency), EVENT_PACKET_AT_SWITCH,
             flight, 0);
    event_at(end, EVENT_PACKET_LEFT, flight, 0);
}

static void pump(struct port *port)
{
    while (port->out_first && !port->link_busy) {
        struct flight *flight = port->out_first;
        struct port *to = destination(flight);

        if (!to || addr_port_is_down(to->lid) || addr_port_is_down(port->lid)) {
            pop_out(port);
            flight->holds = 1;
            event_at(world->now, EVENT_PACKET_LEFT, flight, OFF_THE_LINK);
            continue;
        }
        if (to->hca == port->hca) {
            pop_out(port);
            loop_back(flight, to);
            continue;
        }
        if (!has_credit(to, flight)) {
            port->waits_for_credit = true;
            return;
        }
        pop_out(port);
        transmit(port, flight, to);
    }
}

void link_send(struct port *port, struct flight *flight)
{
    flight_mark(flight, MARK_READY);
    flight->next = NULL;
    if (port->out_last)
        port->out_last->next = flight;
    else
        port->out_first = flight;
    port->out_last = flight;
    pump(port);
}

void link_free(struct port *port)
{
    port->link_busy = false;
    pump(port);
}

/* A packet that is on its way to its port at 'arrival'; returns when it will really be there. */
static uint64_t suffer_faults(struct flight *flight, uint64_t arrival)
{
    struct faults *faults = &world->faults;

    flight->spoilt = faults_strike(faults, FAULT_CORRUPT);
    if (faults_strike(faults, FAULT_DUPLICATE)) {
        struct flight *copy = flight_copy(flight);

        if (copy) {
            copy->destination->credit_used += copy->bytes;
            event_at(arrival + faults_delay(faults), EVENT_PACKET_ARRIVED, copy, 0);
        }
    }
    return faults_strike(faults, FAULT_REORDER) ? arrival + faults_delay(faults) : arrival;
}

void link_at_switch(struct flight *flight)
{
    const struct parameters *p = &world->parameters;
    struct port *to = flight->destination;
    uint64_t arrival;

    flight_mark(flight, MARK_SWITCHED);
    if (unlikely(world->faults.any) && faults_strike(&world->faults, FAULT_DROP)) {
        link_credit(to, flight);
        flight_drop(flight);
        return;
    }
    arrival = serve(&to->switch_output, world->now, flight->bytes / p->link.rate) +
              ns_of(p->link.latency);
    if (unlikely(world->faults.any))
        arrival = suffer_faults(flight, arrival);
    event_at(arrival, EVENT_PACKET_ARRIVED, flight, 0);
}

void link_credit(struct port *to, const struct flight *flight)
{
    to->credit_used -= flight->bytes;
    if (!world->parameters.link.receive_buffer)
        return;
    for (uint32_t i = 1; i < world->port_count; i++) {
        if (world->ports[i].waits_for_credit) {
            world->ports[i].waits_for_credit = false;
            pump(&world->ports[i]);
        }
    }
}
