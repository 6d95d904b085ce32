/* SPDX-License-Identifier: BSD-2-Clause */
#include "mtl/rendezvous.h"

#include "mtl/intranode.h"
#include "mtl/log.h"
#include "mtl/protocol.h"
#include "mtl/rail_rules.h"

#include <stdlib.h>

static struct transfer *spare;
static struct transfer *deferred, **last_deferred = &deferred;
static uint32_t shared_sends; /* in progress, to processes of this node */
static uint32_t in_progress;

static bool is_shared_send(const struct transfer *transfer)
{
    return transfer->sending && transfer->endpoint->transport == TRANSPORT_SHARED;
}

static struct transfer *transfer_new(struct mtl_request *request, struct endpoint *endpoint,
                                     uint64_t length)
{
    struct transfer *transfer = spare;

    if (transfer)
        spare = transfer->next;
    else
        transfer = malloc(sizeof(*transfer));
    if (!transfer)
        return NULL;
    memset(transfer, 0, offsetof(struct transfer, plan));
    transfer->plan.count = 0;
    transfer->request = request;
    transfer->endpoint = endpoint;
    transfer->sending = request->sending;
    transfer->length = length;
    transfer->data = request->buffer;
    transfer->own_data = !request->buffer;
    if (transfer->own_data)
        transfer->data = malloc(length);
    transfer->id = request_id_new(REQUEST_ID_TRANSFER, transfer);
    if (transfer->data && transfer->id) {
        shared_sends += is_shared_send(transfer);
        in_progress++;
        return transfer;
    }
    if (transfer->own_data)
        free(transfer->data);
    transfer->next = spare;
    spare = transfer;
    return NULL;
}

static void forget(struct transfer *transfer)
{
    request_id_free(transfer->id);
    shared_sends -= is_shared_send(transfer);
    in_progress--;
    if (transfer->invited)
        intranode_withdraw(transfer);
}

static void transfer_free(struct transfer *transfer)
{
    forget(transfer);
    record_memory_of(transfer->request, transfer->data);
    if (transfer->registration)
        registration_put(transfer->registration);
    record_memory_of(NULL, NULL);
    if (transfer->own_data)
        free(transfer->data);
    transfer->id = 0;
    transfer->next = spare;
    spare = transfer;
}

void rendezvous_defer(struct transfer *transfer)
{
    if (transfer->deferred)
        return;
    transfer->deferred = true;
    transfer->next = NULL;
    *last_deferred = transfer;
    last_deferred = &transfer->next;
}

void rendezvous_complete(struct transfer *transfer)
{
    struct mtl_request *request = transfer->request;

    if (!transfer->sending && transfer->own_data)
        request_unpack(request, 0, transfer->data, transfer->length);
    transfer_free(transfer);
    request_done(request, MPI_SUCCESS);
}

void rendezvous_send_ack(struct endpoint *endpoint, uint64_t send_id)
{
    struct wire_ack body = { .send_id = send_id };

    endpoint_send_control(endpoint, WIRE_ACK, &body, sizeof(body));
}

bool rendezvous_has_shared_sends(void)
{
    return shared_sends != 0;
}

bool rendezvous_in_progress(void)
{
    return in_progress || match_any_posted(&mtl.matching);
}

bool rendezvous_awaits_completions(void)
{
    for (struct connection *connection = connections; connection; connection = connection->next) {
        for (uint32_t i = 0; i < connection->rail_count; i++) {
            if (connection->rails[i].reads || connection->rails[i].head_stripe)
                return true;
        }
    }
    return false;
}

static bool may_be_read(const struct endpoint *endpoint)
{
    if (endpoint->transport != TRANSPORT_RAILS)
        return false;
    return mtl.parameters.rendezvous == RENDEZVOUS_READ ||
           (mtl.parameters.rendezvous == RENDEZVOUS_AUTO && mtl.live);
}

/* On the live adapter a processor copies the data: that of the receiver if it waits anyway. */
static bool reads_data(const struct transfer *transfer)
{
    if (!may_be_read(transfer->endpoint))
        return false;
    return mtl.parameters.rendezvous == RENDEZVOUS_READ || mtl.waits || transfer->request->blocking;
}

