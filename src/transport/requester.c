/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/requester.h"

#include "transport/psn.h"
#include "transport/transport.h"

enum position { FIRST, MIDDLE, LAST, ONLY };

/* The opcodes of a work request, and whether only a response with data completes it. */
static const struct operation {
    uint8_t opcodes[ONLY + 1];
    bool awaits_data;
} operations[] = {
    [TRANSPORT_SEND] = {
        .opcodes = { OPCODE_SEND_FIRST, OPCODE_SEND_MIDDLE, OPCODE_SEND_LAST, OPCODE_SEND_ONLY },
    },
    [TRANSPORT_SEND_IMMEDIATE] = {
        .opcodes = { OPCODE_SEND_FIRST, OPCODE_SEND_MIDDLE, OPCODE_SEND_LAST_IMMEDIATE,
                     OPCODE_SEND_ONLY_IMMEDIATE },
    },
    [TRANSPORT_SEND_INVALIDATE] = {
        .opcodes = { OPCODE_SEND_FIRST, OPCODE_SEND_MIDDLE, OPCODE_SEND_LAST_INVALIDATE,
                     OPCODE_SEND_ONLY_INVALIDATE },
    },
    [TRANSPORT_WRITE] = {
        .opcodes = { OPCODE_WRITE_FIRST, OPCODE_WRITE_MIDDLE, OPCODE_WRITE_LAST,
                     OPCODE_WRITE_ONLY },
    },
    [TRANSPORT_WRITE_IMMEDIATE] = {
        .opcodes = { OPCODE_WRITE_FIRST, OPCODE_WRITE_MIDDLE, OPCODE_WRITE_LAST_IMMEDIATE,
                     OPCODE_WRITE_ONLY_IMMEDIATE },
    },
    [TRANSPORT_READ] = { .opcodes = { [ONLY] = OPCODE_READ_REQUEST }, .awaits_data = true },
    [TRANSPORT_COMPARE_SWAP] = { .opcodes = { [ONLY] = OPCODE_COMPARE_SWAP }, .awaits_data = true },
    [TRANSPORT_FETCH_ADD] = { .opcodes = { [ONLY] = OPCODE_FETCH_ADD }, .awaits_data = true },
};

enum requester_state {
    REQUESTER_FETCH,        /* is there a work request, and may the QP send at all? */
    REQUESTER_CHECK_ORDER,  /* fence, and how many reads may be outstanding */
    REQUESTER_CHECK_WINDOW, /* how many packets may be unacknowledged */
    REQUESTER_BUILD,
    REQUESTER_ADVANCE,
    REQUESTER_COMPLETE, /* unreliable services: a sent request is complete */
    REQUESTER_SENT,
    REQUESTER_IDLE,
};

static const char *const state_names[] = {
    [REQUESTER_FETCH] = "fetch",
    [REQUESTER_CHECK_ORDER] = "check order",
    [REQUESTER_CHECK_WINDOW] = "check window",
    [REQUESTER_BUILD] = "build",
    [REQUESTER_ADVANCE] = "advance",
    [REQUESTER_COMPLETE] = "complete",
    [REQUESTER_SENT] = "sent",
    [REQUESTER_IDLE] = "idle",
};

/* A packet as it goes through the states. */
struct request {
    uint64_t now;
    const struct transport_wqe *wqe;
    struct packet *packet;
    uint32_t psns; /* PSNs it uses: for a read, those of the response */
    bool last;     /* of its message */
};

void requester_init(struct transport_qp *qp)
{
    const struct transport_attributes *attributes = &qp->attributes;

    qp->requester = (struct requester){
        .oldest.psn = attributes->send_psn,
        .current.psn = attributes->send_psn,
        .unacknowledged = attributes->send_psn,
        .next_psn = attributes->send_psn,
        .sent_end = attributes->send_psn,
        .retries_left = attributes->retry_count,
        .rnr_retries_left = attributes->rnr_retry_count,
    };
}

