/* SPDX-License-Identifier: BSD-2-Clause */
/* The ping-pong: one message at a time, there and back. Reads and atomics need no answer. */
#ifndef BENCH_MEASURE_PINGPONG_H
#define BENCH_MEASURE_PINGPONG_H

#include "flow.h"

/* Rank 0 initiates and gets one sample per round trip, in ticks. With 'every', only each n-th round
 * trip is a sample; if n is the number of slots, that is the one through slot 0. Ranks without a
 * peer take no part. */
struct pingpong_plan {
    uint64_t iterations;
    uint64_t warmup;
    unsigned int every;          /* 0: each */
    int (*after)(void *context); /* called by rank 0 before the last barrier; or NULL */
    void *after_context;
};

/* Collective over the two ranks of the flow, one of which is rank 0. */
int pingpong_run(struct flow *flow, const struct pingpong_plan *plan, struct histogram *samples);

/* Microseconds per tick of a sample: half of a round trip, or the whole of a read or an atomic. */
double pingpong_scale(enum operation operation);

/* Opens the flow, runs it as often as the settings say, and summarises the samples. */
int pingpong_measure(struct bench *bench, const struct flow_spec *spec, struct summary *out);

#endif