static bool register_data(struct transfer *transfer, uint32_t *rkeys)
{
    if (!transfer->registration) {
        record_memory_of(transfer->request, transfer->data);
        transfer->registration = registration_get(transfer->data, transfer->length);
        record_memory_of(NULL, NULL);
    }
    if (!transfer->registration)
        return false;
    for (uint32_t i = 0; i < devices.count && rkeys; i++)
        rkeys[i] = transfer->registration->regions[i]->rkey;
    return true;
}

bool rendezvous_make_rts(struct mtl_request *request, struct wire_rts *rts)
{
    struct transfer *transfer =
        request->id ? request_id_find(REQUEST_ID_TRANSFER, request->id) : NULL;

    if (!transfer) {
        transfer = transfer_new(request, request->endpoint, request->size);
        if (!transfer)
            return false;
        request->id = transfer->id;
        if (transfer->own_data)
            request_pack(request, transfer->data);
    }
    *rts = (struct wire_rts){ .size = request->size,
                              .send_id = transfer->id,
                              .address = (uintptr_t)transfer->data,
                              .class = request->class };
    return !may_be_read(request->endpoint) || register_data(transfer, rts->rkeys);
}

/* ---- stripes over rails ---- */

static struct rail_link *rail_of(const struct stripe *stripe)
{
    return &stripe->transfer->endpoint->connection->rails[stripe->rails.rail];
}

static void assign(struct stripe *stripe)
{
    rails_given(&stripe->transfer->endpoint->connection->set, &stripe->rails, mtl_now());
    stripe->generation = rail_of(stripe)->generation;
}

/* False if the rail has failed since the stripe was assigned to it, even if it is up again. */
static bool rail_is_valid(const struct stripe *stripe)
{
    const struct rail_link *link = rail_of(stripe);

    return link->up && link->generation == stripe->generation;
}

static void plan_stripes(struct transfer *transfer, enum rails_class class)
{
    struct connection *connection = transfer->endpoint->connection;
    struct rails_message message = { .class = class, .size = transfer->length };

    if (!rails_plan(&connection->set, &message, &transfer->plan))
        return; /* the endpoint is about to fail, and this transfer with it */
    transfer->stripes_left = transfer->plan.count;
    for (uint32_t i = 0; i < transfer->plan.count; i++) {
        transfer->stripe[i] =
            (struct stripe){ .transfer = transfer, .rails = transfer->plan.stripe[i] };
        assign(&transfer->stripe[i]);
    }
}

/* The part of a stripe after its head. */
static void fill_copy(const struct stripe *stripe, const struct rail_link *link,
                      struct remote_copy *copy)
{
    const struct transfer *transfer = stripe->transfer;
    uint32_t device = link->path->device->index;
    uint64_t offset = stripe->rails.offset + stripe->head_length;

    *copy = (struct remote_copy){
        .local = (uintptr_t)transfer->data + offset,
        .remote = transfer->peer_address + offset,
        .length = stripe->rails.length - stripe->head_length,
        .lkey = transfer->registration->regions[device]->lkey,
        .rkey = transfer->peer_rkeys[device],
    };
}

/* A process that sends and receives at once often gets a CTS just before an RTS. Its answer to the
 * RTS must not wait behind all of the data, or the two directions would run one after the other. */
static bool should_send_head(const struct stripe *stripe, const struct rail_link *link)
{
    return !stripe->head_length && !link->head_stripe && stripe->rails.length >= RAIL_HEAD_MIN &&
           match_any_posted(&mtl.matching);
}

static void write_head(struct stripe *stripe, struct rail_link *link)
{
    struct remote_copy copy;

    fill_copy(stripe, link, &copy);
    stripe->head_length = copy.length = rail_head_length(copy.length);
    rail_write_head(link, &copy, stripe);
}

static void write_stripe(struct stripe *stripe, struct rail_link *link)
{
    struct transfer *transfer = stripe->transfer;
    struct wire_fin body = { .recv_id = transfer->peer_id,
                             .index = stripe - transfer->stripe,
                             .count = transfer->plan.count };
    struct message message = { .header = { .type = WIRE_FIN },
                               .body = &body,
                               .body_length = sizeof(body) };
    struct sent sent = { .stripe = stripe };
    struct remote_copy copy;

    if (should_send_head(stripe, link)) {
        write_head(stripe, link);
        return;
    }
    if (link->head_stripe == stripe)
        link->head_stripe = NULL;
    fill_copy(stripe, link, &copy);
    rail_write(link, &copy);
    mtl_charge(mtl.costs.control);
    rail_send(link, &message, &sent);
}

