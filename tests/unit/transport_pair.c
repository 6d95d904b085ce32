/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport_pair.h"

#include "util/util.h"

#include <stdlib.h>

#define NS_PER_PACKET      300
#define REORDER_NS         20000
#define WRITTEN_ONCE_BEGIN (PAIR_CELLS * 8 + PAIR_SCRATCH_BYTES)

struct pair_frame {
    struct pair_frame *next;
    uint64_t arrives_at;
    struct pair_end *to;
    size_t length;
    uint8_t bytes[];
};

uint32_t pair_random(struct pair *pair, uint32_t below)
{
    pair->random ^= pair->random << 13;
    pair->random ^= pair->random >> 7;
    pair->random ^= pair->random << 17;
    return (pair->random >> 32) % below;
}

static bool chance(struct pair *pair, unsigned in_a_thousand)
{
    return in_a_thousand && pair_random(pair, 1000) < in_a_thousand;
}

static struct pair_end *end_of(struct transport_qp *qp)
{
    return container_of(qp, struct pair_end, qp);
}

static void *bytes_of(const struct packet_payload *payload)
{
    return (void *)(uintptr_t)(payload->source + payload->offset);
}

static bool takes_receive(const struct transport_wqe *wqe)
{
    return wqe->operation <= TRANSPORT_SEND_INVALIDATE ||
           wqe->operation == TRANSPORT_WRITE_IMMEDIATE;
}

/* ---- operations: the sending side ---- */

static const struct transport_wqe *wqe_at(struct transport_qp *qp, uint32_t index)
{
    struct pair_end *end = end_of(qp);

    return index < end->posted ? &end->requests[index].wqe : NULL;
}

static void complete(struct transport_qp *qp, uint32_t index, enum transport_status status)
{
    struct pair_end *end = end_of(qp);
    struct pair_request *request = &end->requests[index];

    assert_int_equal(index, end->completed);
    assert_false(request->completed);
    end->completed++;
    request->completed = true;
    request->status = status;
    request->completed_at = end->pair->now;
}

static bool place_read(struct transport_qp *qp, uint32_t index, uint32_t offset,
                       const struct packet_payload *payload)
{
    struct pair_request *request = &end_of(qp)->requests[index];

    assert_true(offset + payload->length <= request->wqe.length);
    memcpy(request->local + offset, bytes_of(payload), payload->length);
    return true;
}

static bool place_atomic(struct transport_qp *qp, uint32_t index, uint64_t original)
{
    end_of(qp)->requests[index].original = original;
    return true;
}

/* ---- operations: the receiving side ---- */

static enum transport_status receive_begin(struct transport_qp *qp, const struct packet *packet)
{
    struct pair_end *end = end_of(qp);

    if (qp->attributes.service == SERVICE_XRC)
        assert_int_equal(packet->srq, PAIR_SRQ);
    if (!end->receive_period_ns)
        return TRANSPORT_SUCCESS;
    if (!end->receives)
        return TRANSPORT_NOT_READY;
    end->receives--;
    return TRANSPORT_SUCCESS;
}

static enum transport_status receive_place(struct transport_qp *qp, uint32_t offset,
                                           const struct packet_payload *payload)
{
    struct pair_end *end = end_of(qp);

    if (offset + payload->length > end->receive_length)
        return TRANSPORT_INVALID_REQUEST;
    memcpy(end->receive_buffer + offset, bytes_of(payload), payload->length);
    return TRANSPORT_SUCCESS;
}

static bool is_that_message(const struct pair_end *end, const struct pair_request *sent,
                            const struct packet *last, uint32_t length)
{
    const struct opcode_info *info = opcode_info(last->opcode);
    const struct transport_wqe *wqe = &sent->wqe;

    if (length != wqe->length ||
        !(info->flags & OPCODE_WRITE) != (wqe->operation < TRANSPORT_WRITE))
        return false;
    if (info->headers & HEADER_IMMEDIATE && last->immediate != wqe->immediate)
        return false;
    if (info->headers & HEADER_IETH && last->invalidate_key != wqe->immediate)
        return false;
    if (last->solicited != wqe->solicited)
        return false;
    const uint8_t *bytes = info->flags & OPCODE_WRITE
                               ? end->memory + (wqe->remote_address - PAIR_ADDRESS)
                               : end->receive_buffer;
    return memcmp(bytes, sent->local, length) == 0;
}

