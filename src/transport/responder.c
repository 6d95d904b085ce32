#include "transport/responder.h"

#include "transport/psn.h"
#include "transport/transport.h"

enum responder_state {
    RESPONDER_CHECK_PSN,      /* the expected packet, an old one, or one too far ahead? */
    RESPONDER_CHECK_SEQUENCE, /* does the opcode continue what came before? */
    RESPONDER_CHECK_LENGTH,
    RESPONDER_CHECK_ANSWERS, /* is there room to remember a read or an atomic? */
    RESPONDER_CHECK_ACCESS,
    RESPONDER_TAKE_RECEIVE,
    RESPONDER_EXECUTE,
    RESPONDER_COMPLETE, /* the message is whole */
    RESPONDER_ACCEPT,
    RESPONDER_DUPLICATE,
    RESPONDER_GAP,
    RESPONDER_REFUSE,
    RESPONDER_DROP, /* unreliable services: the message is lost */
    RESPONDER_DONE,
};

static const char *const state_names[] = {
    [RESPONDER_CHECK_PSN] = "check PSN",
    [RESPONDER_CHECK_SEQUENCE] = "check sequence",
    [RESPONDER_CHECK_LENGTH] = "check length",
    [RESPONDER_CHECK_ANSWERS] = "check answers",
    [RESPONDER_CHECK_ACCESS] = "check access",
    [RESPONDER_TAKE_RECEIVE] = "take receive",
    [RESPONDER_EXECUTE] = "execute",
    [RESPONDER_COMPLETE] = "complete",
    [RESPONDER_ACCEPT] = "accept",
    [RESPONDER_DUPLICATE] = "duplicate",
    [RESPONDER_GAP] = "gap",
    [RESPONDER_REFUSE] = "refuse",
    [RESPONDER_DROP] = "drop",
    [RESPONDER_DONE] = "done",
};

/* One request on its way through the states. */
struct arrival {
    const struct packet *packet;
    const struct opcode_info *info;
    uint64_t region;
    uint32_t psns; /* which it takes: those of the answer, for a read */
    enum transport_status verdict;
};

void responder_init(struct transport_qp *qp)
{
    qp->responder = (struct responder){ .expected_psn = qp->attributes.receive_psn };
}

static bool has(const struct arrival *arrival, unsigned flags)
{
    return arrival->info->flags & flags;
}

static enum responder_state refuse_with(struct arrival *arrival, enum transport_status verdict)
{
    arrival->verdict = verdict;
    return RESPONDER_REFUSE;
}

static enum responder_state unless_refused(struct arrival *arrival, enum transport_status verdict,
                                           enum responder_state next)
{
    return verdict == TRANSPORT_SUCCESS ? next : refuse_with(arrival, verdict);
}

/* ---- may it be carried out? ---- */

/* IBA volume 1, 9.7.4 for the reliable services; 9.8.2 for UC, which takes any later packet for
 * the expected one and sees from its opcode whether a message was cut. */
static enum responder_state check_psn(struct transport_qp *qp, const struct arrival *arrival)
{
    struct responder *responder = &qp->responder;
    uint32_t ahead = psn_distance(responder->expected_psn, arrival->packet->psn);

    if (qp->attributes.service == SERVICE_UD)
        return RESPONDER_CHECK_LENGTH;
    if (ahead == 0)
        return RESPONDER_CHECK_SEQUENCE;
    if (ahead >= PSN_HALF)
        return RESPONDER_DUPLICATE;
    if (transport_is_reliable(qp))
        return RESPONDER_GAP;
    qp->counters.gaps++;
    responder->message.open = false;
    responder->expected_psn = arrival->packet->psn;
    return RESPONDER_CHECK_SEQUENCE;
}

static enum responder_state check_sequence(struct transport_qp *qp, struct arrival *arrival)
{
    struct responder_message *message = &qp->responder.message;
    bool starts = has(arrival, OPCODE_START);
    bool continues = message->open && has(arrival, message->kind) && !starts;

    if (!transport_is_reliable(qp) && starts)
        message->open = false;
    else if (starts ? message->open : !continues)
        return refuse_with(arrival, TRANSPORT_INVALID_REQUEST);
    return RESPONDER_CHECK_LENGTH;
}

