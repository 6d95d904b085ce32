/* SPDX-License-Identifier: BSD-2-Clause */
#include "mtl/protocol.h"

#include "mtl/blocks.h"
#include "mtl/connection.h"
#include "mtl/log.h"
#include "mtl/parameter_rows.h"
#include "mtl/rail_rules.h"
#include "mtl/rendezvous.h"
#include "mtl/ring_limit.h"
#include "mtl/shared.h"

#include <opal/runtime/opal_progress.h>

#include <dlfcn.h>
#include <stdlib.h>

uint32_t protocol_slot_size(void)
{
    return rail_slot_size(mtl.parameters.eager_limit);
}

/* On the software adapter a write costs less than a send only where it is a plain copy. A write does
 * not wake a thread. */
bool protocol_polls_slots(bool attachable)
{
    if (mtl.parameters.eager != EAGER_AUTO)
        return mtl.parameters.eager == EAGER_WRITE;
    if (mtl.parameters.progress_thread)
        return false;
    return attachable || vtime.on || !dlsym(RTLD_DEFAULT, "verbena_is_virtual");
}

uint64_t protocol_own_name(void)
{
    return (uint64_t)OMPI_PROC_MY_NAME->jobid << 32 | OMPI_PROC_MY_NAME->vpid;
}

/* ---- messages before their receive ---- */

/* Most unexpected messages are short; what was allocated for them is used again. */
#define REUSABLE_DATA  88
#define REUSABLE_COUNT 4096
#define KEPT_MAX       (256u << 10) /* bytes of a peer, before it shall keep its long messages */

static struct {
    struct unexpected *first;
    uint32_t count;
} reusable;

static struct unexpected *reuse_unexpected(void)
{
    struct unexpected *message = reusable.first;

    reusable.first = message->next;
    reusable.count--;
    return message;
}

static struct unexpected *new_unexpected(uint64_t data)
{
    struct unexpected *message;

    if (data <= REUSABLE_DATA && reusable.count)
        return reuse_unexpected();
    data = data < REUSABLE_DATA ? REUSABLE_DATA : data;
    message = blocks_get(sizeof(*message) + data);
    if (message)
        message->room = data;
    return message;
}

/* Counts the longer messages of a peer. */
static void note_kept(struct endpoint *endpoint, int64_t bytes)
{
    endpoint->kept += bytes;
    if (endpoint->shared)
        shared_set_crowded(endpoint->shared, endpoint->kept > KEPT_MAX);
}

static void free_unexpected(struct unexpected *message)
{
    if (!message)
        return;
    if (message->room != REUSABLE_DATA || reusable.count >= REUSABLE_COUNT) {
        if (message->room != REUSABLE_DATA)
            note_kept(message->endpoint, -(int64_t)message->room);
        blocks_put(message, sizeof(*message) + message->room);
        return;
    }
    message->next = reusable.first;
    reusable.first = message;
    reusable.count++;
}

int protocol_init(void)
{
    return match_init(&mtl.matching);
}

void protocol_free(void)
{
    match_free(&mtl.matching);
    while (reusable.count)
        free(reuse_unexpected());
    blocks_free();
}

/* ---- sending ---- */

/* A system call that copies from process to process spends most of its time on pages: a second copy,
 * made by another core while the receiver copies the message before, takes less. */
uint64_t protocol_shared_memory_limit(void)
{
    if (mtl.parameters.shared_memory_limit)
        return mtl.parameters.shared_memory_limit;
    if (vtime.on)
        return MTL_SHARED_MEMORY_LIMIT;
    return opal_progress_yield_when_idle ? MTL_SHARED_MEMORY_LIMIT_BUSY
                                         : MTL_SHARED_MEMORY_LIMIT_MAX;
}