/* What arrives is the peer's next message; or, where messages get lost, a later one; or, where they
 * may come twice and in any order, some message. */
static void receive_end(struct transport_qp *qp, const struct packet *last, uint32_t length)
{
    struct pair_end *end = end_of(qp);
    struct pair_end *peer = end->peer;
    uint32_t at = end->pair->repeats_messages ? 0 : end->receive_cursor;

    for (; at < peer->posted; at++) {
        if (!takes_receive(&peer->requests[at].wqe))
            continue;
        if (is_that_message(end, &peer->requests[at], last, length))
            break;
        assert_true(end->pair->loses_messages);
    }
    assert_true(at < peer->posted);
    end->receive_cursor = at + 1;
    end->received++;
}

static enum transport_status invalidate(struct transport_qp *qp, uint32_t key)
{
    end_of(qp)->keys_invalidated++;
    return TRANSPORT_SUCCESS;
}

static enum transport_status check_remote(struct transport_qp *qp, enum transport_access access,
                                          uint32_t key, uint64_t address, uint32_t length,
                                          uint64_t *region)
{
    if (key != PAIR_KEY || address < PAIR_ADDRESS ||
        address - PAIR_ADDRESS + length > PAIR_MEMORY_BYTES)
        return TRANSPORT_ACCESS_ERROR;
    *region = (uintptr_t)end_of(qp)->memory - PAIR_ADDRESS;
    return TRANSPORT_SUCCESS;
}

static enum transport_status place_write(struct transport_qp *qp, uint64_t region, uint64_t address,
                                         const struct packet_payload *payload)
{
    struct pair_end *end = end_of(qp);
    uint64_t at = address - PAIR_ADDRESS;

    assert_int_equal(region + address, (uintptr_t)end->memory + at);
    unsigned placed_before = 0;
    for (uint32_t i = 0; at >= WRITTEN_ONCE_BEGIN && i < payload->length; i++)
        placed_before += end->placed[at + i]++;
    assert_int_equal(placed_before, 0);
    memcpy(end->memory + at, bytes_of(payload), payload->length);
    return TRANSPORT_SUCCESS;
}

static uint64_t atomic_result(uint8_t opcode, uint64_t value, uint64_t compare,
                              uint64_t swap_or_add)
{
    if ((opcode & ~SERVICE_MASK) == OPCODE_FETCH_ADD)
        return value + swap_or_add;
    return value == compare ? swap_or_add : value;
}

static enum transport_status atomic(struct transport_qp *qp, uint64_t region,
                                    const struct packet *request, uint64_t *original)
{
    uint8_t *cell = (uint8_t *)(uintptr_t)(region + request->remote_address);

    memcpy(original, cell, 8);
    uint64_t result =
        atomic_result(request->opcode, *original, request->compare, request->swap_or_add);
    memcpy(cell, &result, 8);
    return TRANSPORT_SUCCESS;
}

static void failed(struct transport_qp *qp, enum transport_status why)
{
    struct pair_end *end = end_of(qp);

    assert_false(end->failed);
    end->failed = true;
    end->why = why;
}

static const struct transport_ops plain_ops = {
    .wqe_at = wqe_at,
    .complete = complete,
    .place_read = place_read,
    .place_atomic = place_atomic,
    .receive_begin = receive_begin,
    .receive_place = receive_place,
    .receive_end = receive_end,
    .invalidate = invalidate,
    .check_remote = check_remote,
    .place_write = place_write,
    .atomic = atomic,
    .failed = failed,
};

/* ---- the pair ---- */

struct transport_attributes pair_attributes(enum transport_service service)
{
    return (struct transport_attributes){
        .service = service,
        .pkey = 0xffff,
        .qkey = 0x11111111,
        .path_mtu = 1024,
        .window = 32,
        .ack_every = 8,
        .timeout = 5,
        .retry_count = 7,
        .rnr_retry_count = TRANSPORT_RETRY_FOREVER,
        .max_reads = 4,
        .responder_resources = 4,
        .rnr_timer = 2,
    };
}

static void *allocate(size_t bytes)
{
    void *memory = calloc(1, bytes);

    assert_non_null(memory);
    return memory;
}