/* IBA volume 1, 9.7.4: every packet but the last is full, and a write is as long as it said. */
static enum responder_state check_length(struct transport_qp *qp, struct arrival *arrival)
{
    const struct responder_message *message = &qp->responder.message;
    const struct packet *packet = arrival->packet;
    bool starts = has(arrival, OPCODE_START);
    bool ends = has(arrival, OPCODE_END);
    uint32_t length = packet->payload.length;
    uint32_t mtu = qp->attributes.path_mtu;
    uint64_t so_far = (starts ? 0 : message->length) + (uint64_t)length;
    uint64_t total = starts ? packet->remote_length : message->total;

    if (length > mtu || (!ends && length < mtu) || (!starts && length == 0) ||
        so_far > TRANSPORT_MAX_MESSAGE_BYTES)
        return refuse_with(arrival, TRANSPORT_INVALID_REQUEST);
    if (has(arrival, OPCODE_WRITE | OPCODE_READ) && total > TRANSPORT_MAX_MESSAGE_BYTES)
        return refuse_with(arrival, TRANSPORT_INVALID_REQUEST);
    if (has(arrival, OPCODE_WRITE) && (ends ? so_far != total : so_far >= total))
        return refuse_with(arrival, TRANSPORT_INVALID_REQUEST);
    return has(arrival, OPCODE_READ | OPCODE_ATOMIC) ? RESPONDER_CHECK_ANSWERS
                                                     : RESPONDER_CHECK_ACCESS;
}

/* A requester that keeps to the number agreed upon asks for a new answer only when it has got the
 * oldest one, so that may be forgotten. */
static enum responder_state check_answers(struct transport_qp *qp, struct arrival *arrival)
{
    const struct responder_answer *oldest = &qp->responder.answers[qp->responder.oldest];
    bool room = qp->attributes.max_answers && (!oldest->pending || oldest->given_once);

    if (!room || (has(arrival, OPCODE_ATOMIC) && arrival->packet->remote_address % 8))
        return refuse_with(arrival, TRANSPORT_INVALID_REQUEST);
    return RESPONDER_CHECK_ACCESS;
}

/* Nothing is accessed, and no key looked at, for a length of nothing. */
static enum responder_state check_access(struct transport_qp *qp, struct arrival *arrival)
{
    const struct packet *packet = arrival->packet;
    enum transport_status verdict = TRANSPORT_SUCCESS;

    if (has(arrival, OPCODE_ATOMIC))
        verdict = qp->ops->check_remote(qp, TRANSPORT_ACCESS_ATOMIC, packet->remote_key,
                                        packet->remote_address, 8, &arrival->region);
    else if (arrival->info->headers & HEADER_RETH && packet->remote_length)
        verdict = qp->ops->check_remote(
            qp, has(arrival, OPCODE_READ) ? TRANSPORT_ACCESS_READ : TRANSPORT_ACCESS_WRITE,
            packet->remote_key, packet->remote_address, packet->remote_length, &arrival->region);
    return unless_refused(arrival, verdict, RESPONDER_TAKE_RECEIVE);
}

static enum responder_state take_receive(struct transport_qp *qp, struct arrival *arrival)
{
    struct responder_message *message = &qp->responder.message;

    if (!has(arrival, OPCODE_RECEIVE) || message->receive_taken)
        return RESPONDER_EXECUTE;
    enum transport_status verdict = qp->ops->receive_begin(qp, arrival->packet);
    message->receive_taken = verdict == TRANSPORT_SUCCESS;
    return unless_refused(arrival, verdict, RESPONDER_EXECUTE);
}

/* ---- carrying it out ---- */

static void remember(struct transport_qp *qp, struct arrival *arrival, uint64_t original)
{
    struct responder *responder = &qp->responder;
    struct responder_answer *answer = &responder->answers[responder->oldest];
    const struct packet *packet = arrival->packet;

    arrival->psns = has(arrival, OPCODE_READ) ? transport_packets(qp, packet->remote_length) : 1;
    if (!answer->pending)
        responder->pending++;
    responder->oldest = (responder->oldest + 1) % qp->attributes.max_answers;
    *answer = (struct responder_answer){
        .opcode = packet->opcode,
        .pending = true,
        .psn = packet->psn,
        .packets = arrival->psns,
        .start_psn = packet->psn,
        .next_psn = packet->psn,
        .key = packet->remote_key,
        .length = packet->remote_length,
        .address = packet->remote_address,
        .region = arrival->region,
        .original = original,
    };
}

