/* SPDX-License-Identifier: BSD-2-Clause */
/* Buffer reuse: latency and bandwidth, with a curve for each share of messages that reuse a buffer.
 */
#ifndef BENCH_EXPERIMENTS_TRANSLATION_REUSE_H
#define BENCH_EXPERIMENTS_TRANSLATION_REUSE_H

#include "bench/bench.h"

struct reuse_scheme;

/* A few buffers in turn, the fewer the higher the share: does the adapter cache the translations of
 * all of them? */
extern const struct reuse_scheme reuse_few_buffers;

/* One buffer for the share of messages that reuse it, always new buffers for the others: what does
 * an address cost that the adapter has not seen? */
extern const struct reuse_scheme reuse_new_buffers;

int reuse_run(struct bench *bench);

#endif
