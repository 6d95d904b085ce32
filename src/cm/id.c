/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/cm.h"
#include "check/check.h"

#include "cm/device.h"
#include "cm/ethernet.h"

#include <errno.h>
#include <infiniband/ib.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BACKLOG_MAX 1024

/* ---- creating and freeing ---- */

struct cm_id *id_make(struct cm_channel *channel, void *context, enum rdma_port_space ps,
                      enum ibv_qp_type qp_type)
{
    struct cm_id *cm = calloc(1, sizeof(*cm));

    if (!cm)
        return NULL;
    if (cm_register(cm)) {
        free(cm);
        return NULL;
    }
    cm->id.context = context;
    cm->id.ps = ps;
    cm->id.qp_type = qp_type;
    cm->binding = -1;
    cm->ack_timeout = -1;
    cm->dev_addr.node = cm->dst_dev_addr.node = ANY_NODE;
    cm->retry_count = cm->rnr_retry_count = 7;
    if (getentropy(&cm->psn, sizeof(cm->psn)))
        cm->psn = cm->handle;
    cm->psn &= 0xffffff;
    channel_add_id(channel, cm);
    return cm;
}

void id_free(struct cm_id *cm)
{
    cm_unregister(cm);
    channel_remove_id(cm);
    free(cm->unsent);
    free(cm->child_attr);
    free(cm->connect_data);
    rdma_freeaddrinfo(cm->addrinfo);
    free(cm);
}

int id_create(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
              enum rdma_port_space ps, enum ibv_qp_type qp_type)
{
    struct cm_channel *ch = channel ? to_channel(channel) : NULL;
    int err = cm_attach();

    if (err)
        return cm_fail(err);
    if (!ch && !(ch = channel_create()))
        return -1;
    cm_lock();
    struct cm_id *cm = id_make(ch, context, ps, qp_type);
    if (cm)
        cm->sync = !channel;
    else if (!channel)
        channel_destroy(ch);
    cm_unlock();
    if (!cm)
        return cm_fail(ENOMEM);
    *id = &cm->id;
    return 0;
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
                   enum rdma_port_space ps)
{
    switch (ps) {
    case RDMA_PS_IPOIB:
    case RDMA_PS_UDP:
        return id_create(channel, id, context, ps, IBV_QPT_UD);
    case RDMA_PS_TCP:
    case RDMA_PS_IB:
        return id_create(channel, id, context, ps, IBV_QPT_RC);
    default:
        return cm_fail(EPROTONOSUPPORT);
    }
}

/* Destroys REQs that the program has not taken, with their listener. */
static void drop_events(struct cm_id *cm)
{
    struct cm_event *event;

    while ((event = channel_pop_of(cm->channel, cm))) {
        if (event->event.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
            struct cm_id *child = to_cm(event->event.id);
            connect_end(child);
            drop_events(child);
            id_free(child);
        }
        free(event);
    }
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
    struct cm_id *cm = to_cm(id);
    struct cm_channel *own_channel;

    multicast_leave_all(cm);
    cm_lock();
    if (cm->state != CM_INHERITED) {
        connect_end(cm);
        if (cm->binding >= 0)
            binding_remove(cm->binding);
        cm->binding = -1;
        drop_events(cm);
    }
    cm_unlock();
    event_discard_own(cm);
    cm_lock();
    while (cm->state != CM_INHERITED && cm->completed != cm->reported)
        cm_wait_acknowledged();
    own_channel = cm->sync ? cm->channel : NULL;
    id_free(cm);
    if (own_channel)
        channel_destroy(own_channel);
    cm_unlock();
    return 0;
}

/* ---- device and addresses of an id ---- */

int id_use_device(struct cm_id *cm, const struct cm_dev_addr *dev_addr)
{
    int err = device_find(dev_addr, &cm->id.verbs, &cm->id.pd, &cm->id.port_num);

    if (err)
        return err;
    cm->dev_addr = *dev_addr;
    cm->dev_addr.node = device_own_node();
    device_gid(&cm->dev_addr, &cm->id.route.addr.addr.ibaddr.sgid);
    cm->id.route.addr.addr.ibaddr.pkey = 0xffff;
    return 0;
}