static enum transport_status place(struct transport_qp *qp, const struct arrival *arrival)
{
    struct responder_message *message = &qp->responder.message;
    const struct packet_payload *payload = &arrival->packet->payload;

    if (!payload->length)
        return TRANSPORT_SUCCESS;
    if (has(arrival, OPCODE_SEND))
        return qp->ops->receive_place(qp, message->length, payload);
    return qp->ops->place_write(qp, message->region, message->address + message->length, payload);
}

static void open_message(struct responder_message *message, const struct arrival *arrival)
{
    message->open = true;
    message->kind = arrival->info->flags & (OPCODE_SEND | OPCODE_WRITE);
    message->length = 0;
    message->total = arrival->packet->remote_length;
    message->region = arrival->region;
    message->address = arrival->packet->remote_address;
}

static enum responder_state execute(struct transport_qp *qp, struct arrival *arrival)
{
    struct responder_message *message = &qp->responder.message;
    enum transport_status verdict;
    uint64_t original = 0;

    if (has(arrival, OPCODE_ATOMIC)) {
        verdict = qp->ops->atomic(qp, arrival->region, arrival->packet, &original);
        if (verdict == TRANSPORT_SUCCESS)
            remember(qp, arrival, original);
    } else if (has(arrival, OPCODE_READ)) {
        remember(qp, arrival, 0);
        verdict = TRANSPORT_SUCCESS;
    } else {
        if (has(arrival, OPCODE_START))
            open_message(message, arrival);
        verdict = place(qp, arrival);
        message->length += arrival->packet->payload.length;
    }
    return unless_refused(arrival, verdict,
                          has(arrival, OPCODE_END) ? RESPONDER_COMPLETE : RESPONDER_ACCEPT);
}

static enum responder_state complete(struct transport_qp *qp, struct arrival *arrival)
{
    struct responder *responder = &qp->responder;
    struct responder_message *message = &responder->message;

    if (arrival->info->headers & HEADER_IETH) {
        enum transport_status verdict = qp->ops->invalidate(qp, arrival->packet->invalidate_key);
        if (verdict != TRANSPORT_SUCCESS)
            return refuse_with(arrival, verdict);
    }
    if (has(arrival, OPCODE_RECEIVE)) {
        message->receive_taken = false;
        qp->ops->receive_end(qp, arrival->packet, message->length);
    }
    message->open = false;
    responder->msn = psn_add(responder->msn, 1);
    return RESPONDER_ACCEPT;
}

/* An acknowledgement not sent yet turns into one of this packet; a complaint is out of date. */
static enum responder_state accept(struct transport_qp *qp, const struct arrival *arrival)
{
    struct responder *responder = &qp->responder;

    responder->expected_psn = psn_add(responder->expected_psn, arrival->psns);
    responder->gap_reported = false;
    if (transport_is_reliable(qp)) {
        responder->acknowledge |= arrival->packet->ack_request;
        responder->syndrome = ACK_NO_CREDITS;
    }
    return RESPONDER_DONE;
}

/* ---- what else may be done with it ---- */

/* From the newest on: after a turn of all PSNs an old answer may bear the number of a new one. */
static struct responder_answer *find_answer(struct transport_qp *qp, const struct packet *packet)
{
    struct responder *responder = &qp->responder;
    unsigned count = qp->attributes.max_answers;

    for (unsigned age = 1; age <= count; age++) {
        struct responder_answer *answer =
            &responder->answers[(responder->oldest + count - age) % count];
        if (answer->opcode == packet->opcode &&
            psn_distance(answer->psn, packet->psn) < answer->packets)
            return answer;
    }
    return NULL;
}

/* A read is carried out again, from where it is asked for; it has to be the end of what was asked
 * first, and still allowed. An atomic's result is repeated. */
