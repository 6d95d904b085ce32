/* SPDX-License-Identifier: BSD-2-Clause */
/* The processes of an experiment: started here, or on the host that listens. */
#ifndef BENCH_RANKS_H
#define BENCH_RANKS_H

#include "bench/session/greeting.h"

struct ranks {
    struct control control;
    int pids[CONTROL_RANKS_MAX]; /* of those started here, else 0 */
};

/* Starts ranks 1 and up and greets them; 'words' are the options that all of them shall read. On
 * failure the control says why, and ranks_stop() is still to be called. */
int ranks_start(struct ranks *ranks, const struct assignment *assignment, char *const *words,
                int count, const char *version);

/* Ends and collects them. If one was killed, that is added to what the control says. */
void ranks_stop(struct ranks *ranks);

/* Becomes "verbena bench-rank FD WORD..."; does not return. */
void rank_become(int fd, char *const *words, int count) __attribute__((noreturn));

/* What that does. 'words' are the options of this host, which win over what rank 0 says. */
int rank_main(int fd, const char *version, char *const *words, int count);

/* Runs the experiment in this process. */
void rank_run(struct bench *bench);

/* verbena bench --listen: serves whoever connects, until interrupt_seen. Returns an exit status. */
int ranks_listen(const struct settings *settings, char *const *words, int count);

/* Sets what a connection between hosts needs: no delay, and notice of a host that is gone. */
void ranks_prepare_connection(int fd, unsigned int timeout_s);

/* Seconds for which a rank may say nothing, 0 for ever. */
unsigned int ranks_silence_limit(const struct settings *settings);

#endif
