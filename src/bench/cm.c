/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/cm.h"
#include "bench/bench.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <string.h>

#define POLL_MS    100
#define RESOLVE_MS 5000
#define RETRIES    7

/* The address at which the lower rank of a pair listens. */
struct listen_address {
    struct sockaddr_in6 address; /* or a sockaddr_in */
};

/* ---- events ---- */

/* Waits for the next event, which must be 'expected'. The caller acknowledges it. */
static struct rdma_cm_event *next_event(struct bench *bench, enum rdma_cm_event_type expected)
{
    struct rdma_event_channel *channel = bench->adapter->cm_channel;
    struct pollfd ready = { .fd = channel->fd, .events = POLLIN };
    uint64_t since = patience_now();
    struct rdma_cm_event *event;

    while (poll(&ready, 1, POLL_MS) <= 0) {
        if (!bench_alive(bench, since))
            return NULL;
    }
    if (rdma_get_cm_event(channel, &event)) {
        bench_fail(bench, "rdma_get_cm_event: %s", strerror(errno));
        return NULL;
    }
    if (event->event == expected)
        return event;
    bench_fail(bench, "rdma_cm: %s (status %d) instead of %s", rdma_event_str(event->event),
               event->status, rdma_event_str(expected));
    rdma_ack_cm_event(event);
    return NULL;
}

static int await_event(struct bench *bench, enum rdma_cm_event_type expected)
{
    struct rdma_cm_event *event = next_event(bench, expected);

    if (!event)
        return BENCH_FAILED;
    rdma_ack_cm_event(event);
    return BENCH_OK;
}

static int fail_call(struct bench *bench, const char *call)
{
    return bench_fail(bench, "%s: %s", call, strerror(errno));
}

/* ---- addresses ---- */

/* Chooses an IP address: the port's GID on Ethernet, or the local address of the route to the other
 * host, or else the loopback address. */
static void own_address(const struct bench *bench, struct listen_address *out)
{
    struct sockaddr_in *ipv4 = (struct sockaddr_in *)&out->address;
    union ibv_gid gid = bench->adapter->gid;
    bool ip = bench->adapter->port_attributes.link_layer == IBV_LINK_LAYER_ETHERNET;

    memset(out, 0, sizeof(*out));
    if (!ip)
        ip = adapter_route_address(bench, &gid);
    if (ip && !adapter_gid_is_ipv4(&gid)) {
        out->address.sin6_family = AF_INET6;
        memcpy(&out->address.sin6_addr, gid.raw, sizeof(gid.raw));
        return;
    }
    ipv4->sin_family = AF_INET;
    ipv4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (ip)
        memcpy(&ipv4->sin_addr, gid.raw + 12, sizeof(ipv4->sin_addr));
}

/* ---- queue pair states ---- */

static int modify_qp(struct bench *bench, struct endpoint *endpoint, enum ibv_qp_state state)
{
    struct ibv_qp_attr attributes = { .qp_state = state };
    int mask, error;

    if (rdma_init_qp_attr(endpoint->id, &attributes, &mask))
        return fail_call(bench, "rdma_init_qp_attr");
    if (state == IBV_QPS_INIT)
        attributes.qp_access_flags = endpoint_access(bench, endpoint);
    if (state == IBV_QPS_RTR && endpoint->mine.mtu < attributes.path_mtu)
        attributes.path_mtu = endpoint->mine.mtu;
    error = ibv_modify_qp(endpoint->qp, &attributes, mask);
    return error ? bench_fail(bench, "ibv_modify_qp with rdma_cm: %s", strerror(error)) : BENCH_OK;
}

static int modify_to_rts(struct bench *bench, struct endpoint *endpoint)
{
    if (modify_qp(bench, endpoint, IBV_QPS_INIT) || modify_qp(bench, endpoint, IBV_QPS_RTR) ||
        modify_qp(bench, endpoint, IBV_QPS_RTS))
        return BENCH_FAILED;
    return BENCH_OK;
}

static struct rdma_conn_param parameters_of(const struct bench *bench,
                                            const struct endpoint *endpoint)
{
    const struct ibv_device_attr *limits = &bench->adapter->limits;

    return (struct rdma_conn_param){
        .responder_resources = endpoint_reads_in_flight(limits->max_qp_rd_atom),
        .initiator_depth = endpoint_reads_in_flight(limits->max_qp_init_rd_atom),
        .retry_count = RETRIES,
        .rnr_retry_count = RETRIES,
        .qp_num = endpoint->qp->qp_num,
        .srq = endpoint->srq != NULL,
    };
}

/* ---- both sides ---- */

