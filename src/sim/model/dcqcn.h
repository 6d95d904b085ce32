/* SPDX-License-Identifier: BSD-2-Clause */
/* DCQCN at the sender, its reaction point: the rate of one QP. Zhu and others: Congestion Control for
 * Large-Scale RDMA Deployments, SIGCOMM 2015. It has no timers of its own: the state is
 * brought up to date when the QP sends and when a CNP arrives. */
#ifndef SIM_MODEL_DCQCN_H
#define SIM_MODEL_DCQCN_H

#include "sim/adapter/parameters.h"

struct dcqcn {
    uint64_t send_at; /* the next packet does not leave before */
    bool limited; /* a CNP has arrived; until then the QP sends as fast as the link */
    double current_rate, target_rate; /* RC and RT; bytes per ns */
    double alpha;
    uint64_t alpha_at;         /* when alpha decays, unless a CNP comes first */
    uint64_t timer_at;         /* when the timer expires next */
    uint64_t bytes;            /* sent since the byte counter expired */
    uint32_t timeouts, counts; /* expirations since the last CNP: T and BC */
};

/* Brings rates and alpha up to date. */
void dcqcn_advance(struct dcqcn *flow, const struct parameters *p, uint64_t now);

/* A CNP has arrived. Returns alpha as the CNP found it. */
double dcqcn_cut(struct dcqcn *flow, const struct parameters *p, uint64_t now);

/* A packet was sent. */
void dcqcn_sent(struct dcqcn *flow, const struct parameters *p, uint64_t now, uint32_t bytes);

/* Whether the QP has to wait until flow->send_at. */
static inline bool dcqcn_waits(const struct dcqcn *flow, uint64_t now)
{
    return flow->send_at > now;
}

#endif
