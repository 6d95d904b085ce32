#include "mtl/rendezvous.h"

#include "mtl/log.h"
#include "mtl/nearby.h"
#include "mtl/protocol.h"

#include <stdlib.h>

#define LEAD_FROM  (1ull << 20) /* bytes of a piece */
#define LEAD_SHARE 8
#define LEAD_MOST  (2ull << 20)

static struct transfer *spare;
static struct transfer *waiting, **last_waiting = &waiting;
static uint32_t offers; /* to processes of this node that are not over */

static bool is_offer(const struct transfer *transfer)
{
    return transfer->sending && transfer->endpoint->way == WAY_SHARED;
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
    transfer->cookie = cookie_new(COOKIE_TRANSFER, transfer);
    if (transfer->data && transfer->cookie) {
        offers += is_offer(transfer);
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
    cookie_free(transfer->cookie);
    offers -= is_offer(transfer);
}

static void transfer_free(struct transfer *transfer)
{
    forget(transfer);
    if (transfer->registration)
        registration_put(transfer->registration);
    if (transfer->own_data)
        free(transfer->data);
    transfer->cookie = 0;
    transfer->next = spare;
    spare = transfer;
}

void transfer_waits(struct transfer *transfer)
{
    if (transfer->waiting)
        return;
    transfer->waiting = true;
    transfer->next = NULL;
    *last_waiting = transfer;
    last_waiting = &transfer->next;
}

void transfer_over(struct transfer *transfer)
{
    struct mtl_request *request = transfer->request;

    if (!transfer->sending && transfer->own_data)
        request_unpack(request, transfer->data, transfer->length);
    transfer_free(transfer);
    request_done(request, MPI_SUCCESS);
}

void transfer_tell_done(struct endpoint *endpoint, uint64_t cookie)
{
    struct wire_done body = { .cookie = cookie };

    endpoint_control(endpoint, WIRE_DONE, &body, sizeof(body));
}

bool rendezvous_has_offers(void)
{
    return offers != 0;
}

static bool is_read(const struct endpoint *endpoint)
{
    return endpoint->way == WAY_RAILS && mtl.parameters.rendezvous == RENDEZVOUS_READ;
}

static bool make_accessible(struct transfer *transfer, uint32_t *rkeys)
{
    if (!transfer->registration)
        transfer->registration = registration_get(transfer->data, transfer->length);
    if (!transfer->registration)
        return false;
    for (uint32_t i = 0; i < devices.count && rkeys; i++)
        rkeys[i] = transfer->registration->regions[i]->rkey;
    return true;
}

bool rendezvous_offer(struct mtl_request *request, struct wire_offer *offer)
{
    struct transfer *transfer =
        request->cookie ? cookie_find(COOKIE_TRANSFER, request->cookie) : NULL;

    if (!transfer) {
        transfer = transfer_new(request, request->endpoint, request->size);
        if (!transfer)
            return false;
        request->cookie = transfer->cookie;
        if (transfer->own_data)
            request_pack(request, transfer->data);
    }
    *offer = (struct wire_offer){ .size = request->size,
                                  .cookie = transfer->cookie,
                                  .address = (uintptr_t)transfer->data,
                                  .class = request->class };
    return !is_read(request->endpoint) || make_accessible(transfer, offer->rkeys);
}

/* ---- pieces over rails ---- */

static struct rail_link *rail_of(const struct piece *piece)
{
    return &piece->transfer->endpoint->connection->rails[piece->rails.rail];
}

static void give(struct piece *piece)
{
    rails_given(&piece->transfer->endpoint->connection->set, &piece->rails, mtl_now());
    piece->life = rail_of(piece)->life;
}

/* Its rail, unless that has failed since it was chosen; it may even be up again. */
static bool keeps_rail(const struct piece *piece)
{
    const struct rail_link *link = rail_of(piece);

    return link->up && link->life == piece->life;
}

static void plan_pieces(struct transfer *transfer, enum rails_class class)
{
    struct connection *connection = transfer->endpoint->connection;
    struct rails_message message = { .class = class, .size = transfer->length };

    if (!rails_plan(&connection->set, &message, &transfer->plan))
        return; /* the endpoint is about to fail, and the transfer with it */
    transfer->left = transfer->plan.count;
    for (uint32_t i = 0; i < transfer->plan.count; i++) {
        transfer->piece[i] =
            (struct piece){ .transfer = transfer, .rails = transfer->plan.piece[i] };
        give(&transfer->piece[i]);
    }
}

/* What is left of a piece. */
static void describe(const struct piece *piece, const struct rail_link *link,
                     struct remote_copy *copy)
{
    const struct transfer *transfer = piece->transfer;
    uint32_t device = link->path->device->index;
    uint64_t offset = piece->rails.offset + piece->led;

    *copy = (struct remote_copy){
        .here = (uintptr_t)transfer->data + offset,
        .there = transfer->peer_address + offset,
        .length = piece->rails.length - piece->led,
        .lkey = transfer->registration->regions[device]->lkey,
        .rkey = transfer->peer_rkeys[device],
    };
}

/* Whoever sends and receives at once is often told to send just before it hears what it is to
 * receive: its answer must not wait behind all of that, or one direction would follow the other. */
static bool should_lead(const struct piece *piece, const struct rail_link *link)
{
    return !piece->led && !link->leading && piece->rails.length >= LEAD_FROM &&
           match_is_waiting(&mtl.matching);
}

static void lead(struct piece *piece, struct rail_link *link)
{
    struct remote_copy copy;

    describe(piece, link, &copy);
    copy.length = copy.length / LEAD_SHARE < LEAD_MOST ? copy.length / LEAD_SHARE : LEAD_MOST;
    piece->led = copy.length;
    rail_lead(link, &copy, piece);
}

static void write_piece(struct piece *piece, struct rail_link *link)
{
    struct transfer *transfer = piece->transfer;
    struct wire_piece body = { .target = transfer->peer_cookie,
                               .index = piece - transfer->piece,
                               .count = transfer->plan.count };
    struct message message = { .header = { .type = WIRE_PIECE },
                               .body = &body,
                               .body_length = sizeof(body) };
    struct sent sent = { .piece = piece };
    struct remote_copy copy;

    if (should_lead(piece, link)) {
        lead(piece, link);
        return;
    }
    if (link->leading == piece)
        link->leading = NULL;
    describe(piece, link, &copy);
    rail_write(link, &copy);
    mtl_charge(mtl.costs.control);
    rail_send(link, &message, &sent);
}

static void read_piece(struct piece *piece, struct rail_link *link)
{
    struct remote_copy copy;

    describe(piece, link, &copy);
    rail_read(link, &copy, &piece->work);
}

/* Another rail for a piece whose own has failed. False if there is none. */
static bool move_piece(struct piece *piece)
{
    struct transfer *transfer = piece->transfer;
    struct rails_message message = { .class = transfer->plan.class, .size = piece->rails.length };
    struct rails_plan plan;

    if (!rails_replan(&transfer->endpoint->connection->set, &message, &plan))
        return false;
    piece->rails.rail = plan.piece[0].rail;
    give(piece);
    return true;
}

static bool post_piece(struct piece *piece)
{
    struct transfer *transfer = piece->transfer;
    struct rail_link *link;

    if (!keeps_rail(piece)) {
        /* What went ahead may still be on its way; piece_lost() says when it is not. */
        if (piece->led || !move_piece(piece))
            return false;
    }
    link = rail_of(piece);
    if (transfer->reading ? !rail_can_read(link) : !rail_has_room(link))
        return false;
    /* Set first: the rail may fail within, and the piece be given back. */
    piece->posted = true;
    if (transfer->reading)
        read_piece(piece, link);
    else
        write_piece(piece, link);
    return true;
}

/* Returns how many went; the transfer waits if some could not. */
static int post_pieces(struct transfer *transfer)
{
    int count = 0;

    for (uint32_t i = 0; i < transfer->plan.count; i++) {
        struct piece *piece = &transfer->piece[i];

        if (piece->posted)
            continue;
        if (post_piece(piece))
            count++;
        else
            transfer_waits(transfer);
    }
    return count;
}

void piece_over(struct piece *piece)
{
    struct transfer *transfer = piece->transfer;
    struct rails_set *set = &transfer->endpoint->connection->set;

    if (transfer->endpoint->failed)
        return;
    if (keeps_rail(piece))
        rails_completed(set, &piece->rails, true, mtl_now());
    if (--transfer->left)
        return;
    rails_ended(set, &transfer->plan);
    if (!transfer->sending)
        transfer_tell_done(transfer->endpoint, transfer->peer_cookie);
    transfer_over(transfer);
}

void piece_led(struct piece *piece)
{
    piece->posted = false;
    if (!post_piece(piece))
        transfer_waits(piece->transfer);
}

void piece_lost(struct piece *piece)
{
    piece->posted = false;
    piece->led = 0;
    transfer_waits(piece->transfer);
}

void piece_read_failed(struct piece *piece)
{
    if (!piece->transfer->endpoint->failed)
        piece_lost(piece);
}

/* ---- receiving ---- */

static void tell_accepted(struct transfer *transfer)
{
    struct wire_accept body = { .cookie = transfer->peer_cookie,
                                .size = transfer->length,
                                .target = transfer->cookie,
                                .address = (uintptr_t)transfer->data };

    make_accessible(transfer, body.rkeys);
    endpoint_control(transfer->endpoint, WIRE_ACCEPT, &body, sizeof(body));
}

static void take_over_rails(struct transfer *transfer, const struct wire_offer *offer)
{
    if (!make_accessible(transfer, NULL)) {
        endpoint_fail(transfer->endpoint);
        return;
    }
    if (!is_read(transfer->endpoint)) {
        tell_accepted(transfer);
        return;
    }
    transfer->reading = true;
    transfer->peer_address = offer->address;
    memcpy(transfer->peer_rkeys, offer->rkeys, sizeof(offer->rkeys));
    plan_pieces(transfer, offer->class < RAILS_CLASSES ? offer->class : RAILS_NONBLOCKING);
    post_pieces(transfer);
}

void rendezvous_take(struct mtl_request *request, struct endpoint *endpoint,
                     const struct wire_offer *offer)
{
    uint64_t length = offer->size < request->size ? offer->size : request->size;
    struct transfer *transfer;

    if (!length) {
        transfer_tell_done(endpoint, offer->cookie);
        request_done(request, MPI_SUCCESS);
        return;
    }
    transfer = transfer_new(request, endpoint, length);
    if (!transfer) {
        mtl_log("no memory to receive %lu bytes", length);
        request_done(request, MPI_ERR_NO_MEM);
        return;
    }
    transfer->peer_cookie = offer->cookie;
    if (endpoint->way == WAY_SHARED)
        nearby_take(transfer, offer->address);
    else
        take_over_rails(transfer, offer);
}

static void piece_arrived(const struct wire_piece *body)
{
    struct transfer *transfer = cookie_find(COOKIE_TRANSFER, body->target);

    if (!transfer)
        return;
    transfer->seen |= 1u << (body->index % RAILS_MAX);
    if (__builtin_popcount(transfer->seen) == (int)body->count)
        transfer_over(transfer);
}

/* ---- sending ---- */

static void accepted(const struct wire_accept *body)
{
    struct transfer *transfer = cookie_find(COOKIE_TRANSFER, body->cookie);

    if (!transfer || transfer->peer_cookie)
        return;
    transfer->peer_cookie = body->target;
    transfer->peer_address = body->address;
    transfer->length = body->size;
    memcpy(transfer->peer_rkeys, body->rkeys, sizeof(body->rkeys));
    if (!make_accessible(transfer, NULL)) {
        endpoint_fail(transfer->endpoint);
        return;
    }
    plan_pieces(transfer, transfer->request->class);
    post_pieces(transfer);
}

static void told_done(const struct wire_done *body)
{
    struct mtl_request *request = cookie_find(COOKIE_REQUEST, body->cookie);
    struct transfer *transfer = cookie_find(COOKIE_TRANSFER, body->cookie);

    if (request) {
        cookie_free(body->cookie);
        request_done(request, MPI_SUCCESS);
    } else if (transfer) {
        transfer_over(transfer);
    }
}

void rendezvous_arrived(struct endpoint *endpoint, const struct wire_header *header,
                        const void *body)
{
    switch (header->type) {
    case WIRE_ACCEPT:
        accepted(body);
        break;
    case WIRE_PIECE:
        piece_arrived(body);
        break;
    case WIRE_PULL:
    case WIRE_FRAGMENT:
    case WIRE_HELP:
    case WIRE_HELPED:
        nearby_arrived(header, body);
        break;
    case WIRE_DONE:
        told_done(body);
        break;
    default:
        mtl_log("process %u sent a message of type %u, which does not exist", endpoint->name.vpid,
                header->type);
    }
}

int rendezvous_go_on(void)
{
    struct transfer *transfer = waiting, *next;
    int count = 0;

    waiting = NULL;
    last_waiting = &waiting;
    for (; transfer; transfer = next) {
        next = transfer->next;
        transfer->waiting = false;
        if (transfer->endpoint->failed)
            continue;
        count +=
            transfer->plan.count && transfer->left ? post_pieces(transfer) : nearby_go_on(transfer);
    }
    return count;
}

/* ---- the end ---- */

/* Its memory is not used again: completions of its pieces may still come. */
static void fail_one(enum cookie_kind kind, void *object, void *endpoint)
{
    struct mtl_request *request = object;

    if (kind == COOKIE_TRANSFER) {
        struct transfer *transfer = object;

        if (transfer->endpoint != endpoint)
            return;
        request = transfer->request;
        if (transfer->left)
            rails_ended(&transfer->endpoint->connection->set, &transfer->plan);
        forget(transfer);
    } else {
        if (request->endpoint != endpoint)
            return;
        cookie_free(request->cookie);
    }
    request_done(request, MPI_ERR_OTHER);
}

void rendezvous_fail(struct endpoint *endpoint)
{
    cookies_each(fail_one, endpoint);
}

void rendezvous_free(void)
{
    for (struct transfer *transfer = spare, *next; transfer; transfer = next) {
        next = transfer->next;
        free(transfer);
    }
    spare = NULL;
    cookies_free();
}