static bool may_repeat(struct transport_qp *qp, struct responder_answer *answer,
                       const struct arrival *arrival)
{
    const struct packet *packet = arrival->packet;
    uint32_t offset = psn_distance(answer->psn, packet->psn) << qp->mtu_shift;

    if (packet->remote_key != answer->key || packet->remote_address != answer->address + offset)
        return false;
    if (has(arrival, OPCODE_ATOMIC))
        return true;
    if (packet->remote_length != answer->length - offset)
        return false;
    return !packet->remote_length ||
           qp->ops->check_remote(qp, TRANSPORT_ACCESS_READ, packet->remote_key,
                                 packet->remote_address, packet->remote_length,
                                 &answer->region) == TRANSPORT_SUCCESS;
}

static enum responder_state repeat_answer(struct transport_qp *qp, const struct arrival *arrival)
{
    struct responder_answer *answer = find_answer(qp, arrival->packet);

    /* Nobody waits for an answer that is forgotten, or for one that is no longer allowed. */
    if (!answer || !may_repeat(qp, answer, arrival))
        return RESPONDER_DONE;
    if (!answer->pending)
        qp->responder.pending++;
    answer->pending = true;
    answer->start_psn = arrival->packet->psn;
    answer->next_psn = arrival->packet->psn;
    return RESPONDER_DONE;
}

static enum responder_state duplicate(struct transport_qp *qp, const struct arrival *arrival)
{
    struct responder *responder = &qp->responder;

    qp->counters.duplicates++;
    if (has(arrival, OPCODE_READ | OPCODE_ATOMIC))
        return repeat_answer(qp, arrival);
    if (transport_is_reliable(qp) && !responder->acknowledge) {
        responder->acknowledge = true;
        responder->syndrome = ACK_NO_CREDITS;
    }
    return RESPONDER_DONE;
}

static void complain(struct responder *responder, uint8_t syndrome)
{
    responder->acknowledge = true;
    responder->syndrome = syndrome;
    responder->gap_reported = true;
}

/* One complaint per gap: the requester goes back, and what follows is late news. */
static enum responder_state report_gap(struct transport_qp *qp)
{
    qp->counters.gaps++;
    if (!qp->responder.gap_reported)
        complain(&qp->responder, NAK_SEQUENCE);
    return RESPONDER_DONE;
}

static uint8_t nak_for(enum transport_status verdict)
{
    switch (verdict) {
    case TRANSPORT_INVALID_REQUEST:
    case TRANSPORT_LOCAL_LENGTH:
        return NAK_INVALID;
    case TRANSPORT_ACCESS_ERROR:
        return NAK_ACCESS;
    default:
        return NAK_OPERATIONAL;
    }
}

/* Not the sender's doing alone: the receive is at fault, or this side. */
static bool is_local(enum transport_status verdict)
{
    return verdict == TRANSPORT_OPERATIONAL_ERROR || verdict == TRANSPORT_LOCAL_LENGTH ||
           verdict == TRANSPORT_LOCAL_PROTECTION;
}

static enum responder_state refuse(struct transport_qp *qp, const struct arrival *arrival)
{
    enum transport_status verdict = arrival->verdict;

    if (!transport_is_reliable(qp) && !is_local(verdict))
        return RESPONDER_DROP;
    if (verdict == TRANSPORT_NOT_READY) {
        complain(&qp->responder, SYNDROME_RNR | qp->attributes.rnr_timer);
        return RESPONDER_DONE;
    }
    if (transport_is_reliable(qp))
        complain(&qp->responder, nak_for(verdict));
    transport_fail(qp, verdict);
    return RESPONDER_DONE;
}

static enum responder_state drop(struct transport_qp *qp, const struct arrival *arrival)
{
    qp->responder.message.open = false;
    qp->responder.expected_psn = psn_add(arrival->packet->psn, 1);
    qp->counters.dropped++;
    return RESPONDER_DONE;
}

