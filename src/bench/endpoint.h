/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs connected to those of a peer. */
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
    struct ibv_srq *srq;   /* or NULL; XRC receives only through it */
    struct ibv_xrcd *xrcd; /* XRC only */
};

struct endpoint_address {
    union ibv_gid gid;
    uint32_t qpn;        /* receives */
    uint32_t sender_qpn; /* sends; differs from qpn only for XRC */
    uint32_t srqn;       /* XRC only */
    uint32_t mtu;        /* enum ibv_mtu */
    uint16_t lid;
};

struct endpoint {
    struct ibv_qp *qp;
    struct ibv_qp *target; /* XRC only: the peer sends to it */
    struct ibv_srq *srq;
    uint32_t unsignalled;  /* sends since the last signalled one */
    struct ibv_ah *ah; /* UD only */
    struct rdma_cm_id *id; /* if connected by rdma_cm */
    struct endpoint_address mine;
    struct endpoint_address peer;
    enum transport transport;
    uint8_t port;
    uint8_t sl;
};

/* A UD receive has the GRH in front of the message. */
#define GRH_BYTES 40
#define ENDPOINT_QKEY 0x1a2b3c4d

int endpoint_create(struct bench *bench, const struct endpoint_spec *spec, struct endpoint *out);
void endpoint_destroy(struct endpoint *endpoint);

/* The steps of a connection, for experiments that time them. The peer's address must be set. */
int endpoint_to_init(struct bench *bench, struct endpoint *endpoint);
int endpoint_to_rtr(struct bench *bench, struct endpoint *endpoint);
int endpoint_to_rts(struct bench *bench, struct endpoint *endpoint);

/* Access flags of the queue pair. */
int endpoint_access(const struct bench *bench, const struct endpoint *endpoint);

/* Outstanding reads and atomics of a queue pair, within the device's limit. */
uint8_t endpoint_reads_in_flight(int limit);

/* Address attributes of the path to the peer. */
struct ibv_ah_attr endpoint_path(const struct bench *bench, const struct endpoint *endpoint);

/* Collective. Connects endpoint i of this rank with endpoint i of 'peer'. All ranks pass the same
 * count; a rank that does not take part passes peer -1. */
int endpoints_connect(struct bench *bench, int peer, struct endpoint *endpoints,
                      unsigned int count);

/* Collective. Connects each of the first 'ranks' ranks with all others of them. 'endpoints' has
 * 'count' for each rank; those of the own rank, and all of a rank that does not take part, are not
 * used. */
int endpoints_connect_all(struct bench *bench, int ranks, struct endpoint *endpoints,
                          unsigned int count);

static inline int endpoint_post_receive(struct endpoint *endpoint, struct ibv_recv_wr *wr)
{
    struct ibv_recv_wr *bad;

    return endpoint->srq ? ibv_post_srq_recv(endpoint->srq, wr, &bad) :
                           ibv_post_recv(endpoint->qp, wr, &bad);
}

/* Returns why the device does not support the transport, or NULL. */
const char *endpoint_transport_refusal(const struct bench *bench, enum transport transport);

/* Returns the largest message of the transport on this device. */
size_t endpoint_largest_message(const struct bench *bench, enum transport transport);

uint32_t endpoint_mtu_bytes(enum ibv_mtu mtu);
enum ibv_mtu endpoint_mtu_of_bytes(uint32_t bytes);

#endif
