/* SPDX-License-Identifier: BSD-2-Clause */
/* What the processes of an experiment tell each other outside the network that is measured. Rank 0
 * has a stream socket to each of the others; every call but control_watch() and control_fail() is
 * made by all of them. */
#ifndef BENCH_CONTROL_H
#define BENCH_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONTROL_RANKS_MAX 256
#define CONTROL_TEXT_MAX  512

enum control_status {
    CONTROL_OK,
    CONTROL_FAILED,      /* the experiment cannot go on */
    CONTROL_SKIPPED,     /* the device does not have what it needs */
    CONTROL_INTERRUPTED, /* by the user */
};

struct control {
    int rank;
    int ranks;
    int fd[CONTROL_RANKS_MAX]; /* rank 0: of each rank; the others: [0] */
    unsigned int timeout_s;    /* rank 0: how long any of the others may be silent; 0: for ever */
    bool (*stopped)(void);     /* asked while waiting, may be NULL: the user wants to stop */
    enum control_status status;
    char text[CONTROL_TEXT_MAX]; /* why, unless CONTROL_OK */
};

/* All ranks give 'size' bytes and get those of every rank, in order. Returns 0, or -1 once the
 * experiment has failed anywhere. */
int control_exchange(struct control *control, const void *mine, size_t size, void *all);

/* Looks, without waiting, whether somebody has failed or gone. */
int control_watch(struct control *control);

/* Notes the failure here and tells the others. The first one counts. */
void control_fail(struct control *control, enum control_status status, const char *text);

/* Tells rank 0 what this process knows of a failure that was noted. */
void control_add(struct control *control, const char *text);

/* The user wants to stop: ends the experiment for all. */
void control_interrupt(struct control *control);

/* The end of the experiment: waits for all, whatever state they are in. */
void control_end(struct control *control);

/* What opens a connection: rank 0 says what is to be run, the other side agrees or says why not.
 * control_welcome() sets errno: EPROTO if what came is no greeting, ETIMEDOUT if nothing came. */
int control_greet(struct control *control, int rank, const char *greeting);
int control_welcome(int fd, unsigned int timeout_s, char *greeting, size_t size);
void control_accept(int fd, const char *refusal);

#endif
