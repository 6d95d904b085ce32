/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/responder.h"

#include "transport/psn.h"
#include "transport/transport.h"

#include <string.h>

enum responder_state {
    RESPONDER_CHECK_PSN,      /* expected, duplicate or out of sequence? */
    RESPONDER_CHECK_SEQUENCE, /* does the opcode continue what came before? */
    RESPONDER_CHECK_LENGTH,
    RESPONDER_CHECK_RESOURCES, /* is a resource free for a read or atomic? */
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
    [RESPONDER_CHECK_RESOURCES] = "check resources",
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

/* A request packet as it goes through the states. */
struct arrival {
    const struct packet *packet;
    const struct opcode_info *info;
    uint64_t region;
    uint32_t psns; /* PSNs it uses: for a read, those of the response */
    enum transport_status verdict;
};

void responder_init(struct transport_qp *qp)
{
    struct responder_resource *resources = qp->attributes.resources;
    size_t count = qp->attributes.responder_resources;

    qp->responder = (struct responder){ .expected_psn = qp->attributes.receive_psn,
                                        .resources = resources };
    memset(resources, 0, (count ? count : 1) * sizeof(*resources));
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

/* ---- checks ---- */

/* IBA volume 1, 9.7.4 for the reliable services; 9.8.2 for UC, which accepts any later packet and
 * tells from its opcode whether a message was cut off. */
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
    qp->attributes.counters->gaps++;
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

/* IBA volume 1, 9.7.4: every packet but the last is full, and a write has the length of its
 * RETH. */
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
    return has(arrival, OPCODE_READ | OPCODE_ATOMIC) ? RESPONDER_CHECK_RESOURCES
                                                     : RESPONDER_CHECK_ACCESS;
}

/* A requester that respects responder_resources sends a new read or atomic only after it has
 * received the oldest response: that resource can be reused. */
static enum responder_state check_resources(struct transport_qp *qp, struct arrival *arrival)
{
    const struct responder_resource *oldest = &qp->responder.resources[qp->responder.oldest];
    bool available = qp->attributes.responder_resources && (!oldest->pending || oldest->responded);

