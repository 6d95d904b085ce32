#include "mtl/protocol.h"

#include "mtl/connection.h"
#include "mtl/log.h"
#include "mtl/rendezvous.h"
#include "mtl/shared.h"

#include <dlfcn.h>
#include <stdlib.h>

static int greetings; /* connections that are being brought up */

void protocol_greeting(int change)
{
    greetings += change;
}

bool protocol_is_greeting(void)
{
    return greetings != 0;
}

uint32_t protocol_slot_size(void)
{
    uint64_t body = mtl.parameters.eager_limit + sizeof(struct wire_done);

    if (body < WIRE_BODY_MAX)
        body = WIRE_BODY_MAX;
    return round_up(sizeof(struct wire_header) + body + 2 * sizeof(uint32_t), CACHE_LINE);
}

/* Where the adapter is software on this machine, a send costs less than a write. */
bool protocol_slots_are_written(void)
{
    if (mtl.parameters.eager != EAGER_AUTO)
        return mtl.parameters.eager == EAGER_WRITE;
    return vtime.on || !dlsym(RTLD_DEFAULT, "verbena_is_virtual");
}

uint64_t protocol_own_name(void)
{
    return (uint64_t)OMPI_PROC_MY_NAME->jobid << 32 | OMPI_PROC_MY_NAME->vpid;
}

int protocol_init(void)
{
    return matching_init(&mtl.matching);
}

void protocol_free(void)
{
    matching_free(&mtl.matching);
}

/* ---- sending ---- */

static uint64_t eager_limit(const struct endpoint *endpoint)
{
    const struct connection *connection = endpoint->connection;
    uint64_t limit;

    if (endpoint->way != WAY_RAILS)
        return mtl.parameters.shared_limit;
    limit = connection->slot_size - sizeof(struct wire_header) - sizeof(struct wire_done) -
            2 * sizeof(uint32_t);
    if (limit > (uint64_t)mtl.parameters.eager_limit)
        limit = mtl.parameters.eager_limit;
    /* What is to be striped is not copied. */
    if (connection->rail_count > 1 && limit >= mtl.traffic.limits.stripe_threshold)
        limit = mtl.traffic.limits.stripe_threshold - 1;
    return limit;
}

static bool is_eager(const struct mtl_request *request)
{
    return request->size <= eager_limit(request->endpoint);
}

static void count(const struct mtl_request *request)
{
    mtl.counters.class_messages[request->class]++;
    mtl.counters.class_bytes[request->class] += request->size;
}

static bool send_eager(struct mtl_request *request)
{
    struct wire_done body = { .cookie = request->cookie };
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

    if (!endpoint_try(request->endpoint, &message, request->class))
        return false;
    if (!request->synchronous)
        request_done(request, MPI_SUCCESS);
    return true;
}

static bool send_offer(struct mtl_request *request)
{
    struct wire_offer offer;
    struct message message = {
        .header = { .context = request->receive.key.context,
                    .source = request->receive.key.source,
                    .tag = request->receive.key.tag,
                    .type = WIRE_OFFER },
        .body = &offer,
        .body_length = sizeof(offer),
    };

    if (!rendezvous_offer(request, &offer)) {
        request_done(request, MPI_ERR_NO_MEM);
        return true;
    }
    return endpoint_try(request->endpoint, &message, request->class);
}

bool protocol_send_waiting(struct mtl_request *request)
{
    return is_eager(request) ? send_eager(request) : send_offer(request);
}

/* From this process to itself: one copy, into the receive or aside. */
static void copy_within(struct mtl_request *from, struct mtl_request *to)
{
    char *packed;

    if (from->buffer || !from->size) {
        request_unpack(to, from->buffer, from->size);
        return;
    }
    packed = malloc(from->size);
    if (!packed) {
        mtl_log("no memory for %lu bytes", from->size);
        request_done(to, MPI_ERR_NO_MEM);
        return;
    }
    request_pack(from, packed);
    request_unpack(to, packed, from->size);
    free(packed);
}

static void receive_own(struct mtl_request *receive, struct mtl_request *send)
{
    request_matched(receive, &send->receive.key, send->size);
    copy_within(send, receive);
    request_done(receive, MPI_SUCCESS);
}