/* Over Ethernet, a GID is an IP address. */
void id_set_dgid(struct cm_id *cm, const struct cm_dev_addr *dev_addr)
{
    union ibv_gid *gid = &cm->id.route.addr.addr.ibaddr.dgid;

    if (hca_is_ethernet())
        memcpy(gid->raw, cm->dst.ip, sizeof(gid->raw));
    else if (dev_addr)
        device_gid(dev_addr, gid);
}

void id_fill_ah(const struct cm_id *cm, struct ibv_ah_attr *attr)
{
    memset(attr, 0, sizeof(*attr));
    attr->port_num = cm->id.port_num;
    attr->dlid = cm->remote_lid;
    if (!hca_is_ethernet())
        return;
    attr->is_global = 1;
    memcpy(attr->grh.dgid.raw, cm->remote_gid, sizeof(cm->remote_gid));
    attr->grh.sgid_index = cm->dev_addr.gid_index;
    attr->grh.hop_limit = CM_HOP_LIMIT;
}

void id_publish_addresses(struct cm_id *cm)
{
    if (cm->src.family)
        address_to_sockaddr(&cm->src, &cm->id.route.addr.src_storage, cm->id.ps);
    if (cm->dst.family)
        address_to_sockaddr(&cm->dst, &cm->id.route.addr.dst_storage, cm->id.ps);
}

void id_fill_path(struct cm_id *cm, uint16_t dlid)
{
    struct rdma_ib_addr *ib = &cm->id.route.addr.addr.ibaddr;

    cm->path = (struct ibv_sa_path_rec){
        .dgid = ib->dgid,
        .sgid = ib->sgid,
        .dlid = htobe16(dlid),
        .slid = htobe16(device_lid(&cm->dev_addr)),
        .hop_limit = hca_is_ethernet() ? CM_HOP_LIMIT : 0,
        .reversible = 1,
        .numb_path = 1,
        .pkey = 0xffff,
        .mtu_selector = 2,
        .mtu = device_mtu(cm->id.verbs, cm->id.port_num),
        .rate_selector = 2,
        .rate = IBV_RATE_100_GBPS,
        .packet_life_time_selector = 2,
        .packet_life_time = 12,
    };
    cm->id.route.path_rec = &cm->path;
    cm->id.route.num_paths = 1;
}

static void fill_binding(struct cm_id *cm, struct cm_binding *b)
{
    memset(b, 0, sizeof(*b));
    b->node = device_own_node();
    connect_self(cm, &b->owner);
    b->address = cm->src;
    b->port_space = cm->id.ps;
    b->reuse = cm->reuse;
    b->v6_only = cm->v6_only;
}

/* The address must belong to this node. A wildcard selects no device. */
static int check_source(struct cm_id *cm, const struct cm_address *address)
{
    struct cm_dev_addr dev_addr;

    if (address_is_any(address))
        return 0;
    if (!address_to_dev_addr(address, &dev_addr) ||
        (dev_addr.node != ANY_NODE && dev_addr.node != (int)device_own_node()))
        return EADDRNOTAVAIL;
    return id_use_device(cm, &dev_addr);
}

static int bind_locked(struct cm_id *cm, const struct cm_address *address)
{
    struct cm_binding wanted;
    unsigned index;
    int err;

    if (cm->state != CM_IDLE)
        return EINVAL;
    if ((err = check_source(cm, address)))
        return err;
    cm->src = *address;
    fill_binding(cm, &wanted);
    if ((err = binding_add(&wanted, &index)))
        return err;
    cm->binding = index;
    cm->src.port = wanted.address.port;
    cm->state = CM_BOUND;
    id_publish_addresses(cm);
    return 0;
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
    struct cm_address address;
    int err;

    if (!addr)
        return cm_fail(EINVAL);
    if (!address_from_sockaddr(&address, addr))
        return cm_fail(EAFNOSUPPORT);
    ethernet_replace_loopback(&address);
    cm_lock();
    err = bind_locked(to_cm(id), &address);
    cm_unlock();
    return cm_fail(err);
}

