/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/cm.h"

#include "cm/device.h"
#include "util/log.h"

#include <stdlib.h>
#include <string.h>

/* Private data in CM messages, without the header that rdma_cm adds for IP addresses. */
unsigned receive_private_size(uint32_t type, uint16_t family)
{
    unsigned header = family == AF_IB ? 0 : 36;

    switch (type) {
    case CM_MSG_REQ:
        return 92 - header;
    case CM_MSG_REP:
        return 196;
    case CM_MSG_REJ:
        return 148;
    case CM_MSG_SIDR_REQ:
        return 216 - header;
    case CM_MSG_SIDR_REP:
        return 136;
    default:
        return 0;
    }
}

static void fill_conn_param(struct cm_event *event, const struct cm_message *m)
{
    struct rdma_conn_param *conn = &event->event.param.conn;

    event_set_private(event, m->private_data, receive_private_size(m->type, m->dst.family));
    conn->responder_resources = m->initiator_depth;
    conn->initiator_depth = m->responder_resources;
    conn->flow_control = m->flow_control;
    conn->retry_count = m->type == CM_MSG_REQ ? m->retry_count : 0;
    conn->rnr_retry_count = m->rnr_retry_count;
    conn->srq = m->srq;
    conn->qp_num = m->qpn;
}

static void fill_ud_param(struct cm_event *event, const struct cm_message *m)
{
    struct rdma_ud_param *ud = &event->event.param.ud;

    event_set_private(event, m->private_data, receive_private_size(m->type, m->dst.family));
    id_fill_ah(to_cm(event->event.id), &ud->ah_attr);
    ud->qp_num = m->qpn;
    ud->qkey = m->qkey;
}

static void remember_peer(struct cm_id *cm, const struct cm_message *m)
{
    cm->peer = m->from;
    cm->peer_known = true;
    cm->remote_qpn = m->qpn;
    cm->remote_psn = m->psn;
    cm->remote_lid = m->lid;
    cm->remote_ece = m->ece;
    memcpy(cm->remote_gid, m->gid, sizeof(cm->remote_gid));
    if (m->type == CM_MSG_REQ) {
        cm->path_mtu = m->path_mtu;
        cm->peer_ack_timeout = m->ack_timeout;
    }
    cm->rnr_retry_count = m->rnr_retry_count;
    cm->responder_resources = m->initiator_depth;
    cm->initiator_depth = m->responder_resources;
}

/* ---- REQ ---- */

static void answer_refusal(const struct cm_message *request, uint32_t reason)
{
    struct cm_message m = { .type = CM_MSG_REJ, .reason = reason, .to = request->from.id };

    if (request->type == CM_MSG_SIDR_REQ) {
        m.type = CM_MSG_SIDR_REP;
        m.reason = SIDR_UNSUPPORTED;
    }
    mailbox_self(&m.from);
    m.dst = request->dst;
    mailbox_send(&request->from, &m, true);
}

static struct cm_id *make_child(struct cm_id *listener, const struct cm_message *m)
{
    struct cm_dev_addr dev_addr = { .port_index = m->port_index, .gid_index = m->gid_index };
    struct cm_id *cm =
        id_make(listener->channel, listener->id.context, listener->id.ps, listener->id.qp_type);

    if (!cm)
        return NULL;
    if (id_use_device(cm, &dev_addr)) {
        id_free(cm);
        return NULL;
    }
    cm->src = m->dst;
    cm->dst = m->src;
    cm->state = CM_REQ_RCVD;
    cm->retry_count = m->retry_count;
    cm->ack_timeout = listener->ack_timeout;
    remember_peer(cm, m);
    id_publish_addresses(cm);
    id_set_dgid(cm, NULL);
    id_fill_path(cm, m->lid);
    return cm;
}

uint32_t receive_request(const struct cm_message *m, struct cm_id **child)
{
    struct cm_id *listener = cm_find(m->to);

    if (!listener || listener->state != CM_LISTENING)
        return REJECT_INVALID_SERVICE_ID;
    struct cm_id *cm = make_child(listener, m);
    struct cm_event *event = cm ? event_make(cm, RDMA_CM_EVENT_CONNECT_REQUEST, 0) : NULL;
    if (!event) {
        if (cm)
            id_free(cm);
        return REJECT_NO_RESOURCES;
    }
    event->event.listen_id = &listener->id;
    event->owner = listener;
    if (m->type == CM_MSG_SIDR_REQ)
        fill_ud_param(event, m);
    else
        fill_conn_param(event, m);
    event_queue(event);
    if (!channel_watch(cm))
        connect_peer_died(cm);
    *child = cm;
    return 0;
}