static uint64_t eager_limit(const struct endpoint *endpoint)
{
    const struct connection *connection = endpoint->connection;
    uint64_t limit;

    if (endpoint->transport != TRANSPORT_RAILS)
        return protocol_shared_memory_limit();
    limit = connection->slot_size - sizeof(struct wire_header) - sizeof(struct wire_ack) -
            2 * sizeof(uint32_t);
    if (limit > (uint64_t)mtl.parameters.eager_limit)
        limit = mtl.parameters.eager_limit;
    return rail_eager_limit(connection->rail_count, limit, mtl.traffic.limits.stripe_threshold);
}

uint64_t protocol_longest_eager(const struct endpoint *endpoint)
{
    uint64_t limit = protocol_shared_memory_limit();

    if (endpoint && endpoint->transport == TRANSPORT_RAILS)
        return mtl.parameters.eager_limit;
    return limit < RING_QUEUED_MAX ? limit : RING_QUEUED_MAX;
}

/* A limit that the user has set, and that of virtual time, do not depend on the machine. If this
 * process has to copy messages of others, too, longer ones are better copied once than twice. */
static bool is_eager(const struct endpoint *endpoint, uint64_t size)
{
    if (size > eager_limit(endpoint))
        return false;
    if (endpoint->transport != TRANSPORT_SHARED || vtime.on || mtl.parameters.shared_memory_limit)
        return true;
    if (size > RING_WHOLE_MAX && match_any_posted(&mtl.matching))
        return false;
    return shared_prefers_ring(endpoint->shared, size);
}

/* Not in virtual time, where one process runs at a time. */
static bool goes_in_pieces(const struct endpoint *endpoint, uint64_t size)
{
    return endpoint->transport == TRANSPORT_SHARED && size > RING_PIECE && !vtime.on;
}

static bool request_in_pieces(const struct mtl_request *request)
{
    return request->buffer && !request->synchronous &&
           goes_in_pieces(request->endpoint, request->size);
}

/* While this process computes, a message whose last pieces wait for room would hold up its receiver. */
static bool request_is_eager(const struct mtl_request *request)
{
    uint64_t size = request->size;

    if (!is_eager(request->endpoint, size))
        return false;
    if (request->endpoint->transport != TRANSPORT_SHARED || size <= RING_WHOLE_MAX)
        return true;
    return request_in_pieces(request) && (request->blocking || size <= RING_QUEUED_MAX);
}

static void count(enum rails_class class, uint64_t size)
{
    mtl.counters.class_messages[class]++;
    mtl.counters.class_bytes[class] += size;
}

static bool send_pieces(struct mtl_request *request)
{
    if (!pieces_send(request->endpoint, &request->receive.key, request->buffer, request->size,
                     &request->sent))
        return false;
    request_done(request, MPI_SUCCESS);
    return true;
}

static bool send_eager(struct mtl_request *request)
{
    struct wire_ack body = { .send_id = request->id };
    struct message message = {
        .header = { .context = request->receive.key.context,
                    .source = request->receive.key.source,
                    .tag = request->receive.key.tag,
                    .type = WIRE_EAGER,
                    .flags = request->synchronous ? WIRE_SYNCHRONOUS : 0 },
        .body = &body,
        .body_length = request->synchronous ? sizeof(body) : 0,
        .request = request,
    };

    if (!endpoint_try_send(request->endpoint, &message, request->class))
        return false;
    if (!request->synchronous)
        request_done(request, MPI_SUCCESS);
    return true;
}

static bool send_rts(struct mtl_request *request)
{
    struct wire_rts rts;
    struct message message = {
        .header = { .context = request->receive.key.context,
                    .source = request->receive.key.source,
                    .tag = request->receive.key.tag,
                    .type = WIRE_RTS },
        .body = &rts,
        .body_length = sizeof(rts),
    };

    if (!rendezvous_make_rts(request, &rts)) {
        request_done(request, MPI_ERR_NO_MEM);
        return true;
    }
    return endpoint_try_send(request->endpoint, &message, request->class);
}

bool protocol_send_queued(struct mtl_request *request)
{
    if (!request->eager)
        return send_rts(request);
    return request_in_pieces(request) ? send_pieces(request) : send_eager(request);
}

