/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/transport.h"
#include "check/check.h"

#include "cm/device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TIMEWAIT 500000000ull

/* ---- messages ---- */

void connect_self(struct cm_id *cm, struct cm_peer *self)
{
    mailbox_self(self);
    self->id = cm->handle;
    self->fd = cm->channel->eventfd;
    self->notify = cm->channel->notify;
}

static void start_message(struct cm_id *cm, struct cm_message *m, enum cm_message_type type)
{
    memset(m, 0, sizeof(*m));
    m->type = type;
    connect_self(cm, &m->from);
    m->to = cm->state == CM_REQ_SENT ? 0 : cm->peer.id;
    m->src = cm->src;
    m->dst = cm->dst;
    m->psn = cm->psn;
    m->qkey = cm_qkey(cm);
    m->lid = device_lid(&cm->dev_addr);
    m->ece = cm->local_ece;
}

static int send_plain(struct cm_id *cm, enum cm_message_type type, uint32_t reason, bool wake)
{
    struct cm_message m;

    start_message(cm, &m, type);
    m.reason = reason;
    return transport()->send(cm, &m, wake);
}

/* Private data of the address information precedes the caller's. */
static int set_private(struct cm_id *cm, struct cm_message *m, const void *data, uint8_t length)
{
    unsigned capacity = receive_private_size(m->type, m->dst.family);
    unsigned before = m->type == CM_MSG_REQ || m->type == CM_MSG_SIDR_REQ ? cm->connect_len : 0;

    if (before + length > capacity || (length && !data))
        return EINVAL;
    if (before)
        memcpy(m->private_data, cm->connect_data, before);
    if (length)
        memcpy(m->private_data + before, data, length);
    return 0;
}

static void set_params(struct cm_id *cm, struct cm_message *m, const struct rdma_conn_param *param)
{
    struct ibv_qp *qp = cm->id.qp;

    m->qpn = qp ? qp->qp_num : param ? param->qp_num : 0;
    m->srq = qp ? qp->srq != NULL : param ? param->srq : 0;
    m->flow_control = param ? param->flow_control : 0;
    m->retry_count = param ? param->retry_count & 7 : 7;
    m->rnr_retry_count = param ? param->rnr_retry_count & 7 : 7;
    m->responder_resources = cm->responder_resources;
    m->initiator_depth = cm->initiator_depth;
}

static int check_param(struct cm_id *cm, const struct rdma_conn_param *param)
{
    const struct ibv_device_attr *attr = device_attr(cm->id.verbs);

    if (cm_is_ud(cm))
        return 0;
    if (!cm->id.qp && !param)
        return EINVAL;
    if (!param || !attr)
        return 0;
    if (param->responder_resources != RDMA_MAX_RESP_RES &&
        param->responder_resources > attr->max_qp_rd_atom)
        return EINVAL;
    if (param->initiator_depth != RDMA_MAX_INIT_DEPTH &&
        param->initiator_depth > attr->max_qp_init_rd_atom)
        return EINVAL;
    return 0;
}

static uint8_t limited(unsigned wanted, int most)
{
    return wanted < (unsigned)most ? wanted : (unsigned)most;
}

/* ---- end of a connection ---- */

void connect_closed(struct cm_id *cm, enum rdma_cm_event_type type, int status)
{
    channel_unwatch(cm);
    free(cm->unsent);
    cm->unsent = NULL;
    cm->state = CM_DISCONNECTED;
    event_post(cm, type, status);
    channel_set_due(cm, type == RDMA_CM_EVENT_DISCONNECTED ? now_ns() + TIMEWAIT : 0);
}

