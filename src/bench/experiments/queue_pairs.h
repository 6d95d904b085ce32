/* The life of a queue pair, for the experiments that time parts of it against the depth. */
#ifndef BENCH_EXPERIMENTS_QUEUE_PAIRS_H
#define BENCH_EXPERIMENTS_QUEUE_PAIRS_H

#include "cycle.h"

/* The steps of a queue pair's life. One that is never connected has only the first and the last. */
enum {
    QUEUE_PAIR_CREATE,
    QUEUE_PAIR_TO_INIT,
    QUEUE_PAIR_TO_RTR,
    QUEUE_PAIR_TO_RTS,
    QUEUE_PAIR_DESTROY,
    QUEUE_PAIR_UNCONNECTED_DESTROY = QUEUE_PAIR_CREATE + 1,
};

/* Which life, and the part of it that is timed. */
struct life {
    bool connected;
    const struct cycle_span *spans;
    unsigned int span_count;
};

/* Collective. The peer of a connected queue pair is one that the last rank keeps. */
int queue_pair_lives(struct bench *bench, const struct life *lives, unsigned int count);

#endif
