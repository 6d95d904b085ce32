/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/cm.h"

#include "cm/device.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#define RESOLVE_TIMEOUT_MS 2000

/* ---- addresses ---- */

static int default_types(struct rdma_addrinfo *rai, const struct rdma_addrinfo *hints)
{
    if (hints) {
        rai->ai_flags = hints->ai_flags;
        rai->ai_qp_type = hints->ai_qp_type;
        rai->ai_port_space = hints->ai_port_space;
    }
    if (!rai->ai_qp_type && !rai->ai_port_space) {
        rai->ai_qp_type = IBV_QPT_RC;
        rai->ai_port_space = RDMA_PS_TCP;
    } else if (!rai->ai_qp_type) {
        bool ud = rai->ai_port_space == RDMA_PS_UDP || rai->ai_port_space == RDMA_PS_IPOIB;
        rai->ai_qp_type = ud ? IBV_QPT_UD : IBV_QPT_RC;
    } else if (!rai->ai_port_space) {
        rai->ai_port_space = rai->ai_qp_type == IBV_QPT_UD ? RDMA_PS_UDP : RDMA_PS_TCP;
    }
    if (rai->ai_qp_type == IBV_QPT_UD && rai->ai_port_space == RDMA_PS_TCP)
        return EAI_SOCKTYPE;
    return 0;
}

static int copy_address(const struct sockaddr *from, socklen_t length, struct sockaddr **to,
                        socklen_t *to_length)
{
    if (!from || !length)
        return 0;
    *to = calloc(1, length > sizeof(struct sockaddr_storage) ? length
                                                             : sizeof(struct sockaddr_storage));
    if (!*to)
        return EAI_MEMORY;
    memcpy(*to, from, length);
    *to_length = length;
    return 0;
}

static int look_up(const char *node, const char *service, const struct rdma_addrinfo *hints,
                   struct rdma_addrinfo *rai)
{
    bool passive = rai->ai_flags & RAI_PASSIVE;
    struct addrinfo ask = { .ai_socktype = SOCK_STREAM }, *found;
    int rc;

    if (passive)
        ask.ai_flags |= AI_PASSIVE;
    if (rai->ai_flags & RAI_NUMERICHOST)
        ask.ai_flags |= AI_NUMERICHOST;
    if (rai->ai_flags & RAI_FAMILY) {
        if (hints->ai_family != AF_INET && hints->ai_family != AF_INET6)
            return EAI_FAMILY;
        ask.ai_family = hints->ai_family;
    }
    if ((rc = getaddrinfo(node, service, &ask, &found)))
        return rc;
    if (passive)
        rc = copy_address(found->ai_addr, found->ai_addrlen, &rai->ai_src_addr, &rai->ai_src_len);
    else
        rc = copy_address(found->ai_addr, found->ai_addrlen, &rai->ai_dst_addr, &rai->ai_dst_len);
    rai->ai_family = found->ai_family;
    freeaddrinfo(found);
    return rc;
}

static int take_hinted(const struct rdma_addrinfo *hints, struct rdma_addrinfo *rai)
{
    int rc = 0;

    if (!hints)
        return 0;
    if (!rai->ai_src_addr && hints->ai_src_len)
        rc = copy_address(hints->ai_src_addr, hints->ai_src_len, &rai->ai_src_addr,
                          &rai->ai_src_len);
    if (!rc && !rai->ai_dst_addr && hints->ai_dst_len)
        rc = copy_address(hints->ai_dst_addr, hints->ai_dst_len, &rai->ai_dst_addr,
                          &rai->ai_dst_len);
    if (!rc && !rai->ai_family)
        rai->ai_family = rai->ai_dst_addr   ? rai->ai_dst_addr->sa_family
                         : rai->ai_src_addr ? rai->ai_src_addr->sa_family
                                            : 0;
    return rc;
}

/* The source address for the destination, if the destination is in the fabric. */
static int add_source(struct rdma_addrinfo *rai)
{
    struct sockaddr_storage storage;
    struct cm_address dst, source;
    struct cm_dev_addr dev_addr;

    if (rai->ai_src_addr || !rai->ai_dst_addr || (rai->ai_flags & RAI_PASSIVE) ||
        !address_from_sockaddr(&dst, rai->ai_dst_addr) ||
        (!address_is_multicast(&dst) && !address_is_reachable(&dst, &dev_addr)))
        return 0;
    address_pick_source(&source, &dst, device_own_node());
    address_to_sockaddr(&source, &storage, rai->ai_port_space);
    return copy_address((struct sockaddr *)&storage, address_sockaddr_len(&source),
                        &rai->ai_src_addr, &rai->ai_src_len);
}

