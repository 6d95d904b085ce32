/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/model/bus.h"

static struct server *down_of(struct bus *bus)
{
    return bus->parameters->bus.half_duplex ? &bus->up : &bus->down;
}

static double transactions(uint64_t bytes, uint64_t largest)
{
    return bytes ? (bytes + largest - 1) / largest : 1;
}

static void charge_link_layer(struct bus *bus, struct server *other, uint64_t now, double count)
{
    if (bus->parameters->bus.link_layer > 0 && !bus->parameters->bus.half_duplex)
        serve(other, now, count * bus->parameters->bus.link_layer);
}

uint64_t bus_write(struct bus *bus, uint64_t now, uint64_t bytes)
{
    const struct parameters *p = bus->parameters;
    double count = transactions(bytes, p->bus.write_burst);
    uint64_t end = serve(&bus->up, now, count * p->bus.write_overhead + bytes / p->bus.rate);

    charge_link_layer(bus, &bus->down, now, count);
    return end + ns_of(p->bus.write_latency);
}

/* A request is short and passes between the bursts of other transfers: it waits for at most one. */
uint64_t bus_read_request(struct bus *bus, uint64_t now, uint64_t bytes)
{
    const struct parameters *p = bus->parameters;
    double service = transactions(bytes, p->bus.read_request) * p->bus.request_overhead;
    uint64_t burst = ns_of(p->bus.write_burst / p->bus.rate + p->bus.write_overhead);
    uint64_t end = serve(&bus->up, now, service);

    if (end > now + burst + ns_of(service))
        end = now + burst + ns_of(service);
    return end + ns_of(p->bus.read_latency);
}

uint64_t bus_read_return(struct bus *bus, uint64_t now, uint64_t bytes)
{
    const struct parameters *p = bus->parameters;
    double count = transactions(bytes, p->bus.read_burst);
    uint64_t end =
        serve(down_of(bus), now, count * p->bus.completion_overhead + bytes / p->bus.rate);

    charge_link_layer(bus, &bus->up, now, count);
    if (p->bus.read_rate > 0) {
        uint64_t limited = serve(&bus->returns, now, bytes / p->bus.read_rate);

        end = end > limited ? end : limited;
    }
    return end;
}

void bus_hold(struct bus *bus, uint64_t now, double time)
{
    serve(&bus->up, now, time);
    if (!bus->parameters->bus.half_duplex)
        serve(&bus->down, now, time);
}

/* Occupies the bus at once: a slot booked for later would block other transfers until then. */
uint64_t bus_read_short(struct bus *bus, uint64_t now, uint64_t bytes)
{
    const struct parameters *p = bus->parameters;
    double service = transactions(bytes, p->bus.read_burst) * p->bus.completion_overhead +
                     transactions(bytes, p->bus.read_request) * p->bus.request_overhead +
                     bytes / p->bus.rate;

    return serve(down_of(bus), now, service) + ns_of(p->bus.read_latency);
}

uint64_t bus_fetch_wqe(struct bus *bus, uint64_t now, uint64_t bytes)
{
    uint64_t done;

    model_activity.work = "fetch WQE";
    done = bus_read_short(bus, now, bytes);
    model_activity.work = NULL;
    return done;
}
