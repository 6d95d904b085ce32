/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/cm.h"
#include "bench/bench.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_MS    100
#define RESOLVE_MS 5000
#define RETRIES    7

/* Where the lower rank of a pair listens. */
struct meeting_point {
    struct sockaddr_in6 address; /* or a sockaddr_in in its place */
};

/* ---- events ---- */

/* The next event, which must be 'expected'; the caller acknowledges it. */
static struct rdma_cm_event *next_event(struct bench *bench, enum rdma_cm_event_type expected)
{
    struct rdma_event_channel *channel = bench->adapter->cm_channel;
    struct pollfd ready = { .fd = channel->fd, .events = POLLIN };
    uint64_t since = monotonic_ns();
    struct rdma_cm_event *event;

    while (poll(&ready, 1, LOOK_MS) <= 0) {
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

static int complain(struct bench *bench, const char *call)
{
    return bench_fail(bench, "%s: %s", call, strerror(errno));
}

/* ---- addresses ---- */

/* By IP: that of the port's address where it is one, else that of the way to the other host, else
 * this host's own. */
static void own_address(const struct bench *bench, struct meeting_point *out)
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

/* ---- the steps of a queue pair ---- */

static int step(struct bench *bench, struct endpoint *endpoint, enum ibv_qp_state state)
{
    struct ibv_qp_attr attributes = { .qp_state = state };
    int mask, error;

    if (rdma_init_qp_attr(endpoint->id, &attributes, &mask))
        return complain(bench, "rdma_init_qp_attr");
    if (state == IBV_QPS_INIT)
        attributes.qp_access_flags = endpoint_access(bench, endpoint);
    if (state == IBV_QPS_RTR && endpoint->mine.mtu < attributes.path_mtu)
        attributes.path_mtu = endpoint->mine.mtu;
    error = ibv_modify_qp(endpoint->qp, &attributes, mask);
    return error ? bench_fail(bench, "ibv_modify_qp, by rdma_cm: %s", strerror(error)) : BENCH_OK;
}

static int take_steps(struct bench *bench, struct endpoint *endpoint)
{
    if (step(bench, endpoint, IBV_QPS_INIT) || step(bench, endpoint, IBV_QPS_RTR) ||
        step(bench, endpoint, IBV_QPS_RTS))
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

static int listen_at(struct bench *bench, struct meeting_point *place, unsigned int backlog,
                     struct rdma_cm_id **out)
{
    if (rdma_create_id(bench->adapter->cm_channel, out, NULL, RDMA_PS_TCP))
        return complain(bench, "rdma_create_id");
    if (rdma_bind_addr(*out, (struct sockaddr *)&place->address))
        return complain(bench, "rdma_bind_addr");
    if (rdma_listen(*out, backlog))
        return complain(bench, "rdma_listen");
    place->address.sin6_port = rdma_get_src_port(*out);
    return BENCH_OK;
}

/* A request says which endpoint it is for. */
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
        return bench_fail(bench, "rdma_cm: a request for no endpoint of this process");
    }
    endpoint = &endpoints[index];
    endpoint->id = event->id;
    rdma_ack_cm_event(event);
    if (take_steps(bench, endpoint))
        return BENCH_FAILED;
    parameters = parameters_of(bench, endpoint);
    if (rdma_accept(endpoint->id, &parameters))
        return complain(bench, "rdma_accept");
    return await_event(bench, RDMA_CM_EVENT_ESTABLISHED);
}

static int connect_one(struct bench *bench, struct endpoint *endpoint, uint32_t index,
                       const struct meeting_point *from, const struct meeting_point *to)
{
    struct rdma_conn_param parameters = parameters_of(bench, endpoint);
    uint32_t number = htonl(index);

    if (rdma_create_id(bench->adapter->cm_channel, &endpoint->id, NULL, RDMA_PS_TCP))
        return complain(bench, "rdma_create_id");
    if (rdma_resolve_addr(endpoint->id, (struct sockaddr *)&from->address,
                          (struct sockaddr *)&to->address, RESOLVE_MS))
        return complain(bench, "rdma_resolve_addr");
    if (await_event(bench, RDMA_CM_EVENT_ADDR_RESOLVED))
        return BENCH_FAILED;
    if (rdma_resolve_route(endpoint->id, RESOLVE_MS))
        return complain(bench, "rdma_resolve_route");
    if (await_event(bench, RDMA_CM_EVENT_ROUTE_RESOLVED))
        return BENCH_FAILED;
    parameters.private_data = &number;
    parameters.private_data_len = sizeof(number);
    if (rdma_connect(endpoint->id, &parameters))
        return complain(bench, "rdma_connect");
    if (await_event(bench, RDMA_CM_EVENT_CONNECT_RESPONSE) || take_steps(bench, endpoint))
        return BENCH_FAILED;
    return rdma_establish(endpoint->id) ? complain(bench, "rdma_establish") : BENCH_OK;
}

static int open_channel(struct bench *bench)
{
    if (!bench->adapter->cm_channel)
        bench->adapter->cm_channel = rdma_create_event_channel();
    return bench->adapter->cm_channel ? BENCH_OK : complain(bench, "rdma_create_event_channel");
}

/* The lower rank of each pair listens, and takes requests in the order they are made. */
int cm_connect(struct bench *bench, int peer, struct endpoint *endpoints, unsigned int count)
{
    struct meeting_point *all = calloc(bench->ranks, sizeof(*all)), mine;
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
