/* SPDX-License-Identifier: BSD-2-Clause */
/* Out-of-band communication between the ranks of an experiment. Rank 0 has a stream socket to each
 * other rank. Every call except control_check() and control_fail() is collective. */
#ifndef BENCH_CONTROL_H
#define BENCH_CONTROL_H

#include "util/fabric_limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONTROL_RANKS_MAX FABRIC_PROCESSES_MAX
#define CONTROL_TEXT_MAX  512

enum control_status {
    CONTROL_OK,
    CONTROL_FAILED,      /* the experiment cannot go on */
    CONTROL_SKIPPED,     /* the device lacks a capability */
    CONTROL_INTERRUPTED, /* by the user */
};

struct control {
    int rank;
    int ranks;
    int fd[CONTROL_RANKS_MAX]; /* rank 0: one for each rank; others: only [0] */
    unsigned int timeout_s;    /* rank 0: how long to wait for another rank; 0: forever */
    bool (*stopped)(void); /* whether the user wants to stop; checked while waiting; may be NULL */
    enum control_status status;
    char text[CONTROL_TEXT_MAX]; /* the reason, unless CONTROL_OK */
};

/* Allgather: every rank contributes 'size' bytes. Returns 0, or -1 once any rank has failed. */
int control_exchange(struct control *control, const void *mine, size_t size, void *all);

/* Checks without waiting whether a rank has failed or died. Returns 0 or -1. */
int control_check(struct control *control);

/* Records the failure and tells the other ranks. Only the first failure counts. */
void control_fail(struct control *control, enum control_status status, const char *text);

/* Adds what this rank knows about the recorded failure to rank 0's message. */
void control_add_reason(struct control *control, const char *text);

/* Ends the experiment for all ranks because the user wants to stop. */
void control_interrupt(struct control *control);

/* Ends the experiment and waits for all ranks, in whatever state they are. */
void control_end(struct control *control);

/* The handshake that opens a connection: rank 0 sends the assignment, the other rank accepts it (a
 * refusal of NULL) or replies why not. control_receive_handshake() sets errno: EPROTO for an
 * invalid message, ETIMEDOUT if none arrives. */
int control_handshake(struct control *control, int rank, const char *handshake);
int control_receive_handshake(int fd, unsigned int timeout_s, char *handshake, size_t size);
void control_reply_handshake(int fd, const char *refusal);

#endif
