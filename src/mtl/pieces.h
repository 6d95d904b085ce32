/* SPDX-License-Identifier: BSD-2-Clause */
/* Longer messages go through the data ring in pieces: the receiver copies one out while the sender
 * copies the next one in. The pieces of a message follow each other in the ring. */
#ifndef MTL_PIECES_H
#define MTL_PIECES_H

#include "mtl/match.h"

struct endpoint;
struct mtl_request;
struct unexpected;

/* A message of which some pieces have not arrived yet, of a request or unexpected. */
struct arriving {
    struct mtl_request *request;
    struct unexpected *message;
    uint64_t size, arrived;
};

/* Sends as many pieces as the ring has room for. '*sent' counts bytes, over all calls for a
 * message. True: that was all of it. */
bool pieces_send(struct endpoint *endpoint, const struct match_key *key, const char *data,
                 uint64_t size, uint64_t *sent);

/* Handle a piece. The first one belongs to the request, or to the message, which may be NULL: then
 * the data are dropped. */
void pieces_begin(struct endpoint *endpoint, struct mtl_request *request,
                  struct unexpected *message, uint64_t size);
void pieces_arrived(struct endpoint *endpoint, const void *data, uint64_t length);

/* Whether some of an unexpected message is missing. */
bool pieces_missing(const struct unexpected *message);
/* A request gets what is here of such a message, and the rest later. */
void pieces_receive(struct mtl_request *request, const struct unexpected *message);

/* The rest will never arrive. */
void pieces_fail(struct endpoint *endpoint);

#endif