/* A send of this process to itself: one copy, through a packed buffer if necessary. */
static void copy_within(struct mtl_request *from, struct mtl_request *to)
{
    char *packed;

    if (from->buffer || !from->size) {
        request_unpack(to, 0, from->buffer, from->size);
        return;
    }
    packed = malloc(from->size);
    if (!packed) {
        mtl_log("out of memory: cannot pack %lu bytes", from->size);
        request_done(to, MPI_ERR_NO_MEM);
        return;
    }
    request_pack(from, packed);
    request_unpack(to, 0, packed, from->size);
    free(packed);
}

/* A receive has met a message. */
static void receive_matched(struct mtl_request *request, const struct endpoint *endpoint,
                            const struct match_key *key, uint64_t size)
{
    if (unlikely(recording))
        record_matched(request, endpoint, key, size);
    request_matched(request, key, size);
}

static void receive_own(struct mtl_request *receive, struct mtl_request *send)
{
    receive_matched(receive, send->endpoint, &send->receive.key, send->size);
    copy_within(send, receive);
    request_done(receive, MPI_SUCCESS);
}

static struct unexpected *add_unexpected(struct endpoint *endpoint, const struct match_key *key,
                                         uint64_t size, uint64_t data)
{
    struct unexpected *message = new_unexpected(data);

    if (!message)
        goto no_memory;
    message->match.key = *key;
    message->endpoint = endpoint;
    if (data > REUSABLE_DATA)
        note_kept(endpoint, data);
    message->size = size;
    message->own = NULL;
    message->has_rts = message->synchronous = false;
    message->send_id = 0;
    if (match_keep(&mtl.matching, &message->match))
        goto no_memory;
    mtl.counters.unexpected++;
    return message;
no_memory:
    free_unexpected(message);
    mtl_log("out of memory: cannot keep an unexpected message of %lu bytes", size);
    endpoint_fail(endpoint);
    return NULL;
}

static void send_to_self(struct mtl_request *request)
{
    bool copied = !request->synchronous && request->size <= (uint64_t)mtl.parameters.eager_limit;
    struct match_receive *receive = match_arrived(&mtl.matching, &request->receive.key);
    struct unexpected *message;

    if (receive) {
        receive_own(container_of(receive, struct mtl_request, receive), request);
        request_done(request, MPI_SUCCESS);
        return;
    }
    message = add_unexpected(request->endpoint, &request->receive.key, request->size,
                             copied ? request->size : 0);
    if (!message) {
        request_done(request, MPI_ERR_NO_MEM);
    } else if (copied) {
        request_pack(request, message->data);
        request_done(request, MPI_SUCCESS);
    } else {
        message->own = request;
    }
}

void protocol_send(struct mtl_request *request)
{
    struct endpoint *endpoint = request->endpoint;

    mtl_charge(mtl.costs.send);
    count(request->class, request->size);
    request->id = 0;
    if (unlikely(recording))
        record_operation(request, endpoint->name.vpid);
    if (endpoint->failed) {
        request_done(request, mtl_unreachable());
    } else if (endpoint->transport == TRANSPORT_SELF) {
        send_to_self(request);
    } else {
        request->eager = request_is_eager(request);
        request->sent = 0;
        if (request->synchronous && request->eager)
            request->id = request_id_new(REQUEST_ID_REQUEST, request);
        if (!protocol_send_queued(request))
            endpoint_queue(endpoint, request);
    }
}

/* Not where short messages pass. */
static __attribute__((noinline)) bool send_pieces_now(struct endpoint *endpoint,
                                                      const struct match_key *key,
                                                      const void *data, uint64_t size)
{
    uint64_t sent = 0;

    return !endpoint->pending && shared_has_room(endpoint->shared, size) &&
           pieces_send(endpoint, key, data, size, &sent);
}