static void init_end(struct pair *pair, unsigned which,
                     const struct transport_attributes *attributes)
{
    struct pair_end *end = &pair->ends[which];
    struct transport_attributes own = *attributes;

    own.local_qpn = 0x100 + which;
    own.remote_qpn = 0x101 - which;
    own.send_psn = which ? attributes->receive_psn : attributes->send_psn;
    own.receive_psn = which ? attributes->send_psn : attributes->receive_psn;
    end->pair = pair;
    end->peer = &pair->ends[1 - which];
    end->memory = allocate(PAIR_MEMORY_BYTES);
    end->model = allocate(PAIR_MEMORY_BYTES);
    end->placed = allocate(PAIR_MEMORY_BYTES);
    end->receive_buffer = allocate(PAIR_MAX_MESSAGE);
    end->receive_length = PAIR_MAX_MESSAGE;
    end->written_end = WRITTEN_ONCE_BEGIN;
    own.resources = end->resources;
    own.counters = &end->counters;
    transport_init(&end->qp, &pair->ops, &own);
}

struct pair *pair_new(uint64_t seed, const struct transport_attributes *attributes)
{
    struct pair *pair = allocate(sizeof(*pair));

    pair->ops = plain_ops;
    pair->random = seed * 0x9e3779b97f4a7c15ull + 1;
    pair->loses_messages = attributes->service == SERVICE_UC || attributes->service == SERVICE_UD;
    pair->repeats_messages = attributes->service == SERVICE_UD;
    init_end(pair, 0, attributes);
    init_end(pair, 1, attributes);
    return pair;
}

struct pair *pair_plain(void)
{
    struct transport_attributes attributes = pair_attributes(SERVICE_RC);

    return pair_new(1, &attributes);
}

void pair_free(struct pair *pair)
{
    for (unsigned i = 0; i < 2; i++) {
        struct pair_end *end = &pair->ends[i];
        for (uint32_t at = 0; at < end->posted; at++) {
            free(end->requests[at].local);
            free(end->requests[at].expected);
        }
        free(end->memory);
        free(end->model);
        free(end->placed);
        free(end->receive_buffer);
    }
    while (pair->frames) {
        struct pair_frame *frame = pair->frames;
        pair->frames = frame->next;
        free(frame);
    }
    free(pair);
}

/* ---- posting ---- */

static void plan_write(struct pair_end *end, struct pair_request *request, bool scratch)
{
    struct pair_end *peer = end->peer;
    uint32_t length = request->wqe.length;
    uint32_t at = scratch ? PAIR_CELLS * 8 + pair_random(end->pair, PAIR_SCRATCH_BYTES - length + 1)
                          : peer->written_end;

    assert_true(at + length <= PAIR_MEMORY_BYTES);
    request->wqe.remote_address = PAIR_ADDRESS + at;
    request->wqe.fence |= scratch; /* what earlier reads are to find must not change under them */
    memcpy(peer->model + at, request->local, length);
    if (!scratch)
        peer->written_end += length;
}

static void plan_read(struct pair_end *end, struct pair_request *request)
{
    struct pair_end *peer = end->peer;
    uint32_t length = request->wqe.length;
    uint32_t begin = PAIR_CELLS * 8;
    uint32_t room = peer->written_end - begin;
    /* Memory that no earlier request has written must be such as none will. */
    uint32_t at =
        room > length ? begin + pair_random(end->pair, room - length) : PAIR_MEMORY_BYTES - length;

    request->wqe.remote_address = PAIR_ADDRESS + at;
    request->expected = allocate(length + 1);
    memcpy(request->expected, peer->model + at, length);
    memset(request->local, 0xee, length);
}

static void plan_atomic(struct pair_end *end, struct pair_request *request)
{
    uint32_t cell = pair_random(end->pair, PAIR_CELLS) * 8;
    struct transport_wqe *wqe = &request->wqe;
    uint8_t opcode = wqe->operation == TRANSPORT_FETCH_ADD ? OPCODE_FETCH_ADD : OPCODE_COMPARE_SWAP;
    uint64_t value;

    memcpy(&value, end->peer->model + cell, 8);
    wqe->remote_address = PAIR_ADDRESS + cell;
    wqe->swap_or_add = pair_random(end->pair, 1000) + 1;
    wqe->compare = pair_random(end->pair, 2) ? value : value + 1;
    request->expected_original = value;
    value = atomic_result(opcode, value, wqe->compare, wqe->swap_or_add);
    memcpy(end->peer->model + cell, &value, 8);
}

