/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting for completions: by polling, on a completion channel, or both. */
#ifndef BENCH_COMPLETION_H
#define BENCH_COMPLETION_H

#include "bench/bench.h"

struct completions {
    struct bench *bench;
    struct ibv_cq *cq;
    struct ibv_cq **cqs; /* several queues, polled round robin, or NULL */
    unsigned int cq_count;
    unsigned int next_cq;
    struct ibv_comp_channel *channel; /* NULL for polling only */
    enum wait_mode mode;
    uint64_t spin_ticks;
    unsigned int unacknowledged;
    bool armed;
};

int completions_open(struct bench *bench, uint32_t depth, enum wait_mode mode,
                     struct completions *out);

/* Creates 'count' queues of that depth. Each poll takes the next queue; blocking is not supported.
 */
int completions_open_round_robin(struct bench *bench, uint32_t depth, unsigned int count,
                                 struct completions *out);
void completions_close(struct completions *completions);

/* Waits for the first completion and returns up to 'max' of them. Returns their number, or
 * BENCH_FAILED after an error completion or a timeout. */
int completions_wait(struct completions *completions, struct ibv_wc *wc, int max);

/* Does not wait: may return 0. */
int completions_poll(struct completions *completions, struct ibv_wc *wc, int max);

/* Reports the first failed completion and returns BENCH_FAILED. */
int completions_fail(struct completions *completions, const struct ibv_wc *wc, int count);

#endif