bool requester_awaits_data(const struct transport_wqe *wqe)
{
    return operations[wqe->operation].awaits_data;
}

/* ---- sending ---- */

static enum requester_state fetch(struct transport_qp *qp, struct request *request)
{
    const struct requester *requester = &qp->requester;
    uint32_t limit = qp->attributes.service == SERVICE_UD ? qp->attributes.path_mtu
                                                          : TRANSPORT_MAX_MESSAGE_BYTES;

    if (qp->in_error || requester->timer == TIMER_RNR)
        return REQUESTER_IDLE;
    request->wqe = qp->ops->wqe_at(qp, requester->current.index);
    if (!request->wqe)
        return REQUESTER_IDLE;
    if (request->wqe->length <= limit)
        return REQUESTER_CHECK_ORDER;
    /* Only the oldest work request can fail: wait until those before this one are complete. */
    if (requester->oldest.index == requester->current.index)
        requester_fail(qp, TRANSPORT_LOCAL_LENGTH);
    return REQUESTER_IDLE;
}

static enum requester_state check_order(struct transport_qp *qp, const struct request *request)
{
    uint8_t reads = qp->requester.reads;

    if (request->wqe->fence && reads)
        return REQUESTER_IDLE;
    if (requester_awaits_data(request->wqe) && reads >= qp->attributes.max_reads)
        return REQUESTER_IDLE;
    return transport_is_reliable(qp) ? REQUESTER_CHECK_WINDOW : REQUESTER_BUILD;
}

static enum requester_state check_window(struct transport_qp *qp, const struct request *request)
{
    const struct requester *requester = &qp->requester;
    uint32_t psns_in_use = psn_distance(requester->unacknowledged, requester->next_psn);
    bool is_read = requester_awaits_data(request->wqe);

    if (requester->in_flight >= qp->attributes.window)
        return REQUESTER_IDLE;
    /* With more than half of all PSNs in use, new and old ones cannot be distinguished (9.7.1). */
    psns_in_use += is_read ? transport_packets(qp, request->wqe->length) : 1;
    return psns_in_use > PSN_HALF ? REQUESTER_IDLE : REQUESTER_BUILD;
}

static void build_read_or_atomic(struct transport_qp *qp, struct request *request, uint32_t offset)
{
    const struct transport_wqe *wqe = request->wqe;

    *request->packet = (struct packet){
        .opcode = qp->attributes.service | operations[wqe->operation].opcodes[ONLY],
        .remote_address = wqe->remote_address + offset,
        .remote_length = wqe->length - offset,
        .swap_or_add = wqe->swap_or_add,
        .compare = wqe->compare,
    };
    request->last = true;
    request->psns = transport_packets(qp, wqe->length - offset);
}

static void build_send_or_write(struct transport_qp *qp, struct request *request, uint32_t offset)
{
    const struct transport_wqe *wqe = request->wqe;
    uint32_t mtu = qp->attributes.path_mtu;
    uint32_t left = wqe->length - offset;
    bool first = offset == 0;

    request->last = left <= mtu;
    request->psns = 1;
    enum position position = request->last ? (first ? ONLY : LAST) : (first ? FIRST : MIDDLE);
    *request->packet = (struct packet){
        .opcode = qp->attributes.service | operations[wqe->operation].opcodes[position],
        .solicited = wqe->solicited && request->last,
        .remote_address = wqe->remote_address,
        .remote_length = wqe->length,
        .immediate = wqe->immediate,
        .invalidate_key = wqe->immediate,
        .payload = { wqe->data, offset, request->last ? left : mtu },
    };
}

static enum requester_state build(struct transport_qp *qp, struct request *request)
{
    const struct transport_attributes *attributes = &qp->attributes;
    const struct requester *requester = &qp->requester;
    const struct transport_wqe *wqe = request->wqe;
    struct packet *packet = request->packet;
    bool datagram = attributes->service == SERVICE_UD;
    uint32_t offset = psn_distance(requester->current.psn, requester->next_psn) << qp->mtu_shift;