static void read_stripe(struct stripe *stripe, struct rail_link *link)
{
    struct remote_copy copy;

    fill_copy(stripe, link, &copy);
    rail_read(link, &copy, &stripe->work);
}

/* Assigns a stripe to another rail. False if none is up. */
static bool reassign_stripe(struct stripe *stripe)
{
    struct transfer *transfer = stripe->transfer;
    struct rails_message message = { .class = transfer->plan.class, .size = stripe->rails.length };
    struct rails_plan plan;

    if (!rails_replan(&transfer->endpoint->connection->set, &message, &plan))
        return false;
    stripe->rails.rail = plan.stripe[0].rail;
    assign(stripe);
    return true;
}

static bool post_stripe(struct stripe *stripe)
{
    struct transfer *transfer = stripe->transfer;
    struct rail_link *link;

    if (!rail_is_valid(stripe)) {
        /* The head may still arrive, until rendezvous_stripe_lost() is called. */
        if (stripe->head_length || !reassign_stripe(stripe))
            return false;
    }
    link = rail_of(stripe);
    if (transfer->reading ? !rail_can_read(link) : !rail_can_send(link))
        return false;
    /* Set first: the rail may fail inside, and call rendezvous_stripe_lost(). */
    stripe->posted = true;
    if (transfer->reading)
        read_stripe(stripe, link);
    else
        write_stripe(stripe, link);
    return true;
}

/* Returns how many stripes were posted; the transfer is deferred if some could not be. */
static int post_stripes(struct transfer *transfer)
{
    int count = 0;

    for (uint32_t i = 0; i < transfer->plan.count; i++) {
        struct stripe *stripe = &transfer->stripe[i];

        if (stripe->posted)
            continue;
        if (post_stripe(stripe))
            count++;
        else
            rendezvous_defer(transfer);
    }
    return count;
}

void rendezvous_stripe_done(struct stripe *stripe)
{
    struct transfer *transfer = stripe->transfer;
    struct rails_set *set = &transfer->endpoint->connection->set;

    if (transfer->endpoint->failed)
        return;
    if (rail_is_valid(stripe))
        rails_completed(set, &stripe->rails, true, mtl_now());
    if (--transfer->stripes_left)
        return;
    rails_ended(set, &transfer->plan);
    if (!transfer->sending)
        rendezvous_send_ack(transfer->endpoint, transfer->peer_id);
    rendezvous_complete(transfer);
}

void rendezvous_head_done(struct stripe *stripe)
{
    stripe->posted = false;
    if (!post_stripe(stripe))
        rendezvous_defer(stripe->transfer);
}

void rendezvous_stripe_lost(struct stripe *stripe)
{
    stripe->posted = false;
    stripe->head_length = 0;
    rendezvous_defer(stripe->transfer);
}

void rendezvous_read_failed(struct stripe *stripe)
{
    if (!stripe->transfer->endpoint->failed)
        rendezvous_stripe_lost(stripe);
}

/* ---- receiving ---- */

static void send_cts(struct transfer *transfer)
{
    struct wire_cts body = { .send_id = transfer->peer_id,
                             .size = transfer->length,
                             .recv_id = transfer->id,
                             .address = (uintptr_t)transfer->data };

    register_data(transfer, body.rkeys);
    endpoint_send_control(transfer->endpoint, WIRE_CTS, &body, sizeof(body));
}

static void receive_over_rails(struct transfer *transfer, const struct wire_rts *rts)
{
    if (!register_data(transfer, NULL)) {
        endpoint_fail(transfer->endpoint);
        return;
    }
    if (!reads_data(transfer)) {
        send_cts(transfer);
        return;
    }
    transfer->reading = true;
    memcpy(transfer->peer_rkeys, rts->rkeys, sizeof(rts->rkeys));
    plan_stripes(transfer, rts->class < RAILS_CLASSES ? rts->class : RAILS_NONBLOCKING);
    post_stripes(transfer);
}

