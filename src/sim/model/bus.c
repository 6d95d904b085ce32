/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/model/bus.h"

#include "util/util.h"

static struct gap_server *down_of(struct bus *bus)
{
    return bus->parameters->bus.half_duplex ? &bus->up : &bus->down;
}

static double transactions(uint64_t bytes, uint64_t largest)
{
    return bytes ? (bytes + largest - 1) / largest : 1;
}

static void charge_link_layer(struct bus *bus, struct gap_server *other, uint64_t now, double count)
{
    if (bus->parameters->bus.link_layer > 0 && !bus->parameters->bus.half_duplex)
        serve_in_gaps(other, now, count * bus->parameters->bus.link_layer);
}

double bus_writes(const struct parameters *parameters, uint64_t bytes)
{
    return transactions(bytes, parameters->bus.write_burst);
}

static uint64_t write_lines(struct bus *bus, uint64_t now, uint64_t bytes, unsigned int partial)
{
    const struct parameters *p = bus->parameters;
    double count = bus_writes(p, bytes);
    uint64_t end =
        serve_in_gaps(&bus->up, now, count * p->bus.write_overhead + bytes / p->bus.rate +
                                         partial * p->bus.partial_line);

    charge_link_layer(bus, &bus->down, now, count);
    return end + ns_of(p->bus.write_latency);
}

uint64_t bus_write(struct bus *bus, uint64_t now, uint64_t bytes)
{
    return write_lines(bus, now, bytes, 0);
}

uint64_t bus_write_payload(struct bus *bus, uint64_t now, uint64_t address, uint64_t bytes)
{
    uint64_t end = address + bytes;
    bool same = address / CACHE_LINE == end / CACHE_LINE;

    return write_lines(bus, now, bytes,
                       same ? bytes > 0 : !!(address % CACHE_LINE) + !!(end % CACHE_LINE));
}

/* A short transfer passes between the bursts of others: it waits for at most one of them. */
static uint64_t serve_short(struct gap_server *server, uint64_t now, double service, double burst)
{
    uint64_t end = serve_in_gaps(server, now, service), latest = now + ns_of(burst + service);

    return end < latest ? end : latest;
}

uint64_t bus_read_request(struct bus *bus, uint64_t now, uint64_t bytes)
{
    const struct parameters *p = bus->parameters;
    double service = transactions(bytes, p->bus.read_request) * p->bus.request_overhead;

    return serve_short(&bus->up, now, service,
                       p->bus.write_burst / p->bus.rate + p->bus.write_overhead) +
           ns_of(p->bus.read_latency);
}

uint64_t bus_read_return(struct bus *bus, uint64_t now, uint64_t bytes)
{
    const struct parameters *p = bus->parameters;
    double count = transactions(bytes, p->bus.read_burst);
    uint64_t end =
        serve_in_gaps(down_of(bus), now, count * p->bus.completion_overhead + bytes / p->bus.rate);

    charge_link_layer(bus, &bus->up, now, count);
    if (p->bus.read_rate > 0) {
        uint64_t limited = serve_in_gaps(&bus->returns, now, bytes / p->bus.read_rate);

        end = end > limited ? end : limited;
    }
    return end;
}

uint64_t bus_store(struct bus *bus, uint64_t now, uint64_t bytes)
{
    const struct parameters *p = bus->parameters;

    return serve_in_gaps(down_of(bus), now,
                         transactions(bytes, p->bus.write_burst) * p->bus.write_overhead +
                             bytes / p->bus.rate);
}

/* Occupies the bus when it is asked for, not when its data returns. On a shared bus, reads are
 * answered in order; completions of PCI Express pass between those of other reads. */
uint64_t bus_read_short(struct bus *bus, uint64_t now, uint64_t bytes)
{
    const struct parameters *p = bus->parameters;
    double service = transactions(bytes, p->bus.read_burst) * p->bus.completion_overhead +
                     transactions(bytes, p->bus.read_request) * p->bus.request_overhead +
                     bytes / p->bus.rate;

    if (p->bus.half_duplex)
        return serve_in_gaps(&bus->up, now, service) + ns_of(p->bus.read_latency);
    return serve_short(&bus->down, now, service,
                       p->bus.read_burst / p->bus.rate + p->bus.completion_overhead) +
           ns_of(p->bus.read_latency);
}

uint64_t bus_fetch_wqe(struct bus *bus, uint64_t now, uint64_t bytes)
{
    uint64_t done;

    model_activity.work = "fetch WQE";
    done = bus_read_short(bus, now, bytes);
    model_activity.work = NULL;
    return done;
}
