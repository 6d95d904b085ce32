/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/completer.h"

#include "transport/psn.h"
#include "transport/transport.h"

enum completer_state {
    COMPLETER_CHECK_PSN,   /* does it acknowledge anything that is outstanding? */
    COMPLETER_ACKNOWLEDGE, /* complete what it acknowledges, explicitly or not */
    COMPLETER_READ,
    COMPLETER_ATOMIC,
    COMPLETER_SYNDROME, /* of an acknowledgement */
    COMPLETER_WAIT,     /* the peer has no receive */
    COMPLETER_LOST,     /* a request or a response was lost */
    COMPLETER_FAIL,
    COMPLETER_DONE,
};

static const char *const state_names[] = {
    [COMPLETER_CHECK_PSN] = "check PSN", [COMPLETER_ACKNOWLEDGE] = "acknowledge",
    [COMPLETER_READ] = "read",           [COMPLETER_ATOMIC] = "atomic",
    [COMPLETER_SYNDROME] = "syndrome",   [COMPLETER_WAIT] = "wait",
    [COMPLETER_LOST] = "lost",           [COMPLETER_FAIL] = "fail",
    [COMPLETER_DONE] = "done",
};

/* A response packet as it goes through the states. */
struct response {
    uint64_t now;
    const struct packet *packet;
    const struct opcode_info *info;
    enum transport_status failure;
};

static enum completer_state fail_with(struct response *response, enum transport_status why)
{
    response->failure = why;
    return COMPLETER_FAIL;
}

static enum completer_state check_psn(struct transport_qp *qp, const struct response *response)
{
    const struct requester *requester = &qp->requester;
    uint32_t outstanding = psn_distance(requester->unacknowledged, requester->sent_end);

    if (psn_distance(requester->unacknowledged, response->packet->psn) < outstanding)
        return COMPLETER_ACKNOWLEDGE;
    qp->attributes.counters->dropped++; /* it was acknowledged before, or never sent */
    return COMPLETER_DONE;
}

/* Completes every work request before `end`. False: one of them is a read or atomic whose response
 * has not arrived. Since a later request was answered, it was lost: an implied NAK. */
static bool acknowledge_before(struct transport_qp *qp, uint32_t end)
{
    struct requester *requester = &qp->requester;

    while (requester->unacknowledged != end) {
        const struct transport_wqe *wqe = qp->ops->wqe_at(qp, requester->oldest.index);
        uint32_t base = requester->unacknowledged;

        if (requester_awaits_data(wqe))
            return false;
        uint32_t wqe_end = psn_add(requester->oldest.psn, transport_packets(qp, wqe->length));
        bool whole = psn_distance(base, wqe_end) <= psn_distance(base, end);
        requester->unacknowledged = whole ? wqe_end : end;
        requester->in_flight -= psn_distance(base, requester->unacknowledged);
        if (whole)
            requester_complete_oldest(qp, wqe);
    }
    return true;
}

static bool is_plain_ack(const struct response *response)
{
    return !(response->info->flags & (OPCODE_READ | OPCODE_ATOMIC)) &&
           (response->packet->syndrome & SYNDROME_KIND) == SYNDROME_ACK;
}

static enum completer_state acknowledge(struct transport_qp *qp, const struct response *response)
{
    uint32_t from = qp->requester.unacknowledged;
    uint32_t psn = response->packet->psn;
    bool all = acknowledge_before(qp, is_plain_ack(response) ? psn_add(psn, 1) : psn);

    if (qp->requester.unacknowledged != from)
        requester_progressed(qp, response->now, from);
    if (!all)
        return COMPLETER_LOST;
    if (response->info->flags & OPCODE_READ)
        return COMPLETER_READ;
    return response->info->flags & OPCODE_ATOMIC ? COMPLETER_ATOMIC : COMPLETER_SYNDROME;
}

/* The expected response packet of the oldest work request has arrived. */
static void take(struct transport_qp *qp, const struct response *response,
                 const struct transport_wqe *wqe, bool last)
{
    uint32_t from = qp->requester.unacknowledged;

    qp->requester.unacknowledged = psn_add(from, 1);
    if (last)
        requester_complete_oldest(qp, wqe);
    requester_progressed(qp, response->now, from);
}

