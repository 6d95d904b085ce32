/* SPDX-License-Identifier: BSD-2-Clause */
/* Two processes, each with an open adapter, one CQ, and RC queue pairs joined one to one. */
#ifndef BENCH_PAIR_H
#define BENCH_PAIR_H

#include "harness.h"

#include <infiniband/verbs.h>

struct pair_config {
    const char *device; /* NULL: the first one */
    unsigned send_depth;
    unsigned recv_depth;
    unsigned inline_bytes;
    unsigned cq_entries;
    size_t size;
    bool heap; /* buffers from malloc rather than whole pages */
    bool segment; /* buffers in a System V segment */
};

struct pair {
    struct harness_peer peer;
    struct pair_config config;
    struct ibv_context *context;
    struct ibv_port_attr port;
    unsigned max_read_depth;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    uint8_t *source;  /* what this side sends, writes, or lets be read */
    uint8_t *landing; /* where arrivals go */
    uint64_t remote_source;
    uint64_t remote_landing;
    uint32_t remote_key;
    struct ibv_qp **qps;
    unsigned qp_count;
};

/* Opens the adapter and prepares CQ and memory; errors end the program, naming the call. */
void pair_open(struct pair *pair, const struct pair_config *config, struct harness_peer peer);

/* Creates `count` more queue pairs on both sides and brings them to RTS. */
void pair_connect(struct pair *pair, unsigned count);

void pair_close(struct pair *pair);

#endif