    if (requester_awaits_data(wqe))
        build_read_or_atomic(qp, request, offset);
    else
        build_send_or_write(qp, request, offset);
    packet->migrated = true; /* there is no alternate path */
    packet->pkey = attributes->pkey;
    packet->psn = requester->next_psn;
    packet->destination_qpn = datagram ? wqe->remote_qpn : attributes->remote_qpn;
    packet->remote_key = wqe->remote_key;
    packet->qkey = wqe->qkey;
    packet->source_qpn = attributes->local_qpn;
    packet->srq = wqe->remote_srq;
    packet->route = wqe->route;
    return REQUESTER_ADVANCE;
}

static void start_timer(struct transport_qp *qp, uint64_t now)
{
    struct requester *requester = &qp->requester;
    uint8_t code = qp->attributes.timeout;

    if (requester->probing)
        return;
    requester->timer = code ? TIMER_ACK : TIMER_OFF;
    requester->deadline = now + transport_timeout_ns(code);
}

/* Whenever the requester stops with unacknowledged packets, the last of them has requested an ACK
 * and the timer runs. */
static void request_ack(struct transport_qp *qp, const struct request *request)
{
    struct requester *requester = &qp->requester;
    const struct transport_attributes *attributes = &qp->attributes;

    requester->in_flight++;
    requester->since_ack_request++;
    if (requester_awaits_data(request->wqe)) {
        requester->reads++;
    } else if (request->last || requester->in_flight >= attributes->window ||
               (attributes->ack_every && requester->since_ack_request >= attributes->ack_every)) {
        request->packet->ack_request = true;
        requester->since_ack_request = 0;
    } else {
        return;
    }
    start_timer(qp, request->now);
}

static enum requester_state advance(struct transport_qp *qp, const struct request *request)
{
    struct requester *requester = &qp->requester;
    uint32_t base = requester->unacknowledged;

    qp->attributes.counters->requests++;
    if (psn_distance(base, requester->next_psn) < psn_distance(base, requester->sent_end))
        qp->attributes.counters->resent++;
    requester->next_psn = psn_add(requester->next_psn, request->psns);
    if (psn_distance(base, requester->next_psn) > psn_distance(base, requester->sent_end))
        requester->sent_end = requester->next_psn;
    if (request->last) {
        requester->current.index++;
        requester->current.psn = requester->next_psn;
    }
    if (!transport_is_reliable(qp))
        return REQUESTER_COMPLETE;
    request_ack(qp, request);
    return REQUESTER_SENT;
}

static enum requester_state complete(struct transport_qp *qp, const struct request *request)
{
    qp->requester.unacknowledged = qp->requester.next_psn;
    if (request->last)
        requester_complete_oldest(qp, request->wqe);
    return REQUESTER_SENT;
}

bool requester_pull(struct transport_qp *qp, uint64_t now, struct packet *packet)
{
    struct request request = { .now = now, .packet = packet };
    enum requester_state state = REQUESTER_FETCH;

    for (;;) {
        transport_trace(qp, "requester", state_names[state]);
        switch (state) {
        case REQUESTER_FETCH:
            state = fetch(qp, &request);
            break;
        case REQUESTER_CHECK_ORDER:
            state = check_order(qp, &request);
            break;
        case REQUESTER_CHECK_WINDOW:
            state = check_window(qp, &request);
            break;
        case REQUESTER_BUILD:
            state = build(qp, &request);
            break;
        case REQUESTER_ADVANCE:
            state = advance(qp, &request);
            break;
        case REQUESTER_COMPLETE:
            state = complete(qp, &request);
            break;
        case REQUESTER_SENT:
            return true;
        case REQUESTER_IDLE:
            return false;
        }
    }
}