bool protocol_send_now(struct endpoint *endpoint, const struct match_key *key, const void *data,
                       uint64_t size, enum rails_class class)
{
    struct message message = {
        .header = { .context = key->context,
                    .source = key->source,
                    .tag = key->tag,
                    .type = WIRE_EAGER },
        .data = data,
        .data_length = size,
    };

    if (endpoint->failed || endpoint->transport == TRANSPORT_SELF || !is_eager(endpoint, size))
        return false;
    /* Completions that nobody has looked for may hold the slots of a rail. */
    if (goes_in_pieces(endpoint, size) ? !send_pieces_now(endpoint, key, data, size)
                                       : !endpoint_try_send(endpoint, &message, class) &&
                                             !(endpoint->transport == TRANSPORT_RAILS &&
                                               rails_poll_cqs() &&
                                               endpoint_try_send(endpoint, &message, class)))
        return false;
    count(class, size);
    return true;
}

/* ---- receiving ---- */

void protocol_receive_matched(struct mtl_request *request, struct unexpected *message)
{
    if (message->own) {
        struct mtl_request *send = message->own;

        receive_own(request, send);
        request_done(send, MPI_SUCCESS);
    } else if (message->has_rts) {
        receive_matched(request, message->endpoint, &message->match.key, message->size);
        rendezvous_receive(request, message->endpoint, (const struct wire_rts *)message->data);
    } else if (pieces_missing(message)) {
        receive_matched(request, message->endpoint, &message->match.key, message->size);
        pieces_receive(request, message);
    } else {
        receive_matched(request, message->endpoint, &message->match.key, message->size);
        request_unpack(request, 0, message->data, message->size);
        if (message->synchronous)
            rendezvous_send_ack(message->endpoint, message->send_id);
        request_done(request, MPI_SUCCESS);
    }
    free_unexpected(message);
}

void protocol_fill_status(struct ompi_status_public_t *status, const struct match_key *key,
                          uint64_t size)
{
    if (status == MPI_STATUS_IGNORE)
        return;
    status->MPI_SOURCE = key->source;
    status->MPI_TAG = key->tag;
    status->_ucount = size;
    status->_cancelled = 0;
}

/* Longer messages may come in pieces or by rendezvous, which need a request. */
#define AWAITED_MAX 1024

static struct awaited *awaited;

bool protocol_await(struct awaited *receive)
{
    if (awaited || receive->size > AWAITED_MAX || mtl.matching.unexpected ||
        match_any_posted(&mtl.matching))
        return false;
    receive->over = false;
    awaited = receive;
    return true;
}

bool protocol_awaits(const struct awaited *receive)
{
    return !receive->over && !mtl.matching.unexpected;
}

void protocol_await_end(void)
{
    awaited = NULL;
}

static bool is_awaited(const struct match_key *key)
{
    const struct match_key *wanted = &awaited->key;

    return wanted->context == key->context &&
           (wanted->source == key->source || wanted->source == MATCH_ANY) &&
           (wanted->tag == key->tag || (wanted->tag == MATCH_ANY && key->tag >= 0));
}

static bool take_awaited(const struct match_key *key, const struct wire_header *header,
                         const char *data)
{
    if (!awaited || !is_awaited(key) || header->flags & WIRE_SYNCHRONOUS ||
        header->length > awaited->size || mtl.matching.unexpected) /* maybe an earlier one for it */
        return false;
    copy_short(awaited->buffer, data, header->length);
    protocol_fill_status(awaited->status, key, header->length);
    awaited->over = true;
    awaited = NULL;
    return true;
}

bool protocol_receive_now(const struct match_key *key, void *buffer, uint64_t size,
                          struct ompi_status_public_t *status)
{
    struct match_message *found = match_find(&mtl.matching, key);
    struct unexpected *message = found ? container_of(found, struct unexpected, match) : NULL;

    if (!message || message->own || message->has_rts || message->synchronous ||
        message->size > size || pieces_missing(message))
        return false;
    match_take(&mtl.matching, found);
    protocol_fill_status(status, &message->match.key, message->size);
    if (message->room == REUSABLE_DATA)
        copy_short(buffer, message->data, message->size);
    else
        memcpy(buffer, message->data, message->size);
    free_unexpected(message);
    return true;
}

