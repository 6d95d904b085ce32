/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections by datagrams, which may be lost, repeated, delayed or forged. A message that wants an
 * answer is repeated until the id has left the state that waits for it. */
#include "cm/device.h"
#include "cm/mad_agent.h"
#include "cm/transport.h"
#include "hca/proc.h"
#include "util/log.h"

#include <string.h>
#include <unistd.h>

#define FIRST_INTERVAL     250000000ull
#define LONGEST_INTERVAL   60000000000ull
#define RESPONSE_TIMEOUT   20 /* 4.3 s */
#define MAX_RETRIES        15
#define DISCONNECT_RETRIES 4
#define MRA_TIMEOUT        24 /* 69 s: the program has the request and takes its time */
#define LISTENER_PATIENCE  250000000ull
#define HELD               64
#define PROC_SHIFT         20 /* in an id: the process slot, and a random number */

static uint64_t timeout_ns(uint8_t exponent)
{
    uint64_t ns = 4096ull << (exponent & 31);

    return ns < LONGEST_INTERVAL ? ns : LONGEST_INTERVAL;
}

/* ---- ids ---- */

_Static_assert(MAX_PROCS <= 1u << (32 - PROC_SHIFT), "an id holds any process slot");

unsigned mad_proc_of_id(uint32_t id)
{
    return id >> PROC_SHIFT;
}

static struct cm_id *find_own(uint32_t local_id)
{
    uint32_t cursor = 0;
    struct cm_id *cm;

    while ((cm = cm_next(&cursor)))
        if (local_id && cm->mad.local_id == local_id)
            break;
    return cm;
}

/* The id that a peer's request has created. */
static struct cm_id *find_passive(uint32_t remote_id, const uint8_t peer[16])
{
    uint32_t cursor = 0;
    struct cm_id *cm;

    while ((cm = cm_next(&cursor)))
        if (!cm->active && cm->mad.local_id && cm->mad.remote_id == remote_id &&
            !memcmp(cm->remote_gid, peer, 16))
            break;
    return cm;
}

/* A connection of the QP that a peer now connects anew: the peer has forgotten it. */
static struct cm_id *find_stale(uint32_t qpn, const uint8_t peer[16])
{
    uint32_t cursor = 0;
    struct cm_id *cm;

    while ((cm = cm_next(&cursor)))
        if (qpn && cm->mad.local_id && cm->remote_qpn == qpn && cm->state >= CM_REP_SENT &&
            cm->state <= CM_CONNECTED && !memcmp(cm->remote_gid, peer, 16))
            break;
    return cm;
}

static void give_id(struct cm_id *cm)
{
    uint32_t number = cm->handle;

    do {
        if (getentropy(&number, sizeof(number)))
            number++;
        number = (uint32_t)proc_self << PROC_SHIFT | (number & ((1u << PROC_SHIFT) - 1));
    } while (!number || find_own(number));
    cm->mad.local_id = number;
}

/* ---- sending ---- */

static bool send_bytes(const struct cm_id *cm, const uint8_t bytes[MAD_BYTES])
{
    struct hca_mad mad = { .gid_index = cm->dev_addr.gid_index };

    memcpy(mad.peer, cm->remote_gid, sizeof(mad.peer));
    memcpy(mad.bytes, bytes, MAD_BYTES);
    return hca_engine->send_mad(&mad);
}

static uint8_t about(const struct cm_id *cm)
{
    return cm->state == CM_REQ_RCVD   ? MAD_ABOUT_REQ
           : cm->state == CM_REP_RCVD ? MAD_ABOUT_REP
                                      : MAD_ABOUT_OTHER;
}