/* ---- acknowledgements and timeouts ---- */

void requester_complete_oldest(struct transport_qp *qp, const struct transport_wqe *wqe)
{
    struct requester *requester = &qp->requester;
    uint32_t index = requester->oldest.index;

    if (requester_awaits_data(wqe) && index != requester->current.index) {
        requester->reads--;
        requester->in_flight--;
    }
    requester->oldest.psn = psn_add(requester->oldest.psn, transport_packets(qp, wqe->length));
    requester->oldest.index++;
    qp->ops->complete(qp, index, TRANSPORT_SUCCESS);
}

static void send_from_oldest(struct requester *requester)
{
    requester->current = requester->oldest;
    requester->next_psn = requester->unacknowledged;
    requester->since_ack_request = 0;
    requester->in_flight = 0;
    requester->reads = 0;
}

void requester_progressed(struct transport_qp *qp, uint64_t now, uint32_t from)
{
    struct requester *requester = &qp->requester;

    requester->retries_left = qp->attributes.retry_count;
    requester->rnr_retries_left = qp->attributes.rnr_retry_count;
    requester->rewound = false;
    requester->probing = false;
    /* After a rewind, a response to an earlier transmission may arrive before the
     * retransmission. */
    if (psn_distance(from, requester->next_psn) < psn_distance(from, requester->unacknowledged))
        send_from_oldest(requester);
    if (requester->unacknowledged == requester->next_psn)
        requester->timer = TIMER_OFF;
    else
        start_timer(qp, now);
}

static void rewind_to_unacknowledged(struct transport_qp *qp)
{
    send_from_oldest(&qp->requester);
    qp->requester.timer = TIMER_OFF;
    qp->requester.probing = false;
    qp->attributes.counters->rewinds++;
}

void requester_fail(struct transport_qp *qp, enum transport_status why)
{
    qp->ops->complete(qp, qp->requester.oldest.index++, why);
    transport_fail(qp, why);
}

/* Packets in flight at the time of a loss report it again and again: rewind once until there is
 * progress or a timeout. */
void requester_retry(struct transport_qp *qp)
{
    struct requester *requester = &qp->requester;

    if (requester->rewound)
        return;
    if (!requester->retries_left) {
        requester_fail(qp, TRANSPORT_RETRY_EXCEEDED);
        return;
    }
    requester->retries_left--;
    requester->rewound = true;
    rewind_to_unacknowledged(qp);
}

/* Sending starts the timer anew only after the deadline that was set before. */
void requester_probe(struct transport_qp *qp)
{
    struct requester *requester = &qp->requester;

    rewind_to_unacknowledged(qp);
    requester->rewound = false;
    requester->timer = TIMER_ACK;
    requester->probing = true;
}

void requester_wait_for_receive(struct transport_qp *qp, uint64_t now, uint8_t timer_code)
{
    struct requester *requester = &qp->requester;

    if (requester->timer == TIMER_RNR)
        return;
    if (!requester->rnr_retries_left) {
        requester_fail(qp, TRANSPORT_RNR_RETRY_EXCEEDED);
        return;
    }
    if (qp->attributes.rnr_retry_count != TRANSPORT_RETRY_FOREVER)
        requester->rnr_retries_left--;
    rewind_to_unacknowledged(qp);
    requester->retries_left = qp->attributes.retry_count; /* the peer is alive */
    requester->rewound = false;
    requester->timer = TIMER_RNR;
    requester->deadline = now + transport_rnr_ns(timer_code);
    qp->attributes.counters->rnr_waits++;
}

void requester_timeout(struct transport_qp *qp)
{
    struct requester *requester = &qp->requester;

    if (requester->timer == TIMER_RNR) {
        requester->timer = TIMER_OFF;
        return;
    }
    qp->attributes.counters->timeouts++;
    requester->rewound = false;
    requester_retry(qp);
    requester->rewound = false; /* react to a loss among the retransmitted packets */
}
