/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/transport.h"

#include "cm/device.h"

#include <stdlib.h>

#define SECOND            1000000000ull
#define REQUEST_TIMEOUT   (60 * SECOND)
#define ANSWER_INTERVAL   (20 * SECOND)
#define RETRY_INTERVAL    (SECOND / 50)
#define LISTENER_PATIENCE (SECOND / 10)

static void refuse_locally(struct cm_id *cm)
{
    if (cm_is_ud(cm))
        connect_closed(cm, RDMA_CM_EVENT_UNREACHABLE, SIDR_UNSUPPORTED);
    else
        connect_closed(cm, RDMA_CM_EVENT_REJECTED, REJECT_INVALID_SERVICE_ID);
}

/* Treated like a lost packet: sent again until the listener's backlog has space. */
static int keep_unsent(struct cm_id *cm, const struct cm_message *m)
{
    if (!cm->unsent) {
        cm->unsent = malloc(sizeof(*m));
        if (!cm->unsent)
            return ENOMEM;
        *cm->unsent = *m;
    }
    channel_set_due(cm, now_ns() + RETRY_INTERVAL);
    return 0;
}

/* Addresses resolve at once here. On a network that takes milliseconds, in which a server may still
 * start to listen, so give it that time. */
static bool is_young(const struct cm_id *cm)
{
    return cm->waited < LISTENER_PATIENCE;
}

static int request(struct cm_id *cm, struct cm_message *m)
{
    struct cm_binding *b = binding_find_listener(cm->id.ps, &cm->dst, &cm->dst_dev_addr);
    struct cm_dev_addr dev_addr = cm->dst_dev_addr;

    if (!b && is_young(cm))
        return keep_unsent(cm, m);
    if (!b) {
        refuse_locally(cm);
        return 0;
    }
    if (b->pending >= b->backlog)
        return keep_unsent(cm, m);
    dev_addr.node = b->node;
    device_gid(&dev_addr, &cm->id.route.addr.addr.ibaddr.dgid);
    id_fill_path(cm, device_lid(&dev_addr));
    m->to = b->owner.id;
    m->port_index = dev_addr.port_index;
    cm->peer = b->owner;
    int err = channel_watch(cm) ? mailbox_send(&cm->peer, m, true) : ESRCH;
    if (err)
        channel_unwatch(cm);
    if (err == ESRCH) {
        refuse_locally(cm);
        return 0;
    }
    if (err)
        return err;
    b->pending++;
    free(cm->unsent);
    cm->unsent = NULL;
    channel_set_due(cm, now_ns() + ANSWER_INTERVAL);
    return 0;
}

/* Counts intervals instead of reading a clock, so that a process which gets no processor, or is not
 * scheduled in virtual time, does not give up sooner. */
static void request_timer(struct cm_id *cm)
{
    cm->waited += cm->unsent ? RETRY_INTERVAL : ANSWER_INTERVAL;
    if (cm->waited >= REQUEST_TIMEOUT) {
        connect_withdraw(cm);
        connect_closed(cm, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
    } else if (cm->unsent) {
        struct cm_message m = *cm->unsent;
        if (request(cm, &m))
            connect_closed(cm, RDMA_CM_EVENT_UNREACHABLE, -ENOMEM);
    } else {
        channel_set_due(cm, now_ns() + ANSWER_INTERVAL);
    }
}

static int send_message(struct cm_id *cm, const struct cm_message *m, bool wake)
{
    return mailbox_send(&cm->peer, m, wake);
}

/* The message cannot be lost: no need to wait for an answer. */
static void disconnect(struct cm_id *cm, const struct cm_message *dreq)
{
    send_message(cm, dreq, true);
    connect_closed(cm, RDMA_CM_EVENT_DISCONNECTED, 0);
}

const struct cm_transport transport_segment = {
    .request = request,
    .send = send_message,
    .disconnect = disconnect,
    .request_timer = request_timer,
};