void rendezvous_receive(struct mtl_request *request, struct endpoint *endpoint,
                        const struct wire_rts *rts)
{
    uint64_t length = rts->size < request->size ? rts->size : request->size;
    struct transfer *transfer;

    if (!length) {
        rendezvous_send_ack(endpoint, rts->send_id);
        request_done(request, MPI_SUCCESS);
        return;
    }
    transfer = transfer_new(request, endpoint, length);
    if (!transfer) {
        mtl_log("out of memory: cannot receive %lu bytes", length);
        request_done(request, MPI_ERR_NO_MEM);
        return;
    }
    transfer->peer_id = rts->send_id;
    transfer->peer_address = rts->address;
    if (endpoint->transport == TRANSPORT_SHARED)
        intranode_receive(transfer);
    else
        receive_over_rails(transfer, rts);
}

static void fin_arrived(const struct wire_fin *body)
{
    struct transfer *transfer = request_id_find(REQUEST_ID_TRANSFER, body->recv_id);

    if (!transfer)
        return;
    transfer->stripes_seen |= 1u << (body->index % RAILS_MAX);
    if (__builtin_popcount(transfer->stripes_seen) == (int)body->count)
        rendezvous_complete(transfer);
}

/* ---- sending ---- */

static void cts_arrived(const struct wire_cts *body)
{
    struct transfer *transfer = request_id_find(REQUEST_ID_TRANSFER, body->send_id);

    if (!transfer || transfer->peer_id)
        return;
    transfer->peer_id = body->recv_id;
    transfer->peer_address = body->address;
    transfer->length = body->size;
    memcpy(transfer->peer_rkeys, body->rkeys, sizeof(body->rkeys));
    if (!register_data(transfer, NULL)) {
        endpoint_fail(transfer->endpoint);
        return;
    }
    plan_stripes(transfer, transfer->request->class);
    post_stripes(transfer);
}

static void ack_arrived(const struct wire_ack *body)
{
    struct mtl_request *request = request_id_find(REQUEST_ID_REQUEST, body->send_id);
    struct transfer *transfer = request_id_find(REQUEST_ID_TRANSFER, body->send_id);

    if (request) {
        request_id_free(body->send_id);
        request_done(request, MPI_SUCCESS);
    } else if (transfer) {
        rendezvous_complete(transfer);
    }
}

void rendezvous_arrived(struct endpoint *endpoint, const struct wire_header *header,
                        const void *body)
{
    switch (header->type) {
    case WIRE_CTS:
        cts_arrived(body);
        break;
    case WIRE_FIN:
        fin_arrived(body);
        break;
    case WIRE_CTS_FRAGMENTS:
    case WIRE_DATA:
    case WIRE_COOP_COPY:
    case WIRE_COOP_DONE:
        intranode_arrived(header, body);
        break;
    case WIRE_ACK:
        ack_arrived(body);
        break;
    default:
        mtl_log("process %u sent a message of unknown type %u", endpoint->name.vpid, header->type);
    }
}

int rendezvous_progress(void)
{
    struct transfer *transfer = deferred, *next;
    int count = 0;

    deferred = NULL;
    last_deferred = &deferred;
    for (; transfer; transfer = next) {
        next = transfer->next;
        transfer->deferred = false;
        if (transfer->endpoint->failed)
            continue;
        if (transfer->plan.count && transfer->stripes_left)
            count += post_stripes(transfer);
        else
            count += transfer->sending ? intranode_send_fragments(transfer)
                                       : intranode_receive(transfer);
    }
    return count + intranode_progress();
}

/* ---- failure and shutdown ---- */

/* The transfer is not reused: completions of its stripes may still arrive. */
static void fail_one(enum request_id_kind kind, void *object, void *endpoint)
{
    struct mtl_request *request = object;

    if (kind == REQUEST_ID_TRANSFER) {
        struct transfer *transfer = object;

        if (transfer->endpoint != endpoint)
            return;
        request = transfer->request;
        if (transfer->stripes_left)
            rails_ended(&transfer->endpoint->connection->set, &transfer->plan);
        forget(transfer);
    } else {
        if (request->endpoint != endpoint)
            return;
        request_id_free(request->id);
    }
    request_done(request, mtl_unreachable());
}

void rendezvous_fail(struct endpoint *endpoint)
{
    request_ids_each(fail_one, endpoint);
}

void rendezvous_free(void)
{
    for (struct transfer *transfer = spare, *next; transfer; transfer = next) {
        next = transfer->next;
        free(transfer);
    }
    spare = NULL;
    request_ids_free();
}
