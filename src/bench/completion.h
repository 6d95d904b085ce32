/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting for completions: by polling, on a completion channel, or both. */
#ifndef BENCH_COMPLETION_H
#define BENCH_COMPLETION_H

#include "bench/bench.h"

struct completions {
    struct bench *bench;
    struct ibv_cq *cq;
    struct ibv_cq **turn; /* several queues that are looked at in turn, or NULL */
    unsigned int turn_count;
    unsigned int turn_next;
    struct ibv_comp_channel *channel; /* NULL if it only polls */
    enum wait_mode mode;
    uint64_t spin_ticks;
    unsigned int unacknowledged;
    bool armed;
};

int completions_open(struct bench *bench, uint32_t depth, enum wait_mode mode,
                     struct completions *out);

/* As many queues, each of that depth, looked at in turn: every look is at the next one. They can
 * only be polled. */
int completions_open_turn(struct bench *bench, uint32_t depth, unsigned int count,
                          struct completions *out);
void completions_close(struct completions *completions);

/* Takes up to 'max' completions, waiting for the first. Returns their number, or BENCH_FAILED if
 * one of them is an error or nothing comes. */
int completions_wait(struct completions *completions, struct ibv_wc *wc, int max);

/* The same without waiting: may return 0. */
int completions_take(struct completions *completions, struct ibv_wc *wc, int max);

/* Says which completion failed; returns BENCH_FAILED. */
int completions_complain(struct completions *completions, const struct ibv_wc *wc, int count);

#endif