void connect_peer_died(struct cm_id *cm)
{
    bool stood = cm->state == CM_CONNECTED || cm->state == CM_REP_RCVD;

    if (stood)
        connect_closed(cm, RDMA_CM_EVENT_DISCONNECTED, 0);
    else
        connect_closed(cm, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
}

/* The end of a SIDR exchange causes no event at the peer. */
void connect_withdraw(struct cm_id *cm)
{
    if (!cm->unsent)
        send_plain(cm, CM_MSG_REJ, REJECT_TIMEOUT, !cm_is_ud(cm));
}

void connect_end(struct cm_id *cm)
{
    switch (cm->state) {
    case CM_REQ_SENT:
        connect_withdraw(cm);
        break;
    case CM_REQ_RCVD:
        if (cm_is_ud(cm))
            send_plain(cm, CM_MSG_SIDR_REP, SIDR_REJECT, true);
        else
            send_plain(cm, CM_MSG_REJ, REJECT_CONSUMER, true);
        break;
    case CM_REP_RCVD:
        send_plain(cm, CM_MSG_REJ, REJECT_CONSUMER, true);
        break;
    case CM_REP_SENT:
    case CM_CONNECTED:
        send_plain(cm, CM_MSG_DREQ, 0, true);
        break;
    default:
        break;
    }
    channel_unwatch(cm);
    channel_set_due(cm, 0);
    cm->state = CM_DISCONNECTED;
}

/* The peer reads its mailbox before it sends: no need to wake it. */
void connect_moved(struct cm_id *cm)
{
    struct cm_binding *b = cm->binding >= 0 ? binding_at(cm->binding) : NULL;

    if (b)
        connect_self(cm, &b->owner);
    switch (cm->state) {
    case CM_REQ_SENT:
        if (cm->unsent)
            connect_self(cm, &cm->unsent->from);
        else
            send_plain(cm, CM_MSG_MIGRATED, 0, false);
        break;
    case CM_REQ_RCVD:
        break; /* the peer does not know this id */
    case CM_REP_SENT:
    case CM_REP_RCVD:
    case CM_CONNECTED:
        send_plain(cm, CM_MSG_MIGRATED, 0, false);
        break;
    default:
        break;
    }
}

/* ---- active side: REQ ---- */

void connect_timer_over(struct cm_id *cm)
{
    if (cm->state == CM_DISCONNECTED)
        event_post(cm, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
    else if (cm->state == CM_REQ_SENT)
        transport()->request_timer(cm);
}

static int connect_locked(struct cm_id *cm, const struct rdma_conn_param *param)
{
    const struct ibv_device_attr *attr = device_attr(cm->id.verbs);
    struct cm_message m;
    int err;

    if (cm->state != CM_ROUTE_RESOLVED || !attr)
        return EINVAL;
    if ((err = check_param(cm, param)))
        return err;
    cm->responder_resources =
        limited(param ? param->responder_resources : RDMA_MAX_RESP_RES, attr->max_qp_rd_atom);
    cm->initiator_depth =
        limited(param ? param->initiator_depth : RDMA_MAX_INIT_DEPTH, attr->max_qp_init_rd_atom);
    start_message(cm, &m, cm_is_ud(cm) ? CM_MSG_SIDR_REQ : CM_MSG_REQ);
    set_params(cm, &m, param);
    if ((err = set_private(cm, &m, param ? param->private_data : NULL,
                           param ? param->private_data_len : 0)))
        return err;
    cm->retry_count = m.retry_count;
    cm->active = true;
    cm->waited = 0;
    if (check_cm(PLAN_CM_REJECT)) {
        connect_closed(cm, RDMA_CM_EVENT_REJECTED, REJECT_CONSUMER);
        return 0;
    }
    if (check_cm(PLAN_CM_TIMEOUT)) {
        connect_closed(cm, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
        return 0;
    }
    cm->state = CM_REQ_SENT;
    if ((err = transport()->request(cm, &m)))
        cm->state = CM_ROUTE_RESOLVED;
    return err;
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *conn_param)
{
    struct cm_id *cm = to_cm(id);
    int err = check_call(VERB_CONNECT);

    if (err)
        return cm_fail(err);
    cm_lock();
    err = connect_locked(cm, conn_param);
    cm_unlock();
    return err ? cm_fail(err) : event_complete(cm, RDMA_CM_EVENT_ESTABLISHED);
}

/* ---- active side: REP received ---- */

static int send_rtu(struct cm_id *cm)
{
    int err = 0;

    if (cm->state != CM_REP_RCVD)
        return EINVAL;
    if (!cm->peer_knows)
        err = send_plain(cm, CM_MSG_RTU, 0, true);
    cm->peer_knows = true;
    cm->state = CM_CONNECTED;
    return err == ESRCH ? 0 : err; /* the peer's death causes its own event */
}

void connect_finish_reply(struct cm_event *event)
{
    struct cm_id *cm = to_cm(event->event.id);
    int err = qp_to_rts(cm, cm->id.qp);

    cm_lock();
    if (cm->state == CM_REP_RCVD && (err || (err = send_rtu(cm)))) {
        send_plain(cm, CM_MSG_REJ, REJECT_CONSUMER, true);
        channel_unwatch(cm);
        cm->state = CM_DISCONNECTED;
    }
    cm_unlock();
    event->event.event = err ? RDMA_CM_EVENT_CONNECT_ERROR : RDMA_CM_EVENT_ESTABLISHED;
    event->event.status = -err;
}

int rdma_establish(struct rdma_cm_id *id)
{
    int err;

    if (id->qp)
        return cm_fail(EINVAL);
    cm_lock();
    err = send_rtu(to_cm(id));
    cm_unlock();
    return cm_fail(err);
}

/* ---- passive side: REP, REJ ---- */

/* The values of the REQ, unless the caller gives others, within the device's limits. */
static void adjust_resources(struct cm_id *cm, const struct rdma_conn_param *param)
{
    const struct ibv_device_attr *attr = device_attr(cm->id.verbs);

    if (!param || param->initiator_depth == RDMA_MAX_INIT_DEPTH)
        cm->initiator_depth = limited(cm->initiator_depth, attr->max_qp_init_rd_atom);
    else
        cm->initiator_depth = param->initiator_depth;
    if (!param || param->responder_resources == RDMA_MAX_RESP_RES)
        cm->responder_resources = limited(cm->responder_resources, attr->max_qp_rd_atom);
    else
        cm->responder_resources = param->responder_resources;
}

static int prepare_accept(struct cm_id *cm, const struct rdma_conn_param *param,
                          struct cm_message *m)
{
    int err;

    if (cm->state != CM_REQ_RCVD)
        return EINVAL;
    if ((err = check_param(cm, param)))
        return err;
    adjust_resources(cm, param);
    start_message(cm, m, cm_is_ud(cm) ? CM_MSG_SIDR_REP : CM_MSG_REP);
    set_params(cm, m, param);
    return set_private(cm, m, param ? param->private_data : NULL,
                       param ? param->private_data_len : 0);
}

static int send_reply(struct cm_id *cm, struct cm_message *m)
{
    int err;

    if (cm->state != CM_REQ_RCVD)
        return ECONNRESET;
    connect_self(cm, &m->from);
    if ((err = transport()->send(cm, m, true)))
        return err == ESRCH ? ECONNRESET : err;
    cm->state = cm_is_ud(cm) ? CM_DISCONNECTED : CM_REP_SENT;
    if (cm_is_ud(cm))
        channel_unwatch(cm);
    return 0;
}

/* As if the peer had answered the reply with a REJ, or not at all. The peer sees a REJ. */
static void end_accept(struct cm_id *cm, enum rdma_cm_event_type type, int status)
{
    send_plain(cm, CM_MSG_REJ, status < 0 ? REJECT_TIMEOUT : REJECT_CONSUMER, true);
    connect_closed(cm, type, status);
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *conn_param)
{
    struct cm_id *cm = to_cm(id);
    struct cm_message m;
    int err = check_call(VERB_ACCEPT);

    if (err)
        return cm_fail(err);
    cm_lock();
    err = prepare_accept(cm, conn_param, &m);
    cm_unlock();
    if (!err && id->qp && !cm_is_ud(cm))
        err = qp_to_rts(cm, id->qp);
    if (err)
        return cm_fail(err);
    cm_lock();
    if (!cm_is_ud(cm) && check_cm(PLAN_ACCEPT_REJECT))
        end_accept(cm, RDMA_CM_EVENT_REJECTED, REJECT_CONSUMER);
    else if (!cm_is_ud(cm) && check_cm(PLAN_ACCEPT_TIMEOUT))
        end_accept(cm, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
    else
        err = send_reply(cm, &m);
    cm_unlock();
    if (err || cm_is_ud(cm))
        return cm_fail(err);
    return event_complete(cm, RDMA_CM_EVENT_ESTABLISHED);
}

static int reject_locked(struct cm_id *cm, uint32_t reason, const void *data, uint8_t length)
{
    struct cm_message m;
    int err;

    if (cm->state != CM_REQ_RCVD && cm->state != CM_REP_RCVD)
        return EINVAL;
    start_message(cm, &m, cm_is_ud(cm) ? CM_MSG_SIDR_REP : CM_MSG_REJ);
    m.reason = cm_is_ud(cm) ? SIDR_REJECT : reason;
    if ((err = set_private(cm, &m, data, length)))
        return err;
    err = transport()->send(cm, &m, true);
    if (err == ENOMEM)
        return err;
    channel_unwatch(cm);
    cm->state = CM_DISCONNECTED;
    return 0;
}

static int reject(struct rdma_cm_id *id, uint32_t reason, const void *data, uint8_t length)
{
    int err;

    cm_lock();
    err = reject_locked(to_cm(id), reason, data, length);
    cm_unlock();
    return cm_fail(err);
}

int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
    return reject(id, REJECT_CONSUMER, private_data, private_data_len);
}

int rdma_reject_ece(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
    return reject(id, REJECT_VENDOR_OPTION, private_data, private_data_len);
}

/* ---- disconnecting ---- */

static int disconnect_locked(struct cm_id *cm, bool *waits)
{
    struct cm_message m;

    *waits = false;
    if (cm_is_ud(cm))
        return EINVAL;
    switch (cm->state) {
    case CM_CONNECTED:
    case CM_REP_SENT:
    case CM_REP_RCVD:
        start_message(cm, &m, CM_MSG_DREQ);
        transport()->disconnect(cm, &m);
        *waits = true;
        return 0;
    case CM_DREQ_SENT:
        *waits = cm->sync;
        return 0;
    case CM_DISCONNECTED: /* the peer was first: its event may still be queued */
        *waits = cm->sync && cm->channel->events;
        return 0;
    default:
        return EINVAL;
    }
}

void connect_lose(struct cm_id *cm)
{
    bool unused;

    qp_to_error(cm);
    cm_lock();
    disconnect_locked(cm, &unused);
    cm_unlock();
}

void connect_lose_by_handle(uint64_t handle)
{
    struct cm_id *cm;
    bool unused;

    cm_lock();
    if ((cm = cm_find(handle)))
        disconnect_locked(cm, &unused);
    cm_unlock();
}

int rdma_disconnect(struct rdma_cm_id *id)
{
    struct cm_id *cm = to_cm(id);
    bool waits;
    int err;

    if (cm->state >= CM_REP_SENT && cm->state <= CM_DISCONNECTED && !cm_is_ud(cm))
        qp_to_error(cm);
    cm_lock();
    err = disconnect_locked(cm, &waits);
    cm_unlock();
    if (err)
        return cm_fail(err);
    return waits ? event_complete(cm, RDMA_CM_EVENT_DISCONNECTED) : 0;
}

static int notify_locked(struct cm_id *cm)
{
    switch (cm->state) {
    case CM_REP_SENT:
        send_plain(cm, CM_MSG_ESTABLISHED, 0, false);
        cm->state = CM_CONNECTED;
        event_post(cm, RDMA_CM_EVENT_ESTABLISHED, 0);
        return 0;
    case CM_CONNECTED:
        return EISCONN;
    default:
        return EINVAL;
    }
}

int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
    int err;

    if (event != IBV_EVENT_COMM_EST)
        return cm_fail(EINVAL);
    cm_lock();
    err = notify_locked(to_cm(id));
    cm_unlock();
    return cm_fail(err);
}
