/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/cm.h"

#include "cm/device.h"
#include "hca/addr.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MULTICAST_QPN 0xffffff

/* MGIDs as IPoIB forms them (RFC 4391), with rdma_cm's own signature for RDMA_PS_UDP. An address
 * that is an MGID already is used unchanged. */
static void map_group(struct cm_id *cm, const struct cm_address *address, union ibv_gid *mgid)
{
    const uint8_t *ip = address->ip;
    bool v4 = address_is_v4(address);

    if (address->family == AF_IB || (!v4 && ip[1] >> 4 == 1 && ip[2] == 0xa0 && ip[3] == 0x1b)) {
        memcpy(mgid->raw, ip, 16);
        return;
    }
    memset(mgid->raw, 0, 16);
    mgid->raw[0] = 0xff;
    mgid->raw[1] = v4 ? 0x12 : 0x10 | (ip[1] & 0xf);
    mgid->raw[2] = v4 ? 0x40 : 0x60;
    mgid->raw[3] = cm->id.ps == RDMA_PS_UDP ? 0x01 : 0x1b;
    mgid->raw[4] = mgid->raw[5] = 0xff; /* partition */
    if (v4) {
        mgid->raw[12] = ip[12] & 0xf;
        memcpy(mgid->raw + 13, ip + 13, 3);
    } else {
        memcpy(mgid->raw + 6, ip + 6, 10);
    }
}

static uint16_t group_lid(const union ibv_gid *mgid)
{
    uint32_t hash = 2166136261u;

    for (unsigned i = 0; i < sizeof(mgid->raw); i++)
        hash = (hash ^ mgid->raw[i]) * 16777619u;
    return ADDR_MCAST_LID + (hash ^ hash >> 16) % 0x3fff;
}

static struct cm_event *make_join_event(struct cm_id *cm, struct cm_group *group)
{
    struct cm_event *event = event_make(cm, RDMA_CM_EVENT_MULTICAST_JOIN, 0);

    if (!event)
        return NULL;
    struct rdma_ud_param *ud = &event->event.param.ud;
    ud->private_data = group->context;
    ud->ah_attr.is_global = 1;
    ud->ah_attr.grh.dgid = group->mgid;
    ud->ah_attr.grh.hop_limit = 1;
    ud->ah_attr.dlid = group->mlid;
    ud->ah_attr.port_num = cm->id.port_num;
    ud->qp_num = MULTICAST_QPN;
    ud->qkey = cm_qkey(cm);
    event->group = group;
    return event;
}

static int join_locked(struct cm_id *cm, const struct cm_address *address, bool send_only,
                       void *context)
{
    struct cm_group *group;

    if (!cm->id.verbs ||
        (cm->state != CM_BOUND && cm->state != CM_ADDR_RESOLVED && cm->state != CM_ROUTE_RESOLVED))
        return EINVAL;
    group = calloc(1, sizeof(*group));
    if (!group)
        return ENOMEM;
    group->address = *address;
    group->send_only = send_only;
    group->context = context;
    map_group(cm, address, &group->mgid);
    group->mlid = group_lid(&group->mgid);
    struct cm_event *event = make_join_event(cm, group);
    if (!event) {
        free(group);
        return ENOMEM;
    }
    group->next = cm->groups;
    cm->groups = group;
    event_queue(event);
    return 0;
}

static int join(struct rdma_cm_id *id, const struct sockaddr *addr, bool send_only, void *context)
{
    struct cm_id *cm = to_cm(id);
    struct cm_address address;
    int err;

    if (!addr || !address_from_sockaddr(&address, addr) || !address_is_multicast(&address))
        return cm_fail(EINVAL);
    cm_lock();
    err = join_locked(cm, &address, send_only, context);
    cm_unlock();
    return err ? cm_fail(err) : event_complete(cm, RDMA_CM_EVENT_MULTICAST_JOIN);
}

int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
    return join(id, addr, false, context);
}

int rdma_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *mc_join_attr,
                           void *context)
{
    const uint32_t wanted = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;

    if (!mc_join_attr || mc_join_attr->comp_mask >= RDMA_CM_JOIN_MC_ATTR_RESERVED ||
        !(mc_join_attr->comp_mask & RDMA_CM_JOIN_MC_ATTR_ADDRESS))
        return cm_fail(EINVAL);
    bool flagged = (mc_join_attr->comp_mask & wanted) == wanted;
    uint32_t flags = flagged ? mc_join_attr->join_flags : RDMA_MC_JOIN_FLAG_FULLMEMBER;
    if (flags >= RDMA_MC_JOIN_FLAG_RESERVED)
        return cm_fail(EINVAL);
    return join(id, mc_join_attr->addr, flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER, context);
}

void multicast_attach(struct cm_event *event)
{
    struct cm_group *group = event->group;
    struct ibv_qp *qp = event->event.id->qp;

    if (!qp || group->send_only)
        return;
    int err = ibv_attach_mcast(qp, &group->mgid, group->mlid);
    if (err) {
        event->event.event = RDMA_CM_EVENT_MULTICAST_ERROR;
        event->event.status = -err;
        return;
    }
    group->attached = true;
}

/* ---- leaving ---- */

static void drop_join_event(struct cm_id *cm, struct cm_group *group)
{
    struct cm_event *event, *kept = NULL;

    /* Keep the order of the other events: take all out, put all but one back. */
    while ((event = channel_pop_of(cm->channel, cm))) {
        if (event->group == group) {
            free(event);
        } else {
            event->next = kept;
            kept = event;
        }
    }
    struct cm_event *in_order = NULL;
    while ((event = kept)) {
        kept = event->next;
        event->next = in_order;
        in_order = event;
    }
    while ((event = in_order)) {
        in_order = event->next;
        event_queue(event);
    }
}

static struct cm_group *unlink_group(struct cm_id *cm, const struct cm_address *address)
{
    for (struct cm_group **at = &cm->groups; *at; at = &(*at)->next) {
        struct cm_group *group = *at;
        if (address && !address_equal_ip(&group->address, address))
            continue;
        *at = group->next;
        return group;
    }
    return NULL;
}

static bool leave(struct cm_id *cm, const struct cm_address *address)
{
    cm_lock();
    struct cm_group *group = unlink_group(cm, address);
    if (group && cm->state != CM_INHERITED)
        drop_join_event(cm, group);
    cm_unlock();
    if (!group)
        return false;
    if (group->attached && cm->id.qp)
        ibv_detach_mcast(cm->id.qp, &group->mgid, group->mlid);
    if (cm->id.event && container_of(cm->id.event, struct cm_event, event)->group == group)
        event_discard_own(cm);
    cm_lock();
    while (cm->state != CM_INHERITED && group->completed != group->reported)
        cm_wait_acknowledged();
    cm_unlock();
    free(group);
    return true;
}

int rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr)
{
    struct cm_address address;

    if (!addr || !address_from_sockaddr(&address, addr))
        return cm_fail(EINVAL);
    return leave(to_cm(id), &address) ? 0 : cm_fail(EADDRNOTAVAIL);
}

void multicast_leave_all(struct cm_id *cm)
{
    while (leave(cm, NULL))
        ;
}