static void fill(struct cm_id *cm, const struct cm_message *m, struct mad_message *mad)
{
    uint16_t port = cm->active ? cm->dst.port : cm->src.port;

    *mad = (struct mad_message){
        .transaction = cm->mad.transaction,
        .local_id = cm->mad.local_id,
        .remote_id = cm->mad.remote_id,
        .service_id = (uint64_t)cm->id.ps << 16 | port,
        .about = about(cm),
        .response_timeout = m->type == CM_MSG_MRA ? MRA_TIMEOUT : RESPONSE_TIMEOUT,
        .max_retries = MAX_RETRIES,
        .hop_limit = CM_HOP_LIMIT,
        .message = *m,
    };
    memcpy(mad->local_gid, cm->id.route.addr.addr.ibaddr.sgid.raw, 16);
    memcpy(mad->remote_gid, cm->remote_gid, 16);
    if (m->type == CM_MSG_DREQ)
        mad->message.qpn = cm->remote_qpn;
}

/* The state in which an id waits for the answer to a message, or CM_IDLE. */
static enum cm_state waiting_state(enum cm_message_type type)
{
    switch (type) {
    case CM_MSG_REQ:
    case CM_MSG_SIDR_REQ:
        return CM_REQ_SENT;
    case CM_MSG_REP:
        return CM_REP_SENT;
    case CM_MSG_DREQ:
        return CM_DREQ_SENT;
    default:
        return CM_IDLE;
    }
}

static bool waits(const struct cm_id *cm)
{
    return cm->mad.due && cm->state == waiting_state(cm->mad.last_type);
}

static int send_message(struct cm_id *cm, const struct cm_message *m, bool wake)
{
    struct mad_message mad;

    if (m->type == CM_MSG_MIGRATED || m->type == CM_MSG_ESTABLISHED ||
        (cm_is_ud(cm) && m->type == CM_MSG_REJ))
        return 0; /* of no concern to the peer */
    fill(cm, m, &mad);
    mad_encode(&mad, cm->mad.last);
    cm->mad.last_type = m->type;
    cm->mad.due = 0;
    if (waiting_state(m->type) != CM_IDLE) {
        cm->mad.retries_left = m->type == CM_MSG_DREQ  ? DISCONNECT_RETRIES
                               : m->type == CM_MSG_REP ? cm->mad.max_retries
                                                       : MAX_RETRIES;
        cm->mad.interval = FIRST_INTERVAL;
        cm->mad.due = now_ns() + FIRST_INTERVAL;
        mad_agent_wake();
    }
    return send_bytes(cm, cm->mad.last) ? 0 : ESRCH;
}

/* A short message that does not replace the last one. */
static void send_beside(struct cm_id *cm, enum cm_message_type type)
{
    struct cm_message m = { .type = type };
    struct mad_message mad;
    uint8_t bytes[MAD_BYTES];

    fill(cm, &m, &mad);
    mad_encode(&mad, bytes);
    send_bytes(cm, bytes);
}

static uint8_t service_of(const struct cm_id *cm)
{
    enum ibv_qp_type type = cm->id.qp ? cm->id.qp->qp_type : cm->id.qp_type;

    return type == IBV_QPT_UC ? 1 : type == IBV_QPT_RC || type == IBV_QPT_UD ? 0 : 3;
}

static int request(struct cm_id *cm, struct cm_message *m)
{
    give_id(cm);
    cm->mad.transaction = (uint64_t)cm->psn << 32 | cm->mad.local_id;
    cm->mad.longest_interval = timeout_ns(RESPONSE_TIMEOUT);
    cm->path_mtu = device_mtu(cm->id.verbs, cm->id.port_num);
    memcpy(cm->remote_gid, cm->dst.ip, sizeof(cm->remote_gid));
    m->path_mtu = cm->path_mtu;
    m->ack_timeout = qp_ack_timeout(cm);
    m->service = service_of(cm);
    if (send_message(cm, m, true))
        log_debug("cm: cannot send a request now"); /* it is repeated */
    return 0;
}

static void disconnect(struct cm_id *cm, const struct cm_message *dreq)
{
    send_message(cm, dreq, true);
    cm->state = CM_DREQ_SENT;
}

/* ---- repeating ---- */

