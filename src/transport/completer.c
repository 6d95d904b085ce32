#include "transport/completer.h"

#include "transport/psn.h"
#include "transport/transport.h"

enum completer_state {
    COMPLETER_CHECK_PSN,   /* does it answer anything that is outstanding? */
    COMPLETER_ACKNOWLEDGE, /* complete what it acknowledges, said or implied */
    COMPLETER_READ,
    COMPLETER_ATOMIC,
    COMPLETER_SYNDROME, /* of an acknowledgement */
    COMPLETER_WAIT,     /* the peer has no receive */
    COMPLETER_LOST,     /* the peer misses a request, or we an answer */
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

/* One answer on its way through the states. */
struct answer {
    uint64_t now;
    const struct packet *packet;
    const struct opcode_info *info;
    enum transport_status failure;
};

static enum completer_state fail_with(struct answer *answer, enum transport_status why)
{
    answer->failure = why;
    return COMPLETER_FAIL;
}

static enum completer_state check_psn(struct transport_qp *qp, const struct answer *answer)
{
    const struct requester *requester = &qp->requester;
    uint32_t outstanding = psn_distance(requester->unacknowledged, requester->sent_end);

    if (psn_distance(requester->unacknowledged, answer->packet->psn) < outstanding)
        return COMPLETER_ACKNOWLEDGE;
    qp->counters.dropped++; /* it was acknowledged before, or never sent */
    return COMPLETER_DONE;
}

/* Completes what lies before `end`. False: a read or an atomic is among it, and its answer is not
 * here. An answer to something later says that it will not come either: an implied NAK. */
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

static bool is_plain_ack(const struct answer *answer)
{
    return !(answer->info->flags & (OPCODE_READ | OPCODE_ATOMIC)) &&
           (answer->packet->syndrome & SYNDROME_KIND) == SYNDROME_ACK;
}

static enum completer_state acknowledge(struct transport_qp *qp, const struct answer *answer)
{
    uint32_t from = qp->requester.unacknowledged;
    uint32_t psn = answer->packet->psn;
    bool all = acknowledge_before(qp, is_plain_ack(answer) ? psn_add(psn, 1) : psn);

    if (qp->requester.unacknowledged != from)
        requester_progressed(qp, answer->now, from);
    if (!all)
        return COMPLETER_LOST;
    if (answer->info->flags & OPCODE_READ)
        return COMPLETER_READ;
    return answer->info->flags & OPCODE_ATOMIC ? COMPLETER_ATOMIC : COMPLETER_SYNDROME;
}

/* The oldest work request got the packet that it was waiting for. */
static void take(struct transport_qp *qp, const struct answer *answer,
                 const struct transport_wqe *wqe, bool last)
{
    uint32_t from = qp->requester.unacknowledged;

    qp->requester.unacknowledged = psn_add(from, 1);
    if (last)
        requester_complete_oldest(qp, wqe);
    requester_progressed(qp, answer->now, from);
}

static enum completer_state take_read(struct transport_qp *qp, struct answer *answer)
{
    const struct requester_position *oldest = &qp->requester.oldest;
    const struct transport_wqe *wqe = qp->ops->wqe_at(qp, oldest->index);
    const struct packet_payload *payload = &answer->packet->payload;
    uint32_t offset = psn_distance(oldest->psn, answer->packet->psn) << qp->mtu_shift;

    if (wqe->operation != TRANSPORT_READ)
        return fail_with(answer, TRANSPORT_BAD_RESPONSE);
    bool last = wqe->length - offset <= qp->attributes.path_mtu;
    if (payload->length != (last ? wqe->length - offset : qp->attributes.path_mtu) ||
        last != !!(answer->info->flags & OPCODE_END))
        return fail_with(answer, TRANSPORT_BAD_RESPONSE);
    if (payload->length && !qp->ops->place_read(qp, oldest->index, offset, payload))
        return fail_with(answer, TRANSPORT_LOCAL_PROTECTION);
    take(qp, answer, wqe, last);
    return COMPLETER_DONE;
}

static enum completer_state take_atomic(struct transport_qp *qp, struct answer *answer)
{
    uint32_t index = qp->requester.oldest.index;
    const struct transport_wqe *wqe = qp->ops->wqe_at(qp, index);

    if (wqe->operation == TRANSPORT_READ || !requester_awaits_data(wqe))
        return fail_with(answer, TRANSPORT_BAD_RESPONSE);
    if (!qp->ops->place_atomic(qp, index, answer->packet->original))
        return fail_with(answer, TRANSPORT_LOCAL_PROTECTION);
    take(qp, answer, wqe, true);
    return COMPLETER_DONE;
}

static enum completer_state judge_syndrome(struct answer *answer)
{
    uint8_t syndrome = answer->packet->syndrome;

    if ((syndrome & SYNDROME_KIND) == SYNDROME_ACK)
        return COMPLETER_DONE;
    if ((syndrome & SYNDROME_KIND) == SYNDROME_RNR)
        return COMPLETER_WAIT;
    switch (syndrome) {
    case NAK_SEQUENCE:
        return COMPLETER_LOST;
    case NAK_INVALID:
        return fail_with(answer, TRANSPORT_INVALID_REQUEST);
    case NAK_ACCESS:
        return fail_with(answer, TRANSPORT_ACCESS_ERROR);
    case NAK_OPERATIONAL:
        return fail_with(answer, TRANSPORT_OPERATIONAL_ERROR);
    default:
        return fail_with(answer, TRANSPORT_BAD_RESPONSE);
    }
}

static enum completer_state wait_for_receive(struct transport_qp *qp, const struct answer *answer)
{
    requester_wait_for_receive(qp, answer->now, answer->packet->syndrome & SYNDROME_VALUE);
    return COMPLETER_DONE;
}

static enum completer_state resend(struct transport_qp *qp)
{
    requester_retry(qp);
    return COMPLETER_DONE;
}

static enum completer_state fail(struct transport_qp *qp, const struct answer *answer)
{
    requester_fail(qp, answer->failure);
    return COMPLETER_DONE;
}

void completer_receive(struct transport_qp *qp, uint64_t now, const struct packet *packet,
                       const struct opcode_info *info)
{
    struct answer answer = { .now = now, .packet = packet, .info = info };
    enum completer_state state = COMPLETER_CHECK_PSN;

    for (;;) {
        transport_trace(qp, "completer", state_names[state]);
        switch (state) {
        case COMPLETER_CHECK_PSN:
            state = check_psn(qp, &answer);
            break;
        case COMPLETER_ACKNOWLEDGE:
            state = acknowledge(qp, &answer);
            break;
        case COMPLETER_READ:
            state = take_read(qp, &answer);
            break;
        case COMPLETER_ATOMIC:
            state = take_atomic(qp, &answer);
            break;
        case COMPLETER_SYNDROME:
            state = judge_syndrome(&answer);
            break;
        case COMPLETER_WAIT:
            state = wait_for_receive(qp, &answer);
            break;
        case COMPLETER_LOST:
            state = resend(qp);
            break;
        case COMPLETER_FAIL:
            state = fail(qp, &answer);
            break;
        case COMPLETER_DONE:
            return;
        }
    }
}
