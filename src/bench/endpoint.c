/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/endpoint.h"
#include "bench/bench.h"
#include "bench/cm.h"

#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <string.h>

#define PSN            0
#define RNR_TIMER      12 /* 0.64 ms */
#define TIMEOUT        14 /* 67 ms */
#define RETRIES        7
#define RESPONDER_MASK (IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)

uint32_t endpoint_mtu_bytes(enum ibv_mtu mtu)
{
    return 128u << mtu;
}

enum ibv_mtu endpoint_mtu_of_bytes(uint32_t bytes)
{
    enum ibv_mtu mtu = IBV_MTU_256;

    while (mtu < IBV_MTU_4096 && endpoint_mtu_bytes(mtu) < bytes)
        mtu++;
    return mtu;
}

size_t endpoint_largest_message(const struct bench *bench, enum transport transport)
{
    const struct ibv_port_attr *port = &bench->adapter->port_attributes;

    return transport == TRANSPORT_UD ? endpoint_mtu_bytes(port->active_mtu) : port->max_msg_sz;
}

const char *endpoint_transport_refusal(const struct bench *bench, enum transport transport)
{
    if (transport == TRANSPORT_XRC && !(bench->adapter->limits.device_cap_flags & IBV_DEVICE_XRC))
        return "the device does not support XRC";
    if (bench->adapter->context->device->transport_type == IBV_TRANSPORT_IWARP &&
        transport != TRANSPORT_RC)
        return "iWARP supports only reliable connections";
    if (bench->settings->connect_by == CONNECT_BY_CM && transport != TRANSPORT_RC)
        return "rdma_cm connects RC only";
    if (bench->settings->connect_by == CONNECT_BY_CM && vtime.on)
        return "rdma_cm is not available in virtual time";
    return NULL;
}

static enum ibv_qp_type qp_type_of(enum transport transport)
{
    static const enum ibv_qp_type types[TRANSPORT_COUNT] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD,
                                                             IBV_QPT_XRC_SEND };

    return types[transport];
}

/* XRC receives through a target queue pair, which has no queues: it uses the domain's SRQs. */
static int create_target(struct bench *bench, const struct endpoint_spec *spec,
                         struct endpoint *endpoint)
{
    struct ibv_qp_init_attr_ex init = { .qp_type = IBV_QPT_XRC_RECV,
                                        .comp_mask = IBV_QP_INIT_ATTR_XRCD,
                                        .xrcd = spec->xrcd };

    endpoint->target = ibv_create_qp_ex(bench->adapter->context, &init);
    if (!endpoint->target)
        return bench_fail(bench, "ibv_create_qp_ex of an XRC target: %s", strerror(errno));
    if (ibv_get_srq_num(spec->srq, &endpoint->mine.srqn))
        return bench_fail(bench, "cannot get the number of the XRC SRQ");
    endpoint->mine.qpn = endpoint->target->qp_num;
    return BENCH_OK;
}

int endpoint_create(struct bench *bench, const struct endpoint_spec *spec, struct endpoint *out)
{
    const struct adapter *adapter = bench->adapter;
    const struct ibv_port_attr *port = &adapter->port_attributes;
    struct ibv_qp_init_attr init = {
        .send_cq = spec->send_cq,
        .recv_cq = spec->receive_cq,
        .srq = spec->xrcd ? NULL : spec->srq,
        .qp_type = qp_type_of(spec->transport),
        .cap = { .max_send_wr = spec->send_depth,
                 .max_recv_wr = spec->srq ? 0 : spec->receive_depth,
                 .max_send_sge = spec->send_segments ? spec->send_segments : 1,
                 .max_recv_sge = spec->receive_segments ? spec->receive_segments : 1,
                 .max_inline_data = spec->inline_limit },
    };

    memset(out, 0, sizeof(*out));
    out->qp = ibv_create_qp(adapter->pd, &init);
    if (!out->qp)
        return bench_fail(bench, "ibv_create_qp (%s, %u sends, %u receives, inline %u): %s%s",
                          transport_names[spec->transport], spec->send_depth, spec->receive_depth,
                          spec->inline_limit, strerror(errno), adapter_memory_hint(errno));
    out->srq = spec->srq;
    out->transport = spec->transport;
    out->port = spec->port ? spec->port : adapter->port;
    out->sl = spec->sl;
    out->mine.qpn = out->mine.sender_qpn = out->qp->qp_num;
    out->mine.gid = adapter->gid;
    out->mine.lid = port->lid;
    out->mine.mtu = spec->mtu ? endpoint_mtu_of_bytes(spec->mtu) : port->active_mtu;
    if (spec->xrcd && create_target(bench, spec, out)) {
        endpoint_destroy(out);
        return BENCH_FAILED;
    }
    if (out->port != adapter->port) {
        struct ibv_port_attr other;

        if (ibv_query_port(adapter->context, out->port, &other) ||
            ibv_query_gid(adapter->context, out->port, adapter->gid_index, &out->mine.gid)) {
            endpoint_destroy(out);
            return bench_fail(bench, "cannot query port %u", out->port);
        }
        out->mine.lid = other.lid;
    }
    return BENCH_OK;
}