static void give_up(struct cm_id *cm)
{
    if (cm->state == CM_REQ_SENT)
        connect_withdraw(cm);
    if (cm->state == CM_DREQ_SENT)
        connect_closed(cm, RDMA_CM_EVENT_DISCONNECTED, 0);
    else
        connect_closed(cm, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT);
}

static void repeat(struct cm_id *cm, uint64_t now)
{
    struct cm_mad_state *mad = &cm->mad;

    if (!waits(cm)) {
        mad->due = 0;
    } else if (!mad->retries_left) {
        mad->due = 0;
        give_up(cm);
    } else {
        mad->retries_left--;
        mad->interval *= 2;
        if (mad->interval > mad->longest_interval)
            mad->interval = mad->longest_interval;
        mad->due = now + mad->interval;
        send_bytes(cm, mad->last);
    }
}

/* ---- requests ---- */

static void answer(const struct hca_mad *to, const struct mad_message *m, uint32_t type,
                   uint32_t reason)
{
    struct hca_mad mad = { .gid_index = to->gid_index };
    struct mad_message reply = {
        .transaction = m->transaction,
        .local_id = m->remote_id,
        .remote_id = m->local_id,
        .service_id = m->service_id,
        .about = m->message.type == CM_MSG_REQ ? MAD_ABOUT_REQ : MAD_ABOUT_REP,
        .message = { .type = type, .reason = reason },
    };

    memcpy(mad.peer, to->peer, sizeof(mad.peer));
    mad_encode(&reply, mad.bytes);
    hca_engine->send_mad(&mad);
}

static void refuse(const struct hca_mad *mad, const struct mad_message *m, uint32_t reason)
{
    if (m->message.type == CM_MSG_SIDR_REQ)
        answer(mad, m, CM_MSG_SIDR_REP, SIDR_UNSUPPORTED);
    else
        answer(mad, m, CM_MSG_REJ, reason);
}

void mad_answer_stranger(const struct hca_mad *mad, const struct mad_message *m)
{
    switch (m->message.type) {
    case CM_MSG_REQ:
    case CM_MSG_SIDR_REQ:
        refuse(mad, m, REJECT_INVALID_SERVICE_ID);
        break;
    case CM_MSG_REP:
        answer(mad, m, CM_MSG_REJ, REJECT_INVALID_ID);
        break;
    case CM_MSG_DREQ:
        answer(mad, m, CM_MSG_DREP, 0);
        break;
    default:
        log_debug("cm: message of type %u for an unknown id dropped", m->message.type);
    }
}

/* The addresses in a request are those of the packet. */
static bool is_honest(const struct hca_mad *mad, const struct mad_message *m)
{
    union ibv_gid own;

    return hca_engine->gid(mad->gid_index, &own) && !memcmp(m->message.src.ip, mad->peer, 16) &&
           !memcmp(m->message.dst.ip, own.raw, 16) &&
           (m->message.type != CM_MSG_REQ ||
            (!memcmp(m->local_gid, mad->peer, 16) && !memcmp(m->remote_gid, own.raw, 16)));
}

/* Our answer was lost or takes long. */
static void repeated_request(struct cm_id *cm, const struct hca_mad *mad,
                             const struct mad_message *m)
{
    switch (cm->state) {
    case CM_REQ_RCVD:
        if (!cm_is_ud(cm))
            send_beside(cm, CM_MSG_MRA);
        break;
    case CM_REP_SENT:
        send_bytes(cm, cm->mad.last);
        break;
    case CM_DISCONNECTED:
        if (cm->mad.last_type == CM_MSG_REJ || cm->mad.last_type == CM_MSG_SIDR_REP)
            send_bytes(cm, cm->mad.last);
        else
            refuse(mad, m, REJECT_STALE);
        break;
    default:
        break;
    }
}

static uint32_t why_refused(const struct mad_message *m, const struct hca_mad *mad,
                            struct cm_id *listener)
{
    struct cm_id *stale;

