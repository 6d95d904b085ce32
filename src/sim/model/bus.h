/* SPDX-License-Identifier: BSD-2-Clause */
/* The I/O bus between host memory and adapter, as transactions of limited size with a fixed cost
 * each: PCI and PCI-X are half duplex, one server for both directions; PCI Express has one for
 * each, and every transaction also sends a small data link packet the other way (PCI Express Base
 * Specification 1.0a, chapters 2 and 3; PCI-X 2.0). */
#ifndef SIM_MODEL_BUS_H
#define SIM_MODEL_BUS_H

#include "sim/model/server.h"
#include "sim/adapter/parameters.h"

struct bus {
    const struct parameters *parameters;
    struct gap_server up;   /* from the adapter to memory */
    struct gap_server down; /* half duplex: unused */
    struct gap_server returns; /* limits the rate of read completions (bus.read_rate) */
};

/* DMA write; returns when the processor can see the bytes. */
uint64_t bus_write(struct bus *bus, uint64_t now, uint64_t bytes);

/* The same of payload, which may fill parts of cache lines. */
uint64_t bus_write_payload(struct bus *bus, uint64_t now, uint64_t address, uint64_t bytes);

/* Transactions that a write of so many bytes takes. */
double bus_writes(const struct parameters *parameters, uint64_t bytes);

/* DMA read request; returns when the first data could come back. Call bus_read_return() then. */
uint64_t bus_read_request(struct bus *bus, uint64_t now, uint64_t bytes);

/* Read completions; returns when the adapter has all the data. */
uint64_t bus_read_return(struct bus *bus, uint64_t now, uint64_t bytes);

/* The CPU stores to the adapter; returns when the adapter has all the bytes. */
uint64_t bus_store(struct bus *bus, uint64_t now, uint64_t bytes);

/* A short DMA read of adapter data structures, from request to last byte. */
uint64_t bus_read_short(struct bus *bus, uint64_t now, uint64_t bytes);
/* A short read that fetches a WQE. */
uint64_t bus_fetch_wqe(struct bus *bus, uint64_t now, uint64_t bytes);

#endif