void endpoint_destroy(struct endpoint *endpoint)
{
    if (endpoint->ah)
        ibv_destroy_ah(endpoint->ah);
    if (endpoint->qp)
        ibv_destroy_qp(endpoint->qp);
    if (endpoint->target)
        ibv_destroy_qp(endpoint->target);
    if (endpoint->id)
        rdma_destroy_id(endpoint->id);
    endpoint->id = NULL;
    endpoint->ah = NULL;
    endpoint->qp = NULL;
    endpoint->target = NULL;
}

static int modify(struct bench *bench, struct ibv_qp *qp, struct ibv_qp_attr *attributes, int mask,
                  const char *state)
{
    int error = ibv_modify_qp(qp, attributes, mask);

    return error ? bench_fail(bench, "ibv_modify_qp to %s: %s", state, strerror(error)) : BENCH_OK;
}

int endpoint_access(const struct bench *bench, const struct endpoint *endpoint)
{
    int access = IBV_ACCESS_REMOTE_WRITE;

    if (endpoint->transport == TRANSPORT_UC)
        return access;
    access |= IBV_ACCESS_REMOTE_READ;
    return bench->adapter->limits.atomic_cap == IBV_ATOMIC_NONE
               ? access
               : access | IBV_ACCESS_REMOTE_ATOMIC;
}

int endpoint_to_init(struct bench *bench, struct endpoint *endpoint)
{
    struct ibv_qp_attr attributes = { .qp_state = IBV_QPS_INIT, .port_num = endpoint->port };
    int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

    if (endpoint->transport == TRANSPORT_UD) {
        attributes.qkey = ENDPOINT_QKEY;
        mask |= IBV_QP_QKEY;
    } else {
        attributes.qp_access_flags = endpoint_access(bench, endpoint);
        mask |= IBV_QP_ACCESS_FLAGS;
    }
    if (endpoint->target && modify(bench, endpoint->target, &attributes, mask, "INIT"))
        return BENCH_FAILED;
    return modify(bench, endpoint->qp, &attributes, mask, "INIT");
}

struct ibv_ah_attr endpoint_path(const struct bench *bench, const struct endpoint *endpoint)
{
    struct ibv_ah_attr path = {
        .dlid = endpoint->peer.lid,
        .sl = endpoint->sl,
        .port_num = endpoint->port,
        .is_global = bench->adapter->global,
    };

    if (path.is_global) {
        path.grh.dgid = endpoint->peer.gid;
        path.grh.sgid_index = bench->adapter->gid_index;
        path.grh.hop_limit = 64;
    }
    return path;
}

uint8_t endpoint_reads_in_flight(int limit)
{
    return limit > 16 ? 16 : limit;
}

int endpoint_to_rtr(struct bench *bench, struct endpoint *endpoint)
{
    struct ibv_qp_attr attributes = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu =
            endpoint->mine.mtu < endpoint->peer.mtu ? endpoint->mine.mtu : endpoint->peer.mtu,
        .dest_qp_num = endpoint->peer.qpn,
        .rq_psn = PSN,
        .max_dest_rd_atomic = endpoint_reads_in_flight(bench->adapter->limits.max_qp_rd_atom),
        .min_rnr_timer = RNR_TIMER,
        .ah_attr = endpoint_path(bench, endpoint),
    };
    int mask = IBV_QP_STATE;

    if (endpoint->transport == TRANSPORT_UD) {
        endpoint->ah = ibv_create_ah(bench->adapter->pd, &attributes.ah_attr);
        if (!endpoint->ah)
            return bench_fail(bench, "ibv_create_ah: %s", strerror(errno));
    } else {
        mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    }
    /* Of XRC's two queue pairs, only the target has responder attributes. */
    if (endpoint->target) {
        struct ibv_qp_attr target = attributes;

        target.dest_qp_num = endpoint->peer.sender_qpn;
        if (modify(bench, endpoint->target, &target, mask | RESPONDER_MASK, "RTR"))
            return BENCH_FAILED;
    } else if (endpoint->transport == TRANSPORT_RC) {
        mask |= RESPONDER_MASK;
    }
    return modify(bench, endpoint->qp, &attributes, mask, "RTR");
}

