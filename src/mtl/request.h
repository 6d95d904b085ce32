/* SPDX-License-Identifier: BSD-2-Clause */
/* A send or receive in progress. It lies behind Open MPI's own request, or on the stack of a
 * blocking call, and must not be touched after its completion has been reported. */
#ifndef MTL_REQUEST_H
#define MTL_REQUEST_H

#include "mtl/mtl.h"
#include "mtl/wire.h"

#include <opal/datatype/opal_convertor.h>
#include <opal/util/proc.h>

struct endpoint;

struct mtl_request {
    mca_mtl_request_t super;
    struct mtl_request *next; /* in the list of completed requests */
    struct opal_convertor_t *convertor;
    struct endpoint *endpoint; /* NULL for a receive from MPI_ANY_SOURCE, or before a message */
    const opal_process_name_t *source; /* of a posted receive; NULL for MPI_ANY_SOURCE */
    char *buffer;                      /* user memory; NULL if not contiguous */
    uint64_t size;                     /* of the message, or of the receive buffer */
    struct match_receive receive;      /* a send uses its key, too */
    uint64_t id;                       /* of its transfer, or of a synchronous eager send */
    uint32_t record;                   /* its operation in the recorded schedule, 0: none */
    enum rails_class class;
    int error; /* after completion */
    bool sending;
    bool synchronous;
    bool eager;    /* a send: its data go with its first message */
    bool blocking; /* its caller waits for it */
    uint64_t sent; /* of an eager send in pieces: bytes so far */
};

/* Fill in buffer and size from the convertor. */
void request_of_send(struct mtl_request *request, struct opal_convertor_t *convertor);
void request_of_receive(struct mtl_request *request, struct opal_convertor_t *convertor);

/* Packs all data of a send into contiguous memory. */
void request_pack(struct mtl_request *request, void *to);

/* Unpacks data into a receive buffer, truncated to its size. 'offset' is where they begin in the
 * message, whose parts come in order. */
void request_unpack(struct mtl_request *request, uint64_t offset, const void *from,
                    uint64_t length);

/* Sets the status of a receive that has matched. */
void request_matched(struct mtl_request *request, const struct match_key *key, uint64_t size);

/* Completes the request with an MPI error class; mtl_leave() reports it. */
void request_done(struct mtl_request *request, int error);

#endif
