/* Rounds of posting and polling: one side posts receives, the other sends as many messages, and
 * then the first one, knowing that they are there, polls for them. */
#ifndef BENCH_EXPERIMENTS_ROUNDS_H
#define BENCH_EXPERIMENTS_ROUNDS_H

#include "bench/bench.h"

enum timed_call {
    TIMED_POST_SEND,
    TIMED_POST_RECEIVE,
    TIMED_POLL,
};

/* Collective, two ranks: the time of one call at rank 0 against the batch, which is the number of
 * work requests in the call, or of completions it is to take. A panel for each size, with a curve
 * for each operation that was asked for. */
int rounds_by_batch(struct bench *bench, enum timed_call timed);

#endif