static int listen_at(struct bench *bench, struct listen_address *at, unsigned int backlog,
                     struct rdma_cm_id **out)
{
    if (rdma_create_id(bench->adapter->cm_channel, out, NULL, RDMA_PS_TCP))
        return fail_call(bench, "rdma_create_id");
    if (rdma_bind_addr(*out, (struct sockaddr *)&at->address))
        return fail_call(bench, "rdma_bind_addr");
    if (rdma_listen(*out, backlog))
        return fail_call(bench, "rdma_listen");
    at->address.sin6_port = rdma_get_src_port(*out);
    return BENCH_OK;
}

/* The private data of a request is the index of the endpoint. */
static int accept_one(struct bench *bench, struct endpoint *endpoints, unsigned int count)
{
    struct rdma_cm_event *event = next_event(bench, RDMA_CM_EVENT_CONNECT_REQUEST);
    struct rdma_conn_param parameters;
    struct endpoint *endpoint;
    uint32_t index = UINT32_MAX;

    if (!event)
        return BENCH_FAILED;
    if (event->param.conn.private_data_len >= sizeof(index))
        memcpy(&index, event->param.conn.private_data, sizeof(index));
    index = ntohl(index);
    if (index >= count || endpoints[index].id) {
        rdma_reject(event->id, NULL, 0);
        rdma_destroy_id(event->id);
        rdma_ack_cm_event(event);
        return bench_fail(bench, "rdma_cm: connection request for an unknown endpoint");
    }
    endpoint = &endpoints[index];
    endpoint->id = event->id;
    rdma_ack_cm_event(event);
    if (modify_to_rts(bench, endpoint))
        return BENCH_FAILED;
    parameters = parameters_of(bench, endpoint);
    if (rdma_accept(endpoint->id, &parameters))
        return fail_call(bench, "rdma_accept");
    return await_event(bench, RDMA_CM_EVENT_ESTABLISHED);
}

static int connect_one(struct bench *bench, struct endpoint *endpoint, uint32_t index,
                       const struct listen_address *from, const struct listen_address *to)
{
    struct rdma_conn_param parameters = parameters_of(bench, endpoint);
    uint32_t number = htonl(index);

    if (rdma_create_id(bench->adapter->cm_channel, &endpoint->id, NULL, RDMA_PS_TCP))
        return fail_call(bench, "rdma_create_id");
    if (rdma_resolve_addr(endpoint->id, (struct sockaddr *)&from->address,
                          (struct sockaddr *)&to->address, RESOLVE_MS))
        return fail_call(bench, "rdma_resolve_addr");
    if (await_event(bench, RDMA_CM_EVENT_ADDR_RESOLVED))
        return BENCH_FAILED;
    if (rdma_resolve_route(endpoint->id, RESOLVE_MS))
        return fail_call(bench, "rdma_resolve_route");
    if (await_event(bench, RDMA_CM_EVENT_ROUTE_RESOLVED))
        return BENCH_FAILED;
    parameters.private_data = &number;
    parameters.private_data_len = sizeof(number);
    if (rdma_connect(endpoint->id, &parameters))
        return fail_call(bench, "rdma_connect");
    if (await_event(bench, RDMA_CM_EVENT_CONNECT_RESPONSE) || modify_to_rts(bench, endpoint))
        return BENCH_FAILED;
    return rdma_establish(endpoint->id) ? fail_call(bench, "rdma_establish") : BENCH_OK;
}

static int open_channel(struct bench *bench)
{
    if (!bench->adapter->cm_channel)
        bench->adapter->cm_channel = rdma_create_event_channel();
    return bench->adapter->cm_channel ? BENCH_OK : fail_call(bench, "rdma_create_event_channel");
}

/* The lower rank of each pair listens and accepts requests in the order of their arrival. */
int cm_connect(struct bench *bench, int peer, struct endpoint *endpoints, unsigned int count)
{
    struct listen_address *all = calloc(bench->ranks, sizeof(*all)), mine;
    struct rdma_cm_id *listener = NULL;
    bool listens = bench->rank < peer;
    int status = all ? open_channel(bench) : bench_fail(bench, "out of memory");

    own_address(bench, &mine);
    if (!status && listens)
        status = listen_at(bench, &mine, count, &listener);
    if (!status)
        status = bench_exchange(bench, &mine, sizeof(mine), all);
    mine.address.sin6_port = 0;
    for (unsigned int i = 0; i < count && peer >= 0 && !status; i++)
        status = listens ? accept_one(bench, endpoints, count)
                         : connect_one(bench, &endpoints[i], i, &mine, &all[peer]);
    if (!status)
        status = bench_barrier(bench);
    if (listener)
        rdma_destroy_id(listener);
    free(all);
    return status;
}
