/* A send or receive under way. It lies behind Open MPI's own request, or on the stack of a blocking
 * call, and must not be touched after it has been reported. */
#ifndef MTL_REQUEST_H
#define MTL_REQUEST_H

#include "mtl/mtl.h"
#include "mtl/wire.h"

#include <opal/datatype/opal_convertor.h>

struct endpoint;
struct transfer;

struct mtl_request {
    mca_mtl_request_t super;
    struct mtl_request *next; /* of those to be reported */
    struct opal_convertor_t *convertor;
    struct endpoint *endpoint;    /* NULL for a receive from anybody */
    char *buffer;                 /* the user's memory, or NULL if it is scattered */
    uint64_t size;                /* of the message sent, or of the room for one */
    struct match_receive receive; /* its key is that of a send, too */
    uint64_t cookie;              /* of a synchronous eager send that has not been matched */
    enum rails_class class;
    int error; /* once it is over */
    bool sending;
    bool synchronous;
};

/* Fill in what the convertor says. */
void request_of_send(struct mtl_request *request, struct opal_convertor_t *convertor);
void request_of_receive(struct mtl_request *request, struct opal_convertor_t *convertor);

/* The data of a send, in one piece: 'to' has room for all. */
void request_pack(struct mtl_request *request, void *to);

/* Data for a receive: only as much as it has room for. */
void request_unpack(struct mtl_request *request, const void *from, uint64_t length);

/* The receive has matched: its status says with what. */
void request_matched(struct mtl_request *request, const struct match_key *key, uint64_t size);

/* It is over; reported when we leave. 'error' is an MPI error class, MPI_SUCCESS mostly. */
void request_done(struct mtl_request *request, int error);

#endif
