/* SPDX-License-Identifier: BSD-2-Clause */
/* The processes of an experiment, on this host or on the listening one. */
#ifndef BENCH_RANKS_H
#define BENCH_RANKS_H

#include "bench/session/handshake.h"

struct ranks {
    struct control control;
    int pids[CONTROL_RANKS_MAX]; /* of local ranks, else 0 */
};

/* Starts ranks 1 and up and sends their handshakes; 'words' are the options for all of them. On
 * failure the reason is in the control, and the caller must still call ranks_stop(). */
int ranks_start(struct ranks *ranks, const struct assignment *assignment, char *const *words,
                int count, const char *version);

/* Ends the ranks and reaps them. If one was killed, adds that to the control's reason. */
void ranks_stop(struct ranks *ranks);

/* Executes "verbena bench-rank FD WORD..."; does not return. */
void rank_exec(int fd, char *const *words, int count) __attribute__((noreturn));

/* The main function of bench-rank. 'words' are this host's options, which override rank 0's. */
int rank_main(int fd, const char *version, char *const *words, int count);

/* Runs the experiment in this process. */
void rank_run(struct bench *bench);

/* verbena bench --listen: serves connections until interrupted. Returns an exit status. */
int ranks_listen(const struct settings *settings, char *const *words, int count);

/* Sets TCP_NODELAY and the options that detect a dead host. */
void ranks_prepare_connection(int fd, unsigned int timeout_s);

/* Seconds after which a silent rank counts as dead; 0: never. */
unsigned int ranks_idle_timeout(const struct settings *settings);

#endif