    if (cm_is_ud(listener) != (m->message.type == CM_MSG_SIDR_REQ))
        return REJECT_INVALID_SERVICE_ID;
    if (cm_is_ud(listener))
        return 0;
    if ((stale = find_stale(m->message.qpn, mad->peer))) {
        connect_end(stale);
        connect_closed(stale, RDMA_CM_EVENT_DISCONNECTED, 0);
        return REJECT_STALE;
    }
    if (m->message.path_mtu < IBV_MTU_256 || m->message.path_mtu > hca_link_mtu())
        return REJECT_INVALID_MTU;
    return 0;
}

static void become_passive(struct cm_id *cm, const struct mad_message *m)
{
    give_id(cm);
    cm->mad.remote_id = m->local_id;
    cm->mad.transaction = m->transaction;
    cm->mad.max_retries = m->max_retries;
    cm->mad.longest_interval = timeout_ns(m->response_timeout);
    if (cm->mad.longest_interval < FIRST_INTERVAL)
        cm->mad.longest_interval = FIRST_INTERVAL;
}

/* Requests for which nobody listens, just yet: perftest's server, for one, begins to listen again
 * only after it has talked to its client. */
static struct {
    uint64_t due; /* 0: free */
    uint32_t id;
    struct hca_mad mad;
} held[HELD];

static bool hold(const struct hca_mad *mad, const struct mad_message *m)
{
    int place = -1;

    for (int i = 0; i < HELD; i++) {
        if (!held[i].due)
            place = i;
        else if (held[i].id == m->local_id && !memcmp(held[i].mad.peer, mad->peer, 16))
            return true;
    }
    if (place < 0)
        return false;
    held[place].due = now_ns() + LISTENER_PATIENCE;
    held[place].id = m->local_id;
    held[place].mad = *mad;
    return true;
}

static void receive_new_request(const struct hca_mad *mad, struct mad_message *m, bool may_hold)
{
    struct cm_dev_addr anywhere = { .node = ANY_NODE };
    struct cm_binding *b = binding_find_listener(mad_port_space(m), &m->message.dst, &anywhere);
    struct cm_id *listener, *child;
    uint32_t reason;

    if (b && b->owner.proc != (uint32_t)proc_self)
        return; /* it began to listen just now: the peer repeats its request */
    listener = b ? cm_find(b->owner.id) : NULL;
    if (!listener) {
        if (!may_hold || !hold(mad, m))
            refuse(mad, m, REJECT_INVALID_SERVICE_ID);
        return;
    }
    if (b->pending >= b->backlog)
        return;
    reason = why_refused(m, mad, listener);
    m->message.to = b->owner.id;
    if (reason || (reason = receive_request(&m->message, &child))) {
        refuse(mad, m, reason);
        return;
    }
    b->pending++;
    become_passive(child, m);
}

/* ---- messages for an id ---- */

static struct cm_id *find_receiver(const struct hca_mad *mad, const struct mad_message *m)
{
    struct cm_id *cm = find_own(m->remote_id);

    /* Who withdraws a request has had no answer and knows only its own id. */
    if (!cm && m->message.type == CM_MSG_REJ && m->message.reason == REJECT_TIMEOUT)
        cm = find_passive(m->local_id, mad->peer);
    if (!cm || memcmp(cm->remote_gid, mad->peer, 16))
        return NULL;
    if (cm->mad.remote_id && m->local_id && m->local_id != cm->mad.remote_id)
        return NULL;
    return cm;
}

static uint8_t smaller(uint8_t a, uint8_t b)
{
    return a < b ? a : b;
}

