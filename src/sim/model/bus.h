/* The I/O bus between host memory and adapter, as transactions of limited size with a fixed cost each:
 * PCI and PCI-X are half duplex, one server for both directions; PCI Express has one for each, and
 * every transaction also sends a small data link packet the other way (PCI Express Base
 * Specification 1.0a, chapters 2 and 3; PCI-X 2.0). */
#ifndef SIM_MODELS_BUS_H
#define SIM_MODELS_BUS_H

#include "sim/model/server.h"
#include "sim/adapter/parameters.h"

struct bus {
    const struct parameters *parameters;
    struct server up;   /* from the adapter to memory */
    struct server down; /* half duplex: not used */
    struct server returns; /* what limits the rate of returned read data */
};

/* The adapter writes to memory; returns when the bytes are there for the processor. */
uint64_t bus_write(struct bus *bus, uint64_t now, uint64_t bytes);

/* The adapter asks for bytes; returns when the first could come back: then bus_read_return(). */
uint64_t bus_read_request(struct bus *bus, uint64_t now, uint64_t bytes);

/* The memory answers; returns when the adapter has all of it. */
uint64_t bus_read_return(struct bus *bus, uint64_t now, uint64_t bytes);

/* The processor is at memory, and keeps the adapter from it for so long. */
void bus_hold(struct bus *bus, uint64_t now, double time);

/* A short read for the adapter's own purposes, request to end. */
uint64_t bus_read_short(struct bus *bus, uint64_t now, uint64_t bytes);
/* The same, of a work request. */
uint64_t bus_fetch_wqe(struct bus *bus, uint64_t now, uint64_t bytes);

#endif