static int listen_locked(struct cm_id *cm, int backlog)
{
    struct cm_address any = { .family = AF_INET, .ip = { [10] = 0xff, [11] = 0xff } };
    int err = 0;

    if (cm->state == CM_IDLE)
        err = bind_locked(cm, &any);
    if (err)
        return err;
    if (cm->state != CM_BOUND && cm->state != CM_LISTENING)
        return EINVAL;
    if (backlog <= 0 || backlog > BACKLOG_MAX)
        backlog = BACKLOG_MAX;
    err = binding_listen(cm->binding, backlog);
    if (!err)
        cm->state = CM_LISTENING;
    return err;
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
    int err;

    cm_lock();
    err = listen_locked(to_cm(id), backlog);
    cm_unlock();
    return cm_fail(err);
}

/* ---- resolving ---- */

static int take_source(struct cm_id *cm, const struct sockaddr *src_addr,
                       const struct cm_address *dst)
{
    struct cm_address source;
    int err;

    if (cm->state == CM_BOUND && !address_is_any(&cm->src))
        return 0;
    if (cm->state == CM_BOUND || !src_addr) {
        address_pick_source(&source, dst, device_own_node());
        source.port = cm->src.port;
    } else if (!address_from_sockaddr(&source, src_addr)) {
        return EAFNOSUPPORT;
    } else if (address_is_any(&source)) {
        uint16_t port = source.port;
        address_pick_source(&source, dst, device_own_node());
        source.port = port;
    } else {
        ethernet_replace_loopback(&source);
    }
    if (source.port && cm->state == CM_IDLE)
        return bind_locked(cm, &source);
    if ((err = check_source(cm, &source)))
        return err;
    cm->src = source;
    if (!source.port) /* no listener: the port need not be unique */
        cm->src.port = 32768 + cm->psn % 28232;
    return 0;
}

