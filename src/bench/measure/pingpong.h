/* SPDX-License-Identifier: BSD-2-Clause */
/* The ping-pong: one message at a time, there and back. A read or an atomic is its own answer. */
#ifndef BENCH_MEASURE_PINGPONG_H
#define BENCH_MEASURE_PINGPONG_H

#include "flow.h"

/* Ranks that are neither the flow's initiator nor its peer have no part in it. Rank 0 gets one
 * sample per round in ticks: the whole round for reads and atomics, the round trip otherwise.
 * 'every': only each n-th round is a sample (the one that uses slot 0 when it is the number of
 * slots). */
struct pingpong_plan {
    uint64_t iterations;
    uint64_t warmup;
    unsigned int every; /* 0: each */
    int (*after)(void *context); /* of rank 0, while the others still wait for it; or NULL */
    void *after_context;
};

/* Collective over the two ranks of the flow, one of which is rank 0. */
int pingpong_run(struct flow *flow, const struct pingpong_plan *plan, struct histogram *samples);

/* Microseconds per tick of a sample: half of the round trip, or all of a read. */
double pingpong_scale(enum operation operation);

/* Opens the flow, runs it as the settings say, and sums it up. */
int pingpong_measure(struct bench *bench, const struct flow_spec *spec, struct summary *out);

#endif
