/* SPDX-License-Identifier: BSD-2-Clause */
#include "mtl/intranode.h"

#include "mtl/protocol.h"
#include "mtl/ring_limit.h"
#include "mtl/shared.h"

#include <opal/runtime/opal_progress.h>

#define CHUNK_MAX (1ull << 20)
/* In a stream of shorter messages, two system calls on a message cost more than both copies gain. */
#define COOP_STREAM_MIN (128u << 10)

/* ---- receiving ---- */

static void request_fragments(struct transfer *transfer)
{
    struct wire_cts body = { .send_id = transfer->peer_id,
                             .size = transfer->length,
                             .recv_id = transfer->id };

    if (transfer->invited)
        intranode_withdraw(transfer);
    transfer->fragmented = true;
    transfer->arrived = 0;
    endpoint_send_control(transfer->endpoint, WIRE_CTS_FRAGMENTS, &body, sizeof(body));
}

static void bytes_arrived(struct transfer *transfer, uint64_t length)
{
    transfer->arrived += length;
    if (transfer->arrived < transfer->length)
        return;
    if (!transfer->fragmented)
        rendezvous_send_ack(transfer->endpoint, transfer->peer_id);
    rendezvous_complete(transfer);
}

/* Half of the message: each system call costs some microseconds, most when both processes make
 * one. */
static uint64_t chunk_length(uint64_t size)
{
    uint64_t half = round_up(size / 2, PAGE), minimum = round_up(size / COOP_CHUNKS_MAX + 1, PAGE);
    uint64_t chunk = half < CHUNK_MAX ? half : CHUNK_MAX;

    return chunk > minimum ? chunk : minimum;
}

static struct shared_copy chunk_copy(const struct transfer *transfer, uint64_t remote,
                                     uint64_t chunk, int index)
{
    uint64_t offset = index * chunk, left = transfer->length - offset;

    return (struct shared_copy){ .local = transfer->data + offset,
                                 .remote = remote + offset,
                                 .length = left < chunk ? left : chunk };
}

/* The sender reports how much it has copied; if it sees the invitation too late, it finds nothing to
 * claim. */
static void invite(struct transfer *transfer, coop_word *word)
{
    uint64_t chunk = chunk_length(transfer->length);
    struct wire_coop_copy body = {
        .send_id = transfer->peer_id,
        .recv_id = transfer->id,
        .address = (uintptr_t)transfer->data,
        .size = transfer->length,
        .chunk = chunk,
        .number = coop_start(word, (transfer->length + chunk - 1) / chunk),
    };

    transfer->coop_number = body.number;
    endpoint_send_control(transfer->endpoint, WIRE_COOP_COPY, &body, sizeof(body));
}

/* Copies until all chunks are claimed. */
static bool read_cooperatively(struct transfer *transfer, coop_word *word)
{
    uint64_t chunk = chunk_length(transfer->length), copied = 0;
    int index;

    while ((index = coop_claim(word, transfer->coop_number, COOP_FRONT)) != COOP_NONE) {
        struct shared_copy copy = chunk_copy(transfer, transfer->peer_address, chunk, index);

        if (!shared_read(transfer->endpoint->shared, &copy))
            return false;
        copied += copy.length;
    }
    bytes_arrived(transfer, copied);
    return true;
}

static bool read_alone(struct transfer *transfer)
{
    struct shared_copy all = { transfer->data, transfer->peer_address, transfer->length };

    if (!shared_read(transfer->endpoint->shared, &all))
        return false;
    bytes_arrived(transfer, transfer->length);
    return true;
}

/* Returns NULL if the receiver shall copy alone. In virtual time one process runs at a time, and
 * the model sets the cost of a copy. With more processes than cores, none is idle. While this
 * process has long sends of its own, its peers are busy reading them. */
static coop_word *coop_word_for(const struct transfer *transfer)
{
    uint64_t minimum = mtl.parameters.coop_copy_min;

    if (!minimum || transfer->length < minimum || vtime.on || opal_progress_yield_when_idle ||
        rendezvous_has_shared_sends())
        return NULL;
    if (transfer->length < COOP_STREAM_MIN && shared_has_more(transfer->endpoint->shared))
        return NULL;
    return shared_coop_recv_word(transfer->endpoint->shared);
}

/* Transfers whose senders have been invited while the program had other things to do, at most one
 * from each: a second invitation would end the first. */
static struct transfer *invited;

static bool has_invited(const struct endpoint *endpoint)
{
    const struct transfer *transfer = invited;

    while (transfer && transfer->endpoint != endpoint)
        transfer = transfer->next_invited;
    return transfer != NULL;
}

static void invite_only(struct transfer *transfer, coop_word *word)
{
    transfer->invited = true;
    transfer->next_invited = invited;
    invited = transfer;
    invite(transfer, word);
}