static int resolve_addr_locked(struct cm_id *cm, const struct sockaddr *src_addr,
                               const struct sockaddr *dst_addr)
{
    struct cm_address dst;
    struct cm_dev_addr dev_addr = { .node = ANY_NODE };
    int err;

    if (cm->state != CM_IDLE && cm->state != CM_BOUND)
        return EINVAL;
    if (!address_from_sockaddr(&dst, dst_addr))
        return EAFNOSUPPORT;
    if (address_is_any(&dst))
        address_set_loopback(&dst);
    ethernet_replace_loopback(&dst);
    bool reachable = address_is_multicast(&dst) || address_is_reachable(&dst, &dev_addr);
    if (!reachable || check_cm(PLAN_ADDR_ERROR)) {
        event_post(cm, RDMA_CM_EVENT_ADDR_ERROR, -ENODEV);
        return 0;
    }
    if ((err = take_source(cm, src_addr, &dst)))
        return err;
    cm->dst = dst;
    cm->dst_dev_addr = dev_addr;
    cm->state = CM_ADDR_RESOLVED;
    id_set_dgid(cm, &dev_addr);
    id_publish_addresses(cm);
    event_post(cm, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
    return 0;
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src_addr, struct sockaddr *dst_addr,
                      int timeout_ms)
{
    struct cm_id *cm = to_cm(id);
    int err;

    if (!dst_addr)
        return cm_fail(EINVAL);
    if ((err = check_call(VERB_RESOLVE_ADDR)))
        return cm_fail(err);
    cm_lock();
    err = resolve_addr_locked(cm, src_addr, dst_addr);
    cm_unlock();
    return err ? cm_fail(err) : event_complete(cm, RDMA_CM_EVENT_ADDR_RESOLVED);
}

static int resolve_route_locked(struct cm_id *cm)
{
    struct cm_dev_addr dev_addr = cm->dst_dev_addr;

    if (cm->state != CM_ADDR_RESOLVED)
        return EINVAL;
    if (check_cm(PLAN_ROUTE_ERROR)) {
        event_post(cm, RDMA_CM_EVENT_ROUTE_ERROR, -ETIMEDOUT);
        return 0;
    }
    struct cm_binding *b = binding_find_listener(cm->id.ps, &cm->dst, &cm->dst_dev_addr);
    if (b)
        dev_addr.node = b->node;
    id_set_dgid(cm, &dev_addr);
    id_fill_path(cm, device_lid(&dev_addr));
    cm->state = CM_ROUTE_RESOLVED;
    event_post(cm, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
    return 0;
}

int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
    struct cm_id *cm = to_cm(id);
    int err = check_call(VERB_RESOLVE_ROUTE);

    if (err)
        return cm_fail(err);
    cm_lock();
    err = resolve_route_locked(cm);
    cm_unlock();
    return err ? cm_fail(err) : event_complete(cm, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

__be16 rdma_get_src_port(struct rdma_cm_id *id)
{
    return htobe16(to_cm(id)->src.port);
}

__be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
    return htobe16(to_cm(id)->dst.port);
}

/* ---- moving to another channel ---- */

static void move_id(struct cm_id *cm, struct cm_channel *to)
{
    struct cm_channel *from = cm->channel;
    bool watched = cm->watch;
    uint64_t due = cm->due;

    channel_unwatch(cm);
    channel_set_due(cm, 0);
    channel_remove_id(cm);
    channel_add_id(to, cm);
    channel_move_events(from, to, cm);
    if (due)
        channel_set_due(cm, due);
    connect_moved(cm);
    if (watched && !channel_watch(cm))
        connect_peer_died(cm);
}

int id_migrate(struct cm_id *cm, struct rdma_event_channel *channel)
{
    struct cm_channel *to = channel ? to_channel(channel) : channel_create();

    if (!to)
        return -1;
    if (cm->sync)
        event_discard_own(cm);
    cm_lock();
    while (cm->completed != cm->reported)
        cm_wait_acknowledged();
    struct cm_channel *old = cm->sync ? cm->channel : NULL;
    move_id(cm, to);
    cm->sync = !channel;
    if (old)
        channel_destroy(old);
    cm_unlock();
    return 0;
}

int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
    if (to_cm(id)->state == CM_INHERITED)
        return cm_fail(EINVAL);
    return id_migrate(to_cm(id), channel);
}

/* ---- options ---- */

static int set_path(struct cm_id *cm, const struct ibv_path_data *paths, size_t size)
{
    if (!size || size % sizeof(*paths))
        return EINVAL;
    return resolve_route_locked(cm);
}

static int set_id_option(struct cm_id *cm, int name, const void *value, size_t size)
{
    size_t wanted = name == RDMA_OPTION_ID_TOS || name == RDMA_OPTION_ID_ACK_TIMEOUT ? 1 : 4;
    int number = 0;

    if (size != wanted)
        return EINVAL;
    memcpy(&number, value, size);
    switch (name) {
    case RDMA_OPTION_ID_TOS:
        return 0;
    case RDMA_OPTION_ID_REUSEADDR:
        cm->reuse = number;
        if (cm->binding >= 0 && binding_at(cm->binding))
            binding_at(cm->binding)->reuse = cm->reuse;
        return 0;
    case RDMA_OPTION_ID_AFONLY:
        if (cm->state != CM_IDLE)
            return EINVAL;
        cm->v6_only = number;
        return 0;
    case RDMA_OPTION_ID_ACK_TIMEOUT:
        if (number > 31)
            return EINVAL;
        cm->ack_timeout = number;
        return 0;
    default:
        return ENOSYS;
    }
}

int rdma_set_option(struct rdma_cm_id *id, int level, int optname, void *optval, size_t optlen)
{
    int err = ENOSYS;

    if (!optval)
        return cm_fail(EINVAL);
    cm_lock();
    if (to_cm(id)->state == CM_INHERITED)
        err = EINVAL;
    else if (level == RDMA_OPTION_ID)
        err = set_id_option(to_cm(id), optname, optval, optlen);
    else if (level == RDMA_OPTION_IB && optname == RDMA_OPTION_IB_PATH)
        err = set_path(to_cm(id), optval, optlen);
    cm_unlock();
    return cm_fail(err);
}

int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
    if (!ece || ece->comp_mask)
        return cm_fail(EINVAL);
    to_cm(id)->local_ece = *ece;
    return 0;
}

int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
    if (!ece)
        return cm_fail(EINVAL);
    *ece = to_cm(id)->remote_ece;
    ece->comp_mask = 0;
    return 0;
}
