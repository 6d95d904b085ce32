/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs, made and connected to those of a peer. */
#ifndef BENCH_ENDPOINT_H
#define BENCH_ENDPOINT_H

#include "bench/settings.h"

#include <infiniband/verbs.h>

struct bench;
struct rdma_cm_id;

struct endpoint_spec {
    enum transport transport;
    uint32_t send_depth;
    uint32_t receive_depth;
    uint32_t send_segments;
    uint32_t receive_segments;
    uint32_t inline_limit;
    uint32_t mtu; /* bytes, 0: the port's */
    uint8_t sl;
    uint8_t port; /* 0: the adapter's */
    struct ibv_cq *send_cq;
    struct ibv_cq *receive_cq;
    struct ibv_srq *srq;   /* or NULL; of XRC it takes all receives */
    struct ibv_xrcd *xrcd; /* of XRC */
};

struct endpoint_address {
    union ibv_gid gid;
    uint32_t qpn;        /* that receives */
    uint32_t sender_qpn; /* that sends: the same, but for XRC */
    uint32_t srqn;       /* of XRC */
    uint32_t mtu; /* enum ibv_mtu */
    uint16_t lid;
};

struct endpoint {
    struct ibv_qp *qp;
    struct ibv_qp *target; /* of XRC: what the peer sends to */
    struct ibv_srq *srq;
    uint32_t unsignalled;  /* sends since the last signalled one */
    struct ibv_ah *ah; /* of a UD endpoint */
    struct rdma_cm_id *id; /* of one that rdma_cm connected */
    struct endpoint_address mine;
    struct endpoint_address peer;
    enum transport transport;
    uint8_t port;
    uint8_t sl;
};

/* Bytes in front of every message that a UD receive gets. */
#define GRH_BYTES 40
#define ENDPOINT_QKEY 0x1a2b3c4d

int endpoint_create(struct bench *bench, const struct endpoint_spec *spec, struct endpoint *out);
void endpoint_destroy(struct endpoint *endpoint);

/* The steps of connecting, for those who time them: the peer's address must have been set. */
int endpoint_to_init(struct bench *bench, struct endpoint *endpoint);
int endpoint_to_rtr(struct bench *bench, struct endpoint *endpoint);
int endpoint_to_rts(struct bench *bench, struct endpoint *endpoint);

/* What the peer may do with the memory of this side. */
int endpoint_access(const struct bench *bench, const struct endpoint *endpoint);

/* How many reads and atomics a queue pair has under way at once, within the device's limit. */
uint8_t endpoint_reads_in_flight(int limit);

/* The way to the peer's address. */
struct ibv_ah_attr endpoint_path(const struct bench *bench, const struct endpoint *endpoint);

/* Collective: endpoint i of this rank and endpoint i of 'peer' are connected to each other. Every
 * rank gives the same count; one that has no part in it gives peer -1. */
int endpoints_connect(struct bench *bench, int peer, struct endpoint *endpoints,
                      unsigned int count);

static inline int endpoint_post_receive(struct endpoint *endpoint, struct ibv_recv_wr *wr)
{
    struct ibv_recv_wr *bad;

    return endpoint->srq ? ibv_post_srq_recv(endpoint->srq, wr, &bad) :
                           ibv_post_recv(endpoint->qp, wr, &bad);
}

/* Why this device has no such service, or NULL. */
const char *endpoint_transport_refusal(const struct bench *bench, enum transport transport);

/* The largest message of a service on this device. */
size_t endpoint_largest_message(const struct bench *bench, enum transport transport);

uint32_t endpoint_mtu_bytes(enum ibv_mtu mtu);
enum ibv_mtu mtu_of_bytes(uint32_t bytes);

#endif
