/* SPDX-License-Identifier: BSD-2-Clause */
#include "mtl/pieces.h"

#include "mtl/protocol.h"
#include "mtl/ring_limit.h"

bool pieces_send(struct endpoint *endpoint, const struct match_key *key, const char *data,
                 uint64_t size, uint64_t *sent)
{
    struct wire_pieces whole = { .size = size };
    uint64_t length;

    for (; *sent < size; *sent += length) {
        bool first = !*sent;
        struct message message = {
            .header = { .context = key->context,
                        .source = key->source,
                        .tag = key->tag,
                        .type = first ? WIRE_FIRST_PIECE : WIRE_PIECE },
            .body = &whole,
            .body_length = first ? sizeof(whole) : 0,
            .data = data + *sent,
        };

        length = size - *sent < RING_PIECE ? size - *sent : RING_PIECE;
        message.data_length = length;
        if (!endpoint_try_send(endpoint, &message, RAILS_NONBLOCKING))
            return false;
    }
    return true;
}

void pieces_begin(struct endpoint *endpoint, struct mtl_request *request,
                  struct unexpected *message, uint64_t size)
{
    endpoint->arriving = (struct arriving){ .request = request, .message = message, .size = size };
}

void pieces_arrived(struct endpoint *endpoint, const void *data, uint64_t length)
{
    struct arriving *arriving = &endpoint->arriving;

    if (arriving->request)
        request_unpack(arriving->request, arriving->arrived, data, length);
    else if (arriving->message)
        memcpy(arriving->message->data + arriving->arrived, data, length);
    arriving->arrived += length;
    if (arriving->arrived < arriving->size)
        return;
    if (arriving->request)
        request_done(arriving->request, MPI_SUCCESS);
    *arriving = (struct arriving){ .size = 0 };
}

bool pieces_missing(const struct unexpected *message)
{
    return message->endpoint->arriving.message == message;
}

void pieces_receive(struct mtl_request *request, const struct unexpected *message)
{
    struct endpoint *endpoint = message->endpoint;
    struct arriving *arriving = &endpoint->arriving;

    request_unpack(request, 0, message->data, arriving->arrived);
    arriving->message = NULL;
    arriving->request = request;
    if (endpoint->failed)
        pieces_fail(endpoint);
}

void pieces_fail(struct endpoint *endpoint)
{
    if (!endpoint->arriving.request)
        return;
    request_done(endpoint->arriving.request, mtl_unreachable());
    endpoint->arriving.request = NULL;
}