static enum completer_state take_read(struct transport_qp *qp, struct response *response)
{
    const struct requester_position *oldest = &qp->requester.oldest;
    const struct transport_wqe *wqe = qp->ops->wqe_at(qp, oldest->index);
    const struct packet_payload *payload = &response->packet->payload;
    uint32_t offset = psn_distance(oldest->psn, response->packet->psn) << qp->mtu_shift;

    if (wqe->operation != TRANSPORT_READ)
        return fail_with(response, TRANSPORT_BAD_RESPONSE);
    bool last = wqe->length - offset <= qp->attributes.path_mtu;
    if (payload->length != (last ? wqe->length - offset : qp->attributes.path_mtu) ||
        last != !!(response->info->flags & OPCODE_END))
        return fail_with(response, TRANSPORT_BAD_RESPONSE);
    if (payload->length && !qp->ops->place_read(qp, oldest->index, offset, payload))
        return fail_with(response, TRANSPORT_LOCAL_PROTECTION);
    take(qp, response, wqe, last);
    return COMPLETER_DONE;
}

static enum completer_state take_atomic(struct transport_qp *qp, struct response *response)
{
    uint32_t index = qp->requester.oldest.index;
    const struct transport_wqe *wqe = qp->ops->wqe_at(qp, index);

    if (wqe->operation == TRANSPORT_READ || !requester_awaits_data(wqe))
        return fail_with(response, TRANSPORT_BAD_RESPONSE);
    if (!qp->ops->place_atomic(qp, index, response->packet->original))
        return fail_with(response, TRANSPORT_LOCAL_PROTECTION);
    take(qp, response, wqe, true);
    return COMPLETER_DONE;
}

static enum completer_state judge_syndrome(struct response *response)
{
    uint8_t syndrome = response->packet->syndrome;

    if ((syndrome & SYNDROME_KIND) == SYNDROME_ACK)
        return COMPLETER_DONE;
    if ((syndrome & SYNDROME_KIND) == SYNDROME_RNR)
        return COMPLETER_WAIT;
    switch (syndrome) {
    case NAK_SEQUENCE:
        return COMPLETER_LOST;
    case NAK_INVALID:
        return fail_with(response, TRANSPORT_INVALID_REQUEST);
    case NAK_ACCESS:
        return fail_with(response, TRANSPORT_ACCESS_ERROR);
    case NAK_OPERATIONAL:
        return fail_with(response, TRANSPORT_OPERATIONAL_ERROR);
    default:
        return fail_with(response, TRANSPORT_BAD_RESPONSE);
    }
}

static enum completer_state wait_for_receive(struct transport_qp *qp,
                                             const struct response *response)
{
    requester_wait_for_receive(qp, response->now, response->packet->syndrome & SYNDROME_VALUE);
    return COMPLETER_DONE;
}

static enum completer_state resend(struct transport_qp *qp)
{
    requester_retry(qp);
    return COMPLETER_DONE;
}

static enum completer_state fail(struct transport_qp *qp, const struct response *response)
{
    requester_fail(qp, response->failure);
    return COMPLETER_DONE;
}

void completer_receive(struct transport_qp *qp, uint64_t now, const struct packet *packet,
                       const struct opcode_info *info)
{
    struct response response = { .now = now, .packet = packet, .info = info };
    enum completer_state state = COMPLETER_CHECK_PSN;

    for (;;) {
        transport_trace(qp, "completer", state_names[state]);
        switch (state) {
        case COMPLETER_CHECK_PSN:
            state = check_psn(qp, &response);
            break;
        case COMPLETER_ACKNOWLEDGE:
            state = acknowledge(qp, &response);
            break;
        case COMPLETER_READ:
            state = take_read(qp, &response);
            break;
        case COMPLETER_ATOMIC:
            state = take_atomic(qp, &response);
            break;
        case COMPLETER_SYNDROME:
            state = judge_syndrome(&response);
            break;
        case COMPLETER_WAIT:
            state = wait_for_receive(qp, &response);
            break;
        case COMPLETER_LOST:
            state = resend(qp);
            break;
        case COMPLETER_FAIL:
            state = fail(qp, &response);
            break;
        case COMPLETER_DONE:
            return;
        }
    }
}
