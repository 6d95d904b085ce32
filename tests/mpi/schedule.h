/* SPDX-License-Identifier: BSD-2-Clause */
/* Random communication: a seed determines what each rank sends and receives. */
#ifndef MPI_SCHEDULE_H
#define MPI_SCHEDULE_H

#include "data.h"

#define MESSAGES_MAX 256

struct dice {
    uint64_t state;
};

/* From 0 to limit - 1. */
uint64_t dice_below(struct dice *dice, uint64_t limit);

enum send_mode {
    SEND_START,      /* MPI_Isend */
    SEND_START_SYNC, /* MPI_Issend */
    SEND_PERSISTENT, /* MPI_Send_init */
    SEND_BUFFERED,   /* MPI_Bsend, short ones only */
    SEND_NOW,        /* MPI_Send, where the receive is posted before */
    SEND_NOW_SYNC,   /* MPI_Ssend, likewise */
    SEND_MODES,
};

/* How a rank names the messages it receives in a phase. */
enum receive_mode {
    RECEIVE_EXACT,
    RECEIVE_ANY_SOURCE,
    RECEIVE_ANY,
    RECEIVE_MODES,
};

/* How a message is received that has no posted receive. */
enum take_mode {
    TAKE_RECEIVE,
    TAKE_PROBED,
    TAKE_MATCHED,
    TAKE_MODES,
};

/* The layout of the data in memory. */
enum layout {
    LAYOUT_PLAIN,
    LAYOUT_BLOCKS,
    LAYOUT_UNEVEN,
    LAYOUT_DISPLACED,
    LAYOUTS,
};

enum closing {
    CLOSE_BARRIER,
    CLOSE_ALLREDUCE,
    CLOSE_BCAST,
    CLOSE_ALLTOALL,
    CLOSINGS,
};

struct message {
    int from, to, tag;
    size_t size;
    uint64_t seed;
    enum send_mode mode;
    enum take_mode take;
    enum layout sent_as, received_as;
};

struct phase {
    int count;
    struct message list[MESSAGES_MAX];
    enum receive_mode *mode; /* of each rank */
    bool *posted;            /* of each rank: its receives are posted before any send */
    enum closing closing;
    size_t closing_size;
    int closing_root;
};

/* The next phase of a schedule: 'phase->mode' and 'phase->posted' have room for all ranks. */
void schedule_phase(struct dice *dice, int ranks, size_t largest, struct phase *phase);

/* Runs a phase; called by all ranks of the communicator. Returns this rank's part of the digest. */
uint64_t schedule_run(const struct phase *phase, MPI_Comm comm);

#endif
