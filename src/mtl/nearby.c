#include "mtl/nearby.h"

#include "mtl/protocol.h"
#include "mtl/shared.h"

#include <opal/runtime/opal_progress.h>

#define PART_MAX (1ull << 20) /* what one takes on at a time */

/* ---- receiving ---- */

static void pull(struct transfer *transfer)
{
    struct wire_accept body = { .cookie = transfer->peer_cookie,
                                .size = transfer->length,
                                .target = transfer->cookie };

    transfer->pulled = true;
    transfer->arrived = 0;
    endpoint_control(transfer->endpoint, WIRE_PULL, &body, sizeof(body));
}

static void arrived(struct transfer *transfer, uint64_t length)
{
    transfer->arrived += length;
    if (transfer->arrived < transfer->length)
        return;
    if (!transfer->pulled)
        transfer_tell_done(transfer->endpoint, transfer->peer_cookie);
    transfer_over(transfer);
}

/* Half of it: each call costs some microseconds, and most when both call. */
static uint64_t length_of_part(uint64_t size)
{
    uint64_t half = round_up(size / 2, PAGE), least = round_up(size / CLAIMS_MAX + 1, PAGE);
    uint64_t part = half < PART_MAX ? half : PART_MAX;

    return part > least ? part : least;
}

static struct memory_pair part_of(const struct transfer *transfer, uint64_t there, uint64_t part,
                                  int index)
{
    uint64_t offset = index * part, left = transfer->length - offset;

    return (struct memory_pair){ .here = transfer->data + offset,
                                 .there = there + offset,
                                 .length = left < part ? left : part };
}

/* Asks the sender to help, and copies until all parts are taken. The sender says how much it has
 * copied; if it has not even seen this by then, it finds nothing to take. */
static bool read_together(struct transfer *transfer, uint64_t from, claims_word *claims)
{
    uint64_t part = length_of_part(transfer->length), copied = 0;
    struct wire_help body = {
        .cookie = transfer->peer_cookie,
        .target = transfer->cookie,
        .address = (uintptr_t)transfer->data,
        .size = transfer->length,
        .part = part,
        .claims = claims_open(claims, (transfer->length + part - 1) / part),
    };
    int index;

    endpoint_control(transfer->endpoint, WIRE_HELP, &body, sizeof(body));
    while ((index = claims_take(claims, body.claims, CLAIM_FIRST)) != CLAIM_NONE) {
        struct memory_pair pair = part_of(transfer, from, part, index);

        if (!shared_read(transfer->endpoint->shared, &pair))
            return false;
        copied += pair.length;
    }
    arrived(transfer, copied);
    return true;
}

static bool read_alone(struct transfer *transfer, uint64_t from)
{
    struct memory_pair all = { transfer->data, from, transfer->length };

    if (!shared_read(transfer->endpoint->shared, &all))
        return false;
    arrived(transfer, transfer->length);
    return true;
}

/* In a model one process runs at a time, and what a copy costs is the model's business. With more
 * processes than processors nobody is idle; and who has messages on offer itself keeps others busy
 * with reading them. */
static claims_word *claims_for(const struct transfer *transfer)
{
    uint64_t from = mtl.parameters.together_from;

    if (!from || transfer->length < from || vtime.on || opal_progress_yield_when_idle ||
        rendezvous_has_offers())
        return NULL;
    return shared_claims_in(transfer->endpoint->shared);
}

void nearby_take(struct transfer *transfer, uint64_t from)
{
    claims_word *claims = claims_for(transfer);

    if (claims ? !read_together(transfer, from, claims) : !read_alone(transfer, from))
        pull(transfer);
}

/* Fragments are sent after all that the sender has copied, and are the same data. */
static void helped(const struct wire_helped *body)
{
    struct transfer *transfer = cookie_find(COOKIE_TRANSFER, body->target);

    if (!transfer || transfer->pulled)
        return;
    if (body->failed)
        pull(transfer);
    else
        arrived(transfer, body->size);
}

static void fragment_arrived(const struct wire_header *header, const struct wire_fragment *body)
{
    struct transfer *transfer = cookie_find(COOKIE_TRANSFER, body->target);
    uint64_t length = header->length - sizeof(*body);

    if (!transfer || body->offset + length > transfer->length)
        return;
    mtl_charge_copy(length);
    memcpy(transfer->data + body->offset, body + 1, length);
    arrived(transfer, length);
}

/* ---- sending ---- */

int nearby_go_on(struct transfer *transfer)
{
    int count = 0;

    while (transfer->sent < transfer->length) {
        struct wire_fragment body = { .target = transfer->peer_cookie, .offset = transfer->sent };
        uint64_t left = transfer->length - transfer->sent;
        uint64_t most = mtl.parameters.shared_limit;
        struct message message = { .header = { .type = WIRE_FRAGMENT },
                                   .body = &body,
                                   .body_length = sizeof(body),
                                   .data = transfer->data + transfer->sent,
                                   .data_length = left < most ? left : most };

        if (!endpoint_try(transfer->endpoint, &message, transfer->request->class)) {
            transfer_waits(transfer);
            return count;
        }
        transfer->sent += message.data_length;
        count++;
    }
    transfer_over(transfer);
    return count;
}

static void pulled(const struct wire_accept *body)
{
    struct transfer *transfer = cookie_find(COOKIE_TRANSFER, body->cookie);

    if (!transfer || transfer->peer_cookie)
        return;
    transfer->peer_cookie = body->target;
    transfer->length = body->size;
    nearby_go_on(transfer);
}

static void help(const struct wire_help *body)
{
    struct transfer *transfer = cookie_find(COOKIE_TRANSFER, body->cookie);
    struct wire_helped answer = { .target = body->target };
    struct shared_peer *peer;
    int index;

    if (!transfer || !shared_may_write())
        return;
    transfer->length = body->size;
    peer = transfer->endpoint->shared;
    while ((index = claims_take(shared_claims_out(peer), body->claims, CLAIM_LAST)) != CLAIM_NONE) {
        struct memory_pair pair = part_of(transfer, body->address, body->part, index);

        answer.failed = !shared_write(peer, &pair);
        if (answer.failed)
            break;
        answer.size += pair.length;
    }
    mtl.counters.helped_bytes += answer.size;
    if (answer.size || answer.failed)
        endpoint_control(transfer->endpoint, WIRE_HELPED, &answer, sizeof(answer));
}

void nearby_arrived(const struct wire_header *header, const void *body)
{
    switch (header->type) {
    case WIRE_PULL:
        pulled(body);
        break;
    case WIRE_FRAGMENT:
        fragment_arrived(header, body);
        break;
    case WIRE_HELP:
        help(body);
        break;
    default:
        helped(body);
    }
}