struct pair_request *pair_post(struct pair_end *end, enum transport_operation operation,
                               uint32_t length)
{
    struct pair_request *request = &end->requests[end->posted];
    bool is_atomic = operation >= TRANSPORT_COMPARE_SWAP;

    assert_true(end->posted < PAIR_MAX_REQUESTS && length <= PAIR_MAX_MESSAGE);
    request->local = allocate(length + 1);
    uint32_t word = pair_random(end->pair, UINT32_MAX);
    for (uint32_t i = 0; i < length; i++)
        request->local[i] = (word = word * 1664525 + 1013904223) >> 24;
    request->wqe = (struct transport_wqe){
        .operation = operation,
        .length = is_atomic ? 8 : length,
        .data = (uintptr_t)request->local,
        .remote_address = PAIR_ADDRESS,
        .remote_key = PAIR_KEY,
        .immediate = end->posted * 3 + 1,
        .remote_srq = PAIR_SRQ,
        .remote_qpn = end->qp.attributes.remote_qpn,
        .qkey = end->qp.attributes.qkey,
    };
    if (is_atomic)
        plan_atomic(end, request);
    else if (operation == TRANSPORT_READ)
        plan_read(end, request);
    else if (operation >= TRANSPORT_WRITE)
        plan_write(end, request, length <= PAIR_SCRATCH_BYTES && pair_random(end->pair, 4) == 0);
    end->posted++;
    return request;
}

void pair_post_random(struct pair_end *end)
{
    struct pair *pair = end->pair;
    const struct transport_attributes *attributes = &end->qp.attributes;
    uint32_t mtu = attributes->path_mtu;
    const uint32_t lengths[] = { 0,           1,           3,
                                 mtu - 1,     mtu,         mtu + 1,
                                 3 * mtu,     5 * mtu + 7, pair_random(pair, 3 * mtu),
                                 16 * mtu - 1 };
    static const enum transport_operation unconnected[] = { TRANSPORT_SEND,
                                                            TRANSPORT_SEND_IMMEDIATE };
    static const enum transport_operation unreliable[] = { TRANSPORT_SEND, TRANSPORT_SEND_IMMEDIATE,
                                                           TRANSPORT_WRITE,
                                                           TRANSPORT_WRITE_IMMEDIATE };
    uint32_t length = lengths[pair_random(pair, ARRAY_SIZE(lengths))];
    enum transport_operation operation = pair_random(pair, TRANSPORT_FETCH_ADD + 1);

    if (attributes->service == SERVICE_UC)
        operation = unreliable[pair_random(pair, ARRAY_SIZE(unreliable))];
    if (attributes->service == SERVICE_UD) {
        operation = unconnected[pair_random(pair, ARRAY_SIZE(unconnected))];
        length %= mtu + 1;
    }
    struct pair_request *request = pair_post(end, operation, length);
    request->wqe.fence |= pair_random(pair, 8) == 0;
    request->wqe.solicited = takes_receive(&request->wqe) && pair_random(pair, 4) == 0;
}

/* ---- the wire ---- */

static void put_on_wire(struct pair *pair, struct pair_end *to, const uint8_t *bytes, size_t length)
{
    struct pair_frame *frame = allocate(sizeof(*frame) + length);
    struct pair_frame **link = &pair->frames;

    frame->to = to;
    frame->length = length;
    frame->arrives_at = pair->now + PAIR_LINK_NS;
    if (chance(pair, pair->faults.reorder))
        frame->arrives_at += pair_random(pair, REORDER_NS);
    memcpy(frame->bytes, bytes, length);
    if (chance(pair, pair->faults.corrupt)) {
        uint32_t bit = pair_random(pair, length * 8);
        frame->bytes[bit / 8] ^= 1 << bit % 8;
    }
    while (*link && (*link)->arrives_at <= frame->arrives_at)
        link = &(*link)->next;
    frame->next = *link;
    *link = frame;
}

static void send(struct pair_end *from, const struct packet *packet)
{
    struct pair *pair = from->pair;
    const struct frame_path path = { .source_lid = 1, .destination_lid = 2 };
    uint8_t bytes[FRAME_MAX_BYTES];
    size_t length = frame_encode(&path, packet, bytes_of(&packet->payload), bytes, sizeof(bytes));

    assert_true(length > 0);
    from->packets_sent++;
    from->ack_requests_sent += packet->ack_request;
    if (pair->lose ? pair->lose(from, packet) : chance(pair, pair->faults.drop))
        return;
    put_on_wire(pair, from->peer, bytes, length);
    if (chance(pair, pair->faults.duplicate))
        put_on_wire(pair, from->peer, bytes, length);
}

