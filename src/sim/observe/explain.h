/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the time of messages goes: the stages between their marks, summed up by operation and
 * size. */
#ifndef SIM_EXPLAIN_H
#define SIM_EXPLAIN_H

#include "sim/model/marks.h"
#include "transport/transport.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct sim_wqe;

/* Stages, from one mark to another. Up to EXPLAIN_RECEIVE they follow each other without a gap. */
enum explain_stage {
    EXPLAIN_POST,
    EXPLAIN_DOORBELL,
    EXPLAIN_FETCH,
    EXPLAIN_ENGINE,
    EXPLAIN_BUS_READ,
    EXPLAIN_LINK, /* waits for the link, and for credits */
    EXPLAIN_WIRE,
    EXPLAIN_SWITCH, /* from its head at the switch to its tail at the port */
    EXPLAIN_RECEIVE,
    EXPLAIN_BUS_WRITE,  /* after EXPLAIN_RECEIVE: into the receiver's memory, */
    EXPLAIN_ACK,        /* or back to the sender */
    EXPLAIN_COMPLETION, /* and into its memory */
    EXPLAIN_COUNT,
};

struct explain_interval {
    const char *name;
    enum mark from, to;
};

extern const struct explain_interval explain_stages[EXPLAIN_COUNT];

const char *explain_operation(enum transport_operation operation);

struct explain_row {
    uint64_t length;
    uint8_t service; /* enum transport_service */
    uint8_t operation;
    uint64_t messages;
    uint64_t sums[EXPLAIN_COUNT]; /* ns */
};

struct explain {
    bool on;
    uint32_t count;
    struct explain_row *rows;
    uint64_t left_out; /* messages of further operations and sizes */
};

/* Allocates the table. Returns 0 or an errno value. */
int explain_init(void);

/* Call when the message is done. */
void explain_wqe(const struct sim_wqe *wqe);

void explain_print(FILE *out);

#endif