/* ---- REP, REJ, DREQ ---- */

static void receive_reply(struct cm_id *cm, const struct cm_message *m)
{
    struct cm_event *event = event_make(cm, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);

    if (cm->state != CM_REQ_SENT || !event) {
        free(event);
        return;
    }
    remember_peer(cm, m);
    cm->state = CM_REP_RCVD;
    channel_set_due(cm, 0);
    fill_conn_param(event, m);
    event_queue(event);
}

static void receive_lookup_reply(struct cm_id *cm, const struct cm_message *m)
{
    if (cm->state != CM_REQ_SENT)
        return;
    bool found = m->reason == 0;
    struct cm_event *event =
        event_make(cm, found ? RDMA_CM_EVENT_ESTABLISHED : RDMA_CM_EVENT_UNREACHABLE, m->reason);
    if (!event)
        return;
    channel_unwatch(cm);
    channel_set_due(cm, 0);
    cm->state = CM_DISCONNECTED;
    cm->remote_qpn = m->qpn;
    cm->remote_lid = m->lid;
    memcpy(cm->remote_gid, m->gid, sizeof(cm->remote_gid));
    fill_ud_param(event, m);
    event_queue(event);
}

static void receive_reject(struct cm_id *cm, const struct cm_message *m)
{
    if (cm->state < CM_REQ_SENT || cm->state > CM_REP_RCVD)
        return;
    channel_unwatch(cm);
    channel_set_due(cm, 0);
    cm->state = CM_DISCONNECTED;
    struct cm_event *event =
        cm_is_ud(cm) ? NULL : event_make(cm, RDMA_CM_EVENT_REJECTED, m->reason);
    if (!event)
        return;
    event_set_private(event, m->private_data, receive_private_size(m->type, m->dst.family));
    event_queue(event);
}

static void receive_ready(struct cm_id *cm)
{
    if (cm->state != CM_REP_SENT)
        return;
    cm->state = CM_CONNECTED;
    event_post(cm, RDMA_CM_EVENT_ESTABLISHED, 0);
}

static void receive_disconnect(struct cm_id *cm)
{
    if (cm->state >= CM_REP_SENT && cm->state <= CM_DREQ_SENT)
        connect_closed(cm, RDMA_CM_EVENT_DISCONNECTED, 0);
}

static void receive_moved(struct cm_id *cm, const struct cm_message *m)
{
    cm->peer.fd = m->from.fd;
    cm->peer.notify = m->from.notify;
}

/* Any process of this user can write to the mailbox: accept messages of the id's own peer only. */
static struct cm_id *find_receiver(const struct cm_message *m)
{
    struct cm_id *cm = m->to ? cm_find(m->to) : cm_find_request(&m->from);

    if (!cm || cm->peer.proc != m->from.proc || cm->peer.generation != m->from.generation)
        return NULL;
    return cm;
}

void receive_message(const struct cm_message *m)
{
    struct cm_id *cm;

    if (m->type == CM_MSG_REQ || m->type == CM_MSG_SIDR_REQ) {
        uint32_t reason = receive_request(m, &cm);
        if (reason)
            answer_refusal(m, reason);
        return;
    }
    cm = find_receiver(m);
    if (cm)
        receive_for(cm, m);
    else
        log_debug("cm: message of type %u for an unknown id dropped", m->type);
}

void receive_for(struct cm_id *cm, const struct cm_message *m)
{
    switch (m->type) {
    case CM_MSG_REP:
        receive_reply(cm, m);
        break;
    case CM_MSG_SIDR_REP:
        receive_lookup_reply(cm, m);
        break;
    case CM_MSG_REJ:
        receive_reject(cm, m);
        break;
    case CM_MSG_RTU:
        receive_ready(cm);
        break;
    case CM_MSG_DREQ:
        receive_disconnect(cm);
        break;
    case CM_MSG_MIGRATED:
        receive_moved(cm, m);
        break;
    case CM_MSG_ESTABLISHED:
        cm->peer_knows = true;
        break;
    }
}
