/* SPDX-License-Identifier: BSD-2-Clause */
/* Experiments that time posting and polling in rounds: one side posts receives, the other sends as
 * many messages, and then the first side polls for the completions, which are all there. */
#ifndef BENCH_EXPERIMENTS_CONTROL_POST_POLL_H
#define BENCH_EXPERIMENTS_CONTROL_POST_POLL_H

#include "bench/bench.h"

enum post_poll_call {
    CALL_POST_SEND,
    CALL_POST_RECEIVE,
    CALL_POLL,
};

struct post_poll_spec {
    enum post_poll_call timed;
};

/* Collective, two ranks: the time of a call at rank 0 against the batch, which is the number of
 * work requests that the call posts or of completions that it polls. A panel for each size, with a
 * curve for each operation that the user chose. */
int post_poll_run(struct bench *bench);

#endif