void responder_receive(struct transport_qp *qp, const struct packet *packet,
                       const struct opcode_info *info)
{
    struct arrival arrival = { .packet = packet, .info = info, .psns = 1 };
    enum responder_state state = RESPONDER_CHECK_PSN;

    for (;;) {
        transport_trace(qp, "responder", state_names[state]);
        switch (state) {
        case RESPONDER_CHECK_PSN:
            state = check_psn(qp, &arrival);
            break;
        case RESPONDER_CHECK_SEQUENCE:
            state = check_sequence(qp, &arrival);
            break;
        case RESPONDER_CHECK_LENGTH:
            state = check_length(qp, &arrival);
            break;
        case RESPONDER_CHECK_ANSWERS:
            state = check_answers(qp, &arrival);
            break;
        case RESPONDER_CHECK_ACCESS:
            state = check_access(qp, &arrival);
            break;
        case RESPONDER_TAKE_RECEIVE:
            state = take_receive(qp, &arrival);
            break;
        case RESPONDER_EXECUTE:
            state = execute(qp, &arrival);
            break;
        case RESPONDER_COMPLETE:
            state = complete(qp, &arrival);
            break;
        case RESPONDER_ACCEPT:
            state = accept(qp, &arrival);
            break;
        case RESPONDER_DUPLICATE:
            state = duplicate(qp, &arrival);
            break;
        case RESPONDER_GAP:
            state = report_gap(qp);
            break;
        case RESPONDER_REFUSE:
            state = refuse(qp, &arrival);
            break;
        case RESPONDER_DROP:
            state = drop(qp, &arrival);
            break;
        case RESPONDER_DONE:
            return;
        }
    }
}

/* ---- answering ---- */

static void build_response(const struct transport_qp *qp, enum opcode opcode, uint32_t psn,
                           struct packet *packet)
{
    *packet = (struct packet){
        .opcode = qp->attributes.service | opcode,
        .migrated = true,
        .pkey = qp->attributes.pkey,
        .syndrome = ACK_NO_CREDITS,
        .msn = qp->responder.msn,
        .destination_qpn = qp->attributes.remote_qpn,
        .psn = psn,
    };
}

static void build_read_response(const struct transport_qp *qp,
                                const struct responder_answer *answer, struct packet *packet)
{
    static const enum opcode by_position[2][2] = {
        { OPCODE_READ_RESPONSE_MIDDLE, OPCODE_READ_RESPONSE_LAST },
        { OPCODE_READ_RESPONSE_FIRST, OPCODE_READ_RESPONSE_ONLY },
    };
    uint32_t offset = psn_distance(answer->psn, answer->next_psn) << qp->mtu_shift;
    uint32_t left = answer->length - offset;
    bool first = answer->next_psn == answer->start_psn;
    bool last = left <= qp->attributes.path_mtu;

    build_response(qp, by_position[first][last], answer->next_psn, packet);
    packet->payload.source = answer->region;
    packet->payload.offset = answer->address + offset;
    packet->payload.length = last ? left : qp->attributes.path_mtu;
}

static void pull_answer(struct transport_qp *qp, struct responder_answer *answer,
                        struct packet *packet)
{
    if (opcode_info(answer->opcode)->flags & OPCODE_READ) {
        build_read_response(qp, answer, packet);
    } else {
        build_response(qp, OPCODE_ATOMIC_ACKNOWLEDGE, answer->psn, packet);
        packet->original = answer->original;
    }
    answer->next_psn = psn_add(answer->next_psn, 1);
    if (answer->next_psn == psn_add(answer->psn, answer->packets)) {
        answer->pending = false;
        answer->given_once = true;
        qp->responder.pending--;
    }
}

static struct responder_answer *oldest_pending(struct transport_qp *qp)
{
    struct responder *responder = &qp->responder;
    unsigned at = responder->oldest;

    while (!responder->answers[at].pending)
        at = (at + 1) % qp->attributes.max_answers;
    return &responder->answers[at];
}

/* An acknowledgement speaks for all that came before it, so answers go first. It is made when it is
 * pulled: however many requests asked for one meanwhile, one is enough. */
bool responder_pull(struct transport_qp *qp, struct packet *packet)
{
    struct responder *responder = &qp->responder;

    if (responder->pending) {
        pull_answer(qp, oldest_pending(qp), packet);
    } else if (responder->acknowledge) {
        bool positive = (responder->syndrome & SYNDROME_KIND) == SYNDROME_ACK;
        build_response(qp, OPCODE_ACKNOWLEDGE,
                       positive ? psn_add(responder->expected_psn, PSN_MASK)
                                : responder->expected_psn,
                       packet);
        packet->syndrome = responder->syndrome;
        responder->acknowledge = false;
    } else {
        return false;
    }
    qp->counters.responses++;
    return true;
}
