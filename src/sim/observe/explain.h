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

/* Stages, from one mark to another. Up to PART_RECEIVE they follow each other without a gap. */
enum part {
    PART_POST,
    PART_DOORBELL,
    PART_FETCH,
    PART_ENGINE,
    PART_BUS_READ,
    PART_LINK, /* waits for the link, and for credits */
    PART_WIRE,
    PART_SWITCH, /* from its head at the switch to its tail at the port */
    PART_RECEIVE,
    PART_BUS_WRITE,  /* after PART_RECEIVE: into the receiver's memory, */
    PART_ACK,        /* or back to the sender */
    PART_COMPLETION, /* and into its memory */
    PART_COUNT,
};

struct explain_part {
    const char *name;
    enum mark from, to;
};

extern const struct explain_part explain_parts[PART_COUNT];

const char *explain_operation(enum transport_operation operation);

struct explain_row {
    uint64_t length;
    uint8_t service; /* enum transport_service */
    uint8_t operation;
    uint64_t messages;
    uint64_t sums[PART_COUNT]; /* ns */
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