    if (!available || (has(arrival, OPCODE_ATOMIC) && arrival->packet->remote_address % 8))
        return refuse_with(arrival, TRANSPORT_INVALID_REQUEST);
    return RESPONDER_CHECK_ACCESS;
}

/* With length 0, nothing is accessed and the key is not checked. */
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

/* ---- execution ---- */

static void remember(struct transport_qp *qp, struct arrival *arrival, uint64_t original)
{
    struct responder *responder = &qp->responder;
    struct responder_resource *resource = &responder->resources[responder->oldest];
    const struct packet *packet = arrival->packet;

    arrival->psns = has(arrival, OPCODE_READ) ? transport_packets(qp, packet->remote_length) : 1;
    if (!resource->pending)
        responder->pending++;
    responder->oldest = (responder->oldest + 1) % qp->attributes.responder_resources;
    *resource = (struct responder_resource){
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

/* An ACK that was not sent yet acknowledges this packet too; a NAK is obsolete. */
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

/* ---- duplicates, gaps, errors ---- */

/* Newest first: PSNs wrap, so an old resource may have the PSN of a new one. */
static struct responder_resource *find_resource(struct transport_qp *qp,
                                                const struct packet *packet)
{
    struct responder *responder = &qp->responder;
    unsigned count = qp->attributes.responder_resources;

    for (unsigned age = 1; age <= count; age++) {
        struct responder_resource *resource =
            &responder->resources[(responder->oldest + count - age) % count];
        if (resource->opcode == packet->opcode &&
            psn_distance(resource->psn, packet->psn) < resource->packets)
            return resource;
    }
    return NULL;
}

/* A duplicate read is executed again from the requested offset; it must be the tail of the original
 * read, and still be allowed. A duplicate atomic gets the saved result. */
static bool may_repeat(struct transport_qp *qp, struct responder_resource *resource,
                       const struct arrival *arrival)
{
    const struct packet *packet = arrival->packet;
    uint32_t offset = psn_distance(resource->psn, packet->psn) << qp->mtu_shift;

    if (packet->remote_key != resource->key || packet->remote_address != resource->address + offset)
        return false;
    if (has(arrival, OPCODE_ATOMIC))
        return true;
    if (packet->remote_length != resource->length - offset)
        return false;
    return !packet->remote_length ||
           qp->ops->check_remote(qp, TRANSPORT_ACCESS_READ, packet->remote_key,
                                 packet->remote_address, packet->remote_length,
                                 &resource->region) == TRANSPORT_SUCCESS;
}

static enum responder_state repeat_response(struct transport_qp *qp, const struct arrival *arrival)
{
    struct responder_resource *resource = find_resource(qp, arrival->packet);

    /* Ignore a request whose resource was reused, and a read that is no longer allowed. */
    if (!resource || !may_repeat(qp, resource, arrival))
        return RESPONDER_DONE;
    if (!resource->pending)
        qp->responder.pending++;
    resource->pending = true;
    resource->start_psn = arrival->packet->psn;
    resource->next_psn = arrival->packet->psn;
    return RESPONDER_DONE;
}

static enum responder_state duplicate(struct transport_qp *qp, const struct arrival *arrival)
{
    struct responder *responder = &qp->responder;

    qp->attributes.counters->duplicates++;
    if (has(arrival, OPCODE_READ | OPCODE_ATOMIC))
        return repeat_response(qp, arrival);
    if (transport_is_reliable(qp) && !responder->acknowledge) {
        responder->acknowledge = true;
        responder->syndrome = ACK_NO_CREDITS;
    }
    return RESPONDER_DONE;
}

static void send_nak(struct responder *responder, uint8_t syndrome)
{
    responder->acknowledge = true;
    responder->syndrome = syndrome;
    responder->gap_reported = true;
}

/* One NAK per gap: the requester goes back, and the packets already in flight need none. */
static enum responder_state report_gap(struct transport_qp *qp)
{
    qp->attributes.counters->gaps++;
    if (!qp->responder.gap_reported)
        send_nak(&qp->responder, NAK_SEQUENCE);
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

/* The receive or this side is at fault, not only the sender. */
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
        send_nak(&qp->responder, SYNDROME_RNR | qp->attributes.rnr_timer);
        return RESPONDER_DONE;
    }
    if (transport_is_reliable(qp))
        send_nak(&qp->responder, nak_for(verdict));
    transport_fail(qp, verdict);
    return RESPONDER_DONE;
}

static enum responder_state drop(struct transport_qp *qp, const struct arrival *arrival)
{
    qp->responder.message.open = false;
    qp->responder.expected_psn = psn_add(arrival->packet->psn, 1);
    qp->attributes.counters->dropped++;
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
        case RESPONDER_CHECK_RESOURCES:
            state = check_resources(qp, &arrival);
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

/* ---- responses ---- */

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
                                const struct responder_resource *resource, struct packet *packet)
{
    static const enum opcode by_position[2][2] = {
        { OPCODE_READ_RESPONSE_MIDDLE, OPCODE_READ_RESPONSE_LAST },
        { OPCODE_READ_RESPONSE_FIRST, OPCODE_READ_RESPONSE_ONLY },
    };
    uint32_t offset = psn_distance(resource->psn, resource->next_psn) << qp->mtu_shift;
    uint32_t left = resource->length - offset;
    bool first = resource->next_psn == resource->start_psn;
    bool last = left <= qp->attributes.path_mtu;

    build_response(qp, by_position[first][last], resource->next_psn, packet);
    packet->payload.source = resource->region;
    packet->payload.offset = resource->address + offset;
    packet->payload.length = last ? left : qp->attributes.path_mtu;
}

static void pull_resource(struct transport_qp *qp, struct responder_resource *resource,
                          struct packet *packet)
{
    if (opcode_info(resource->opcode)->flags & OPCODE_READ) {
        build_read_response(qp, resource, packet);
    } else {
        build_response(qp, OPCODE_ATOMIC_ACKNOWLEDGE, resource->psn, packet);
        packet->original = resource->original;
    }
    resource->next_psn = psn_add(resource->next_psn, 1);
    if (resource->next_psn == psn_add(resource->psn, resource->packets)) {
        resource->pending = false;
        resource->responded = true;
        qp->responder.pending--;
    }
}

unsigned responder_next(const struct transport_qp *qp)
{
    const struct responder *responder = &qp->responder;
    unsigned at = responder->oldest;

    while (!responder->resources[at].pending)
        at = (at + 1) % qp->attributes.responder_resources;
    return at;
}

/* An ACK covers all earlier requests, so read and atomic responses go first. It is built when it is
 * pulled: one ACK serves all requests that asked for one in the meantime. */
bool responder_pull(struct transport_qp *qp, struct packet *packet)
{
    struct responder *responder = &qp->responder;

    if (responder->pending) {
        pull_resource(qp, &responder->resources[responder_next(qp)], packet);
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
    qp->attributes.counters->responses++;
    return true;
}