static void receive_reply(struct cm_id *cm, struct mad_message *m)
{
    struct cm_message *reply = &m->message;

    switch (cm->state) {
    case CM_REQ_SENT:
        cm->mad.remote_id = m->local_id;
        reply->initiator_depth = smaller(reply->initiator_depth, cm->responder_resources);
        reply->responder_resources = smaller(reply->responder_resources, cm->initiator_depth);
        receive_for(cm, reply);
        break;
    case CM_REP_RCVD:
        send_beside(cm, CM_MSG_MRA);
        break;
    case CM_CONNECTED:
        send_beside(cm, CM_MSG_RTU);
        break;
    default:
        break;
    }
}

static void receive_patience(struct cm_id *cm, const struct mad_message *m)
{
    if (waits(cm))
        cm->mad.due = now_ns() + timeout_ns(m->response_timeout);
}

/* A peer that refuses at once: addresses resolve in no time here, and elsewhere in milliseconds, in
 * which its server may begin to listen. Once, the request is repeated. */
static bool may_listen_soon(const struct cm_id *cm, const struct cm_message *m)
{
    bool nobody = m->type == CM_MSG_REJ        ? m->reason == REJECT_INVALID_SERVICE_ID
                  : m->type == CM_MSG_SIDR_REP ? m->reason == SIDR_UNSUPPORTED
                                               : false;

    return nobody && cm->state == CM_REQ_SENT && cm->mad.retries_left == MAX_RETRIES;
}

static void receive_for_id(struct cm_id *cm, struct mad_message *m)
{
    if (cm_is_ud(cm) != (m->message.type == CM_MSG_SIDR_REP))
        return;
    switch (m->message.type) {
    case CM_MSG_REP:
        receive_reply(cm, m);
        break;
    case CM_MSG_MRA:
        receive_patience(cm, m);
        break;
    case CM_MSG_DREQ:
        send_beside(cm, CM_MSG_DREP);
        receive_for(cm, &m->message);
        break;
    case CM_MSG_DREP:
        if (cm->state == CM_DREQ_SENT)
            connect_closed(cm, RDMA_CM_EVENT_DISCONNECTED, 0);
        break;
    default:
        if (!may_listen_soon(cm, &m->message))
            receive_for(cm, &m->message);
    }
}

static void receive(const struct hca_mad *mad, bool may_hold)
{
    struct mad_message m;
    const char *wrong = mad_decode(&m, mad->bytes);
    struct cm_id *cm;

    if (!wrong && mad_is_request(&m) && !is_honest(mad, &m))
        wrong = "a request with addresses that are not its packet's";
    if (wrong) {
        log_debug("cm: dropped a datagram: %s", wrong);
        return;
    }
    mailbox_self(&m.message.from);
    m.message.gid_index = mad->gid_index;
    memcpy(m.message.gid, mad->peer, sizeof(m.message.gid));
    cm = mad_is_request(&m) ? find_passive(m.local_id, mad->peer) : find_receiver(mad, &m);
    if (cm && mad_is_request(&m))
        repeated_request(cm, mad, &m);
    else if (mad_is_request(&m))
        receive_new_request(mad, &m, may_hold);
    else if (cm)
        receive_for_id(cm, &m);
    else
        mad_answer_stranger(mad, &m);
}

void mad_receive(const struct hca_mad *mad)
{
    receive(mad, true);
}

/* ---- timers ---- */

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return !a || (b && b < a) ? b : a;
}

static uint64_t release_held(uint64_t now)
{
    uint64_t next = 0;

    for (int i = 0; i < HELD; i++) {
        if (held[i].due && held[i].due <= now) {
            held[i].due = 0;
            receive(&held[i].mad, false);
        }
        next = earlier(next, held[i].due);
    }
    return next;
}

uint64_t mad_run_timers(uint64_t now)
{
    uint64_t next = release_held(now);
    uint32_t cursor = 0;
    struct cm_id *cm;

    while ((cm = cm_next(&cursor))) {
        if (cm->mad.due && cm->mad.due <= now)
            repeat(cm, now);
        next = earlier(next, cm->mad.due);
    }
    return next;
}

const struct cm_transport transport_mad = {
    .request = request,
    .send = send_message,
    .disconnect = disconnect,
};
