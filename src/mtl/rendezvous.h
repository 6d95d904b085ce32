/* Long messages: the sender offers, and when the receiver has matched it, the data go straight from
 * one memory to the other, in as many pieces as the policy wants. */
#ifndef MTL_RENDEZVOUS_H
#define MTL_RENDEZVOUS_H

#include "mtl/connection.h"
#include "mtl/registration.h"

struct transfer;

/* A piece on its rail. */
struct piece {
    struct work work; /* first: a completion names it */
    struct transfer *transfer;
    struct rails_piece rails;
    uint32_t life; /* of its rail, when that was chosen */
    bool posted;
    uint64_t led; /* bytes at its beginning that went ahead */
};

struct transfer {
    uint64_t cookie;
    struct transfer *next; /* of those that wait for room, or spare */
    bool waiting;
    bool sending;
    bool reading; /* this side reads the other's memory */
    struct mtl_request *request;
    struct endpoint *endpoint;
    char *data;
    bool own_data; /* in one piece, because the user's are not */
    uint64_t length;
    uint64_t arrived; /* copied or in fragments, within a node */
    uint64_t sent;
    bool pulled; /* in fragments */
    struct registration *registration;
    uint64_t peer_cookie;
    uint64_t peer_address;
    uint32_t peer_rkeys[DEVICES_MAX];
    uint32_t left; /* pieces */
    uint32_t seen; /* by number, of those that have arrived */
    struct rails_plan plan;
    struct piece piece[RAILS_MAX];
};

/* It goes on when there is room (rendezvous_go_on). */
void transfer_waits(struct transfer *transfer);

/* All is where it should be: ends the request. */
void transfer_over(struct transfer *transfer);

/* The sender's transfer of that name is over. */
void transfer_tell_done(struct endpoint *endpoint, uint64_t cookie);

/* Describes what a send has to offer. False, with the reason in the log, if there is no memory. */
bool rendezvous_offer(struct mtl_request *request, struct wire_offer *offer);

/* A receive has matched an offer. */
void rendezvous_take(struct mtl_request *request, struct endpoint *endpoint,
                     const struct wire_offer *offer);

void rendezvous_arrived(struct endpoint *endpoint, const struct wire_header *header,
                        const void *body);

/* This process has long messages for others of its node that they have not read yet. */
bool rendezvous_has_offers(void);

/* Names for requests that the other side gives back; a name that is out of date finds nothing. */
enum cookie_kind { COOKIE_FREE, COOKIE_REQUEST, COOKIE_TRANSFER };

uint64_t cookie_new(enum cookie_kind kind, void *object);
void *cookie_find(enum cookie_kind kind, uint64_t cookie);
void cookie_free(uint64_t cookie);
void cookies_each(void (*call)(enum cookie_kind kind, void *object, void *argument),
                  void *argument);
void cookies_free(void);

/* Posts what had no room. Returns how much did. */
int rendezvous_go_on(void);

/* Ends everything with that endpoint. */
void rendezvous_fail(struct endpoint *endpoint);
void rendezvous_free(void);

/* It has been written and the message behind it has arrived, or it has been read. */
void piece_over(struct piece *piece);
void piece_led(struct piece *piece);
void piece_lost(struct piece *piece);
void piece_read_failed(struct piece *piece);

#endif