static void deliver(struct pair *pair, struct pair_frame *frame)
{
    struct frame_path path;
    struct packet packet;
    const char *wrong = frame_decode(&path, &packet, frame->bytes, frame->length);

    if (!wrong)
        transport_receive(&frame->to->qp, pair->now, &packet);
    else
        assert_true(pair->faults.corrupt > 0);
}

/* ---- the clock ---- */

static void send_what_can_be_sent(struct pair_end *end)
{
    struct pair *pair = end->pair;
    struct packet packet;

    if (end->link_free_at > pair->now)
        return;
    if (transport_pull_response(&end->qp, &packet) ||
        transport_pull_request(&end->qp, pair->now, &packet)) {
        send(end, &packet);
        end->link_free_at = pair->now + NS_PER_PACKET;
    }
}

static void post_receives(struct pair_end *end)
{
    struct pair *pair = end->pair;

    if (!end->receive_period_ns || pair->now < end->next_receives_at)
        return;
    end->receives += pair_random(pair, 4);
    end->next_receives_at = pair->now + 1 + pair_random(pair, 2 * end->receive_period_ns);
}

static void earlier(uint64_t *next, uint64_t candidate)
{
    if (candidate < *next)
        *next = candidate;
}

static uint64_t next_event(const struct pair *pair)
{
    uint64_t next = pair->frames ? pair->frames->arrives_at : TRANSPORT_NEVER;

    for (unsigned i = 0; i < 2; i++) {
        const struct pair_end *end = &pair->ends[i];
        bool peer_sends = !end->peer->failed && end->peer->completed < end->peer->posted;

        earlier(&next, transport_deadline(&end->qp));
        if (end->link_free_at > pair->now)
            earlier(&next, end->link_free_at);
        if (end->receive_period_ns && peer_sends)
            earlier(&next, end->next_receives_at);
    }
    return next;
}

void pair_run(struct pair *pair, uint64_t until)
{
    for (;;) {
        for (unsigned i = 0; i < 2; i++)
            send_what_can_be_sent(&pair->ends[i]);
        uint64_t next = next_event(pair);
        if (next == TRANSPORT_NEVER || next > until)
            return;
        if (next > pair->now)
            pair->now = next;
        while (pair->frames && pair->frames->arrives_at <= pair->now) {
            struct pair_frame *frame = pair->frames;
            pair->frames = frame->next;
            deliver(pair, frame);
            free(frame);
        }
        for (unsigned i = 0; i < 2; i++) {
            transport_timeout(&pair->ends[i].qp, pair->now);
            post_receives(&pair->ends[i]);
        }
    }
}

/* ---- what should have come of it ---- */

void pair_check_completed(struct pair_end *end)
{
    for (uint32_t i = 0; i < end->completed; i++) {
        struct pair_request *request = &end->requests[i];
        if (request->status != TRANSPORT_SUCCESS)
            continue;
        if (request->wqe.operation == TRANSPORT_READ)
            assert_memory_equal(request->local, request->expected, request->wqe.length);
        if (request->wqe.operation >= TRANSPORT_COMPARE_SWAP)
            assert_int_equal(request->original, request->expected_original);
    }
}

static uint32_t count(const struct pair_end *end, bool (*which)(const struct transport_wqe *wqe))
{
    uint32_t found = 0;

    for (uint32_t i = 0; i < end->posted; i++)
        found += which(&end->requests[i].wqe);
    return found;
}

static bool invalidates(const struct transport_wqe *wqe)
{
    return wqe->operation == TRANSPORT_SEND_INVALIDATE;
}

void pair_check_all_done(struct pair *pair)
{
    for (unsigned i = 0; i < 2; i++) {
        struct pair_end *end = &pair->ends[i];

        assert_false(end->failed);
        assert_int_equal(end->completed, end->posted);
        for (uint32_t at = 0; at < end->posted; at++)
            assert_int_equal(end->requests[at].status, TRANSPORT_SUCCESS);
        pair_check_completed(end);
        assert_memory_equal(end->memory, end->model, PAIR_MEMORY_BYTES);
        assert_int_equal(end->received, count(end->peer, takes_receive));
        assert_int_equal(end->keys_invalidated, count(end->peer, invalidates));
        assert_false(transport_has_response(&end->qp));
        assert_int_equal(end->qp.requester.in_flight, 0);
        assert_int_equal(end->qp.requester.reads, 0);
    }
}