int endpoint_to_rts(struct bench *bench, struct endpoint *endpoint)
{
    struct ibv_qp_attr attributes = {
        .qp_state = IBV_QPS_RTS,
        .sq_psn = PSN,
        .timeout = TIMEOUT,
        .retry_cnt = RETRIES,
        .rnr_retry = RETRIES,
        .max_rd_atomic = endpoint_reads_in_flight(bench->adapter->limits.max_qp_init_rd_atom),
    };
    int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

    if (endpoint->transport != TRANSPORT_UC && endpoint->transport != TRANSPORT_UD)
        mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    return modify(bench, endpoint->qp, &attributes, mask, "RTS");
}

/* IPv4 and IPv6 GIDs cannot reach each other. */
static int check_kinds(struct bench *bench, const struct endpoint *endpoint)
{
    bool mine = adapter_gid_is_ipv4(&endpoint->mine.gid), theirs = adapter_gid_is_ipv4(&endpoint->peer.gid);

    if (!bench->adapter->global || mine == theirs)
        return BENCH_OK;
    return bench_fail(bench,
                      "the local GID is IPv%c, the peer's IPv%c: choose matching ones with "
                      "--gid-index ('ibv_devinfo -v' lists them)",
                      mine ? '4' : '6', theirs ? '4' : '6');
}

static int connect_one(struct bench *bench, struct endpoint *endpoint)
{
    if (check_kinds(bench, endpoint))
        return BENCH_FAILED;
    if (endpoint_to_init(bench, endpoint) || endpoint_to_rtr(bench, endpoint) ||
        endpoint_to_rts(bench, endpoint))
        return BENCH_FAILED;
    return BENCH_OK;
}

static int exchange_and_connect(struct bench *bench, int peer, struct endpoint *endpoints,
                                unsigned int count)
{
    struct endpoint_address *all, *mine;
    int status = BENCH_FAILED;

    if (bench->settings->connect_by == CONNECT_BY_CM)
        return cm_connect(bench, peer, endpoints, count);
    all = calloc((size_t)(bench->ranks + 1) * count, sizeof(*all));
    if (!all)
        return bench_fail(bench, "out of memory");
    mine = all + (size_t)bench->ranks * count;
    for (unsigned int i = 0; i < count && peer >= 0; i++)
        mine[i] = endpoints[i].mine;
    if (bench_exchange(bench, mine, count * sizeof(*mine), all))
        goto out;
    for (unsigned int i = 0; i < count && peer >= 0; i++) {
        endpoints[i].peer = all[(size_t)peer * count + i];
        if (connect_one(bench, &endpoints[i]))
            goto out;
    }
    status = BENCH_OK;
out:
    free(all);
    return status;
}

/* No rank sends before all ranks can receive. */
int endpoints_connect(struct bench *bench, int peer, struct endpoint *endpoints, unsigned int count)
{
    return exchange_and_connect(bench, peer, endpoints, count) || bench_barrier(bench) ?
               BENCH_FAILED : BENCH_OK;
}

/* In round k, ranks whose sum is k modulo the number of ranks connect: each pair meets once. */
int endpoints_connect_all(struct bench *bench, int ranks, struct endpoint *endpoints,
                          unsigned int count)
{
    for (int round = 0; round < ranks; round++) {
        int peer = (round - bench->rank + ranks) % ranks;
        bool meets = bench->rank < ranks && peer != bench->rank;

        if (exchange_and_connect(bench, meets ? peer : -1,
                                 meets ? endpoints + (size_t)peer * count : NULL, count))
            return BENCH_FAILED;
    }
    return bench_barrier(bench);
}