int rdma_getaddrinfo(const char *node, const char *service, const struct rdma_addrinfo *hints,
                     struct rdma_addrinfo **res)
{
    struct rdma_addrinfo *rai;
    int rc;

    if ((!node && !service && !hints) || !res)
        return cm_fail(EINVAL);
    if ((rc = cm_attach()))
        return cm_fail(rc);
    rai = calloc(1, sizeof(*rai));
    if (!rai)
        return EAI_MEMORY;
    rc = default_types(rai, hints);
    if (!rc && (node || service))
        rc = look_up(node, service, hints, rai);
    if (!rc)
        rc = take_hinted(hints, rai);
    if (!rc)
        rc = add_source(rai);
    if (rc) {
        rdma_freeaddrinfo(rai);
        return rc;
    }
    *res = rai;
    return 0;
}

void rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
    while (res) {
        struct rdma_addrinfo *next = res->ai_next;
        free(res->ai_src_addr);
        free(res->ai_dst_addr);
        free(res->ai_src_canonname);
        free(res->ai_dst_canonname);
        free(res->ai_route);
        free(res->ai_connect);
        free(res);
        res = next;
    }
}

/* ---- endpoints ---- */

static int create_passive(struct rdma_cm_id *id, const struct rdma_addrinfo *res, struct ibv_pd *pd,
                          const struct ibv_qp_init_attr *attr)
{
    struct cm_id *cm = to_cm(id);

    if (rdma_bind_addr(id, res->ai_src_addr))
        return -1;
    if (!attr)
        return 0;
    cm->child_attr = malloc(sizeof(*attr));
    if (!cm->child_attr)
        return cm_fail(ENOMEM);
    *cm->child_attr = *attr;
    cm->child_attr->qp_type = res->ai_qp_type;
    id->pd = pd;
    return 0;
}

static int create_active(struct rdma_cm_id *id, const struct rdma_addrinfo *res, struct ibv_pd *pd,
                         struct ibv_qp_init_attr *attr)
{
    struct cm_id *cm = to_cm(id);

    if (rdma_resolve_addr(id, res->ai_src_addr, res->ai_dst_addr, RESOLVE_TIMEOUT_MS) ||
        rdma_resolve_route(id, RESOLVE_TIMEOUT_MS))
        return -1;
    if (attr) {
        attr->qp_type = res->ai_qp_type;
        if (rdma_create_qp(id, pd, attr))
            return -1;
    }
    if (!res->ai_connect_len)
        return 0;
    if (res->ai_connect_len > CM_PRIVATE_DATA_MAX)
        return cm_fail(EINVAL);
    cm->connect_data = malloc(res->ai_connect_len);
    if (!cm->connect_data)
        return cm_fail(ENOMEM);
    memcpy(cm->connect_data, res->ai_connect, res->ai_connect_len);
    cm->connect_len = res->ai_connect_len;
    return 0;
}

int rdma_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *res, struct ibv_pd *pd,
                   struct ibv_qp_init_attr *qp_init_attr)
{
    struct rdma_cm_id *made;
    int rc;

    if (!id || !res)
        return cm_fail(EINVAL);
    if (id_create(NULL, &made, NULL, res->ai_port_space, res->ai_qp_type))
        return -1;
    if (res->ai_flags & RAI_PASSIVE)
        rc = create_passive(made, res, pd, qp_init_attr);
    else
        rc = create_active(made, res, pd, qp_init_attr);
    if (rc) {
        int err = errno;
        rdma_destroy_ep(made);
        return cm_fail(err);
    }
    *id = made;
    return 0;
}

void rdma_destroy_ep(struct rdma_cm_id *id)
{
    if (id->qp)
        rdma_destroy_qp(id);
    if (id->srq)
        rdma_destroy_srq(id);
    rdma_destroy_id(id);
}

int rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **id)
{
    struct cm_id *cm = to_cm(listen);
    struct rdma_cm_event *event;

    if (!cm->sync || !id || cm->state != CM_LISTENING)
        return cm_fail(EINVAL);
    event_discard_own(cm);
    if (rdma_get_cm_event(listen->channel, &event))
        return -1;
    if (event->status || event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
        int err = event->status < 0 ? -event->status : EINVAL;
        rdma_ack_cm_event(event);
        return cm_fail(err);
    }
    if (cm->child_attr) {
        struct ibv_qp_init_attr attr = *cm->child_attr;
        if (rdma_create_qp(event->id, listen->pd, &attr)) {
            int err = errno;
            struct rdma_cm_id *child = event->id;
            rdma_ack_cm_event(event);
            rdma_destroy_id(child);
            return cm_fail(err);
        }
    }
    *id = event->id;
    (*id)->event = event;
    return 0;
}