void protocol_receive(struct mtl_request *request)
{
    struct match_message *found = match_find(&mtl.matching, &request->receive.key);

    if (found) {
        match_take(&mtl.matching, found);
        protocol_receive_matched(request, container_of(found, struct unexpected, match));
    } else if (request->endpoint && request->endpoint->failed) {
        request_done(request, mtl_unreachable());
    } else if (match_post(&mtl.matching, &request->receive)) {
        request_done(request, MPI_ERR_NO_MEM);
    }
}

static void eager_arrived(struct endpoint *endpoint, const struct wire_header *header,
                          const char *data)
{
    struct match_key key = { header->context, header->source, header->tag };
    bool synchronous = header->flags & WIRE_SYNCHRONOUS;
    uint64_t send_id = 0, size = header->length;
    struct match_receive *receive;

    if (take_awaited(&key, header, data))
        return;
    receive = match_arrived(&mtl.matching, &key);
    if (synchronous) {
        send_id = ((const struct wire_ack *)data)->send_id;
        data += sizeof(struct wire_ack);
        size -= sizeof(struct wire_ack);
    }
    if (receive) {
        struct mtl_request *request = container_of(receive, struct mtl_request, receive);

        receive_matched(request, endpoint, &key, size);
        request_unpack(request, 0, data, size);
        if (synchronous)
            rendezvous_send_ack(endpoint, send_id);
        request_done(request, MPI_SUCCESS);
    } else {
        struct unexpected *message = add_unexpected(endpoint, &key, size, size);

        if (!message)
            return;
        message->synchronous = synchronous;
        message->send_id = send_id;
        mtl_charge_copy(size);
        memcpy(message->data, data, size);
    }
}

static void first_piece_arrived(struct endpoint *endpoint, const struct wire_header *header,
                                const struct wire_pieces *body)
{
    struct match_key key = { header->context, header->source, header->tag };
    struct match_receive *receive = match_arrived(&mtl.matching, &key);

    if (receive) {
        struct mtl_request *request = container_of(receive, struct mtl_request, receive);

        receive_matched(request, endpoint, &key, body->size);
        pieces_begin(endpoint, request, NULL, body->size);
    } else {
        pieces_begin(endpoint, NULL, add_unexpected(endpoint, &key, body->size, body->size),
                     body->size);
    }
    pieces_arrived(endpoint, body + 1, header->length - sizeof(*body));
}

static void rts_arrived(struct endpoint *endpoint, const struct wire_header *header,
                        const struct wire_rts *rts)
{
    struct match_key key = { header->context, header->source, header->tag };
    struct match_receive *receive = match_arrived(&mtl.matching, &key);
    struct unexpected *message;

    if (receive) {
        struct mtl_request *request = container_of(receive, struct mtl_request, receive);

        receive_matched(request, endpoint, &key, rts->size);
        rendezvous_receive(request, endpoint, rts);
        return;
    }
    message = add_unexpected(endpoint, &key, rts->size, sizeof(*rts));
    if (!message)
        return;
    message->has_rts = true;
    memcpy(message->data, rts, sizeof(*rts));
}

void protocol_arrived(struct endpoint *endpoint, const struct wire_header *header, const void *body)
{
    switch (header->type) {
    case WIRE_EAGER:
        eager_arrived(endpoint, header, body);
        break;
    case WIRE_FIRST_PIECE:
        first_piece_arrived(endpoint, header, body);
        break;
    case WIRE_PIECE:
        pieces_arrived(endpoint, body, header->length);
        break;
    case WIRE_RTS:
        rts_arrived(endpoint, header, body);
        break;
    case WIRE_RAIL_DOWN:
    case WIRE_RAIL_DRAINED:
    case WIRE_RAIL_REQ:
    case WIRE_RAIL_REP:
    case WIRE_RAIL_RTU:
        rail_control_arrived(endpoint->connection, header->type, body);
        break;
    default:
        rendezvous_arrived(endpoint, header, body);
    }
}