void intranode_withdraw(struct transfer *transfer)
{
    struct transfer **at = &invited;

    while (*at != transfer)
        at = &(*at)->next_invited;
    *at = transfer->next_invited;
    transfer->invited = false;
}

int intranode_receive(struct transfer *transfer)
{
    bool copies = mtl.waits || transfer->request->blocking;
    bool one_invited = invited && has_invited(transfer->endpoint);
    coop_word *word = coop_word_for(transfer);

    if (word && !copies) {
        if (one_invited)
            rendezvous_defer(transfer);
        else
            invite_only(transfer, word);
        return !one_invited;
    }
    if (one_invited)
        word = NULL;
    if (word)
        invite(transfer, word);
    if (word ? !read_cooperatively(transfer, word) : !read_alone(transfer))
        request_fragments(transfer);
    return 1;
}

int intranode_progress(void)
{
    int count = 0;

    while (invited && mtl.waits) {
        struct transfer *transfer = invited;
        coop_word *word = shared_coop_recv_word(transfer->endpoint->shared);

        intranode_withdraw(transfer);
        if (!read_cooperatively(transfer, word))
            request_fragments(transfer);
        count++;
    }
    return count;
}

/* After a switch to fragments the report is obsolete: the fragments carry all data again. */
static void coop_done_arrived(const struct wire_coop_done *body)
{
    struct transfer *transfer = request_id_find(REQUEST_ID_TRANSFER, body->recv_id);

    if (!transfer || transfer->fragmented)
        return;
    if (body->failed)
        request_fragments(transfer);
    else
        bytes_arrived(transfer, body->size);
}

static void data_arrived(const struct wire_header *header, const struct wire_data *body)
{
    struct transfer *transfer = request_id_find(REQUEST_ID_TRANSFER, body->recv_id);
    uint64_t length = header->length - sizeof(*body);

    if (!transfer || body->offset + length > transfer->length)
        return;
    mtl_charge_copy(length);
    memcpy(transfer->data + body->offset, body + 1, length);
    bytes_arrived(transfer, length);
}

/* ---- sending ---- */

static uint64_t fragment_length(uint64_t left)
{
    uint64_t limit = protocol_shared_memory_limit();

    limit = limit < RING_PIECE ? limit : RING_PIECE;
    return left < limit ? left : limit;
}

int intranode_send_fragments(struct transfer *transfer)
{
    int count = 0;

    while (transfer->sent < transfer->length) {
        struct wire_data body = { .recv_id = transfer->peer_id, .offset = transfer->sent };
        struct message message = { .header = { .type = WIRE_DATA },
                                   .body = &body,
                                   .body_length = sizeof(body),
                                   .data = transfer->data + transfer->sent,
                                   .data_length =
                                       fragment_length(transfer->length - transfer->sent) };

        if (!endpoint_try_send(transfer->endpoint, &message, transfer->request->class)) {
            rendezvous_defer(transfer);
            return count;
        }
        transfer->sent += message.data_length;
        count++;
    }
    rendezvous_complete(transfer);
    return count;
}

static void cts_fragments_arrived(const struct wire_cts *body)
{
    struct transfer *transfer = request_id_find(REQUEST_ID_TRANSFER, body->send_id);

    if (!transfer || transfer->peer_id)
        return;
    transfer->peer_id = body->recv_id;
    transfer->length = body->size;
    intranode_send_fragments(transfer);
}

static void coop_copy_arrived(const struct wire_coop_copy *body)
{
    struct transfer *transfer = request_id_find(REQUEST_ID_TRANSFER, body->send_id);
    struct wire_coop_done done = { .recv_id = body->recv_id };
    struct shared_peer *peer;
    int index;

    if (!transfer || !shared_may_write())
        return;
    transfer->length = body->size;
    peer = transfer->endpoint->shared;
    while ((index = coop_claim(shared_coop_send_word(peer), body->number, COOP_BACK)) !=
           COOP_NONE) {
        struct shared_copy copy = chunk_copy(transfer, body->address, body->chunk, index);

        done.failed = !shared_write(peer, &copy);
        if (done.failed)
            break;
        done.size += copy.length;
    }
    mtl.counters.coop_copy_bytes += done.size;
    if (done.size || done.failed)
        endpoint_send_control(transfer->endpoint, WIRE_COOP_DONE, &done, sizeof(done));
}

void intranode_arrived(const struct wire_header *header, const void *body)
{
    switch (header->type) {
    case WIRE_CTS_FRAGMENTS:
        cts_fragments_arrived(body);
        break;
    case WIRE_DATA:
        data_arrived(header, body);
        break;
    case WIRE_COOP_COPY:
        coop_copy_arrived(body);
        break;
    default:
        coop_done_arrived(body);
    }
}