static struct unexpected *keep(struct endpoint *endpoint, const struct match_key *key,
                               uint64_t size, uint64_t data)
{
    struct unexpected *message = malloc(sizeof(*message) + data);

    if (!message)
        goto no_memory;
    message->match.key = *key;
    message->endpoint = endpoint;
    message->size = size;
    message->own = NULL;
    message->offered = message->synchronous = false;
    message->cookie = 0;
    if (match_keep(&mtl.matching, &message->match))
        goto no_memory;
    mtl.counters.unexpected++;
    return message;
no_memory:
    free(message);
    mtl_log("no memory for an unexpected message of %lu bytes", size);
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
    message =
        keep(request->endpoint, &request->receive.key, request->size, copied ? request->size : 0);
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
    count(request);
    request->cookie = 0;
    if (endpoint->failed) {
        request_done(request, MPI_ERR_OTHER);
    } else if (endpoint->way == WAY_SELF) {
        send_to_self(request);
    } else {
        if (request->synchronous && is_eager(request))
            request->cookie = cookie_new(COOKIE_REQUEST, request);
        if (!protocol_send_waiting(request))
            endpoint_wait(endpoint, request);
    }
}

/* ---- receiving ---- */

/* The sender waits to be told. */
static void tell_matched(struct endpoint *endpoint, uint64_t cookie)
{
    struct wire_done body = { .cookie = cookie };

    endpoint_control(endpoint, WIRE_DONE, &body, sizeof(body));
}

void protocol_receive_matched(struct mtl_request *request, struct unexpected *message)
{
    if (message->own) {
        struct mtl_request *send = message->own;

        receive_own(request, send);
        request_done(send, MPI_SUCCESS);
    } else if (message->offered) {
        request_matched(request, &message->match.key, message->size);
        rendezvous_take(request, message->endpoint, &message->offer);
    } else {
        request_matched(request, &message->match.key, message->size);
        request_unpack(request, message->data, message->size);
        if (message->synchronous)
            tell_matched(message->endpoint, message->cookie);
        request_done(request, MPI_SUCCESS);
    }
    free(message);
}

void protocol_receive(struct mtl_request *request)
{
    struct match_message *found = match_find(&mtl.matching, &request->receive.key);

    if (found) {
        match_take(&mtl.matching, found);
        protocol_receive_matched(request, container_of(found, struct unexpected, match));
    } else if (request->endpoint && request->endpoint->failed) {
        request_done(request, MPI_ERR_OTHER);
    } else if (match_post(&mtl.matching, &request->receive)) {
        request_done(request, MPI_ERR_NO_MEM);
    }
}

static void eager_arrived(struct endpoint *endpoint, const struct wire_header *header,
                          const char *data)
{
    struct match_key key = { header->context, header->source, header->tag };
    struct match_receive *receive = match_arrived(&mtl.matching, &key);
    bool synchronous = header->flags & WIRE_SYNCHRONOUS;
    uint64_t cookie = 0, size = header->length;

    if (synchronous) {
        cookie = ((const struct wire_done *)data)->cookie;
        data += sizeof(struct wire_done);
        size -= sizeof(struct wire_done);
    }
    if (receive) {
        struct mtl_request *request = container_of(receive, struct mtl_request, receive);

        request_matched(request, &key, size);
        request_unpack(request, data, size);
        if (synchronous)
            tell_matched(endpoint, cookie);
        request_done(request, MPI_SUCCESS);
    } else {
        struct unexpected *message = keep(endpoint, &key, size, size);

        if (!message)
            return;
        message->synchronous = synchronous;
        message->cookie = cookie;
        mtl_charge_copy(size);
        memcpy(message->data, data, size);
    }
}

static void offer_arrived(struct endpoint *endpoint, const struct wire_header *header,
                          const struct wire_offer *offer)
{
    struct match_key key = { header->context, header->source, header->tag };
    struct match_receive *receive = match_arrived(&mtl.matching, &key);
    struct unexpected *message;

    if (receive) {
        struct mtl_request *request = container_of(receive, struct mtl_request, receive);

        request_matched(request, &key, offer->size);
        rendezvous_take(request, endpoint, offer);
        return;
    }
    message = keep(endpoint, &key, offer->size, 0);
    if (!message)
        return;
    message->offered = true;
    message->offer = *offer;
}

void protocol_arrived(struct endpoint *endpoint, const struct wire_header *header, const void *body)
{
    switch (header->type) {
    case WIRE_EAGER:
        eager_arrived(endpoint, header, body);
        break;
    case WIRE_OFFER:
        offer_arrived(endpoint, header, body);
        break;
    case WIRE_RAIL_DOWN:
    case WIRE_RAIL_SHUT:
    case WIRE_RAIL_ASK:
    case WIRE_RAIL_OPEN:
    case WIRE_RAIL_UP:
        rail_arrived(endpoint->connection, header->type, body);
        break;
    default:
        rendezvous_arrived(endpoint, header, body);
    }
}
