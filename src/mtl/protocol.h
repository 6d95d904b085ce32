/* SPDX-License-Identifier: BSD-2-Clause */
/* The eager protocol and dispatch of messages; rendezvous.h has the protocol for long ones. */
#ifndef MTL_PROTOCOL_H
#define MTL_PROTOCOL_H

#include "mtl/endpoint.h"

/* A message that arrived before its receive was posted. */
struct unexpected {
    struct match_message match;
    struct endpoint *endpoint;
    uint64_t size;
    struct mtl_request *own; /* a send of this process to itself, not copied yet */
    bool has_rts;
    bool synchronous;
    uint32_t room; /* bytes for the data */
    union {
        uint64_t send_id;        /* if synchronous */
        struct unexpected *next; /* of those to be reused */
    };
    char data[]; /* or a struct wire_rts */
};

int protocol_init(void);
void protocol_free(void);

void protocol_send(struct mtl_request *request);

/* Sends contiguous data that are short enough to be copied. False: it has to be sent by a request. */
bool protocol_send_now(struct endpoint *endpoint, const struct match_key *key, const void *data,
                       uint64_t size, enum rails_class class);

/* Sends the message of a queued request; false if there still is no free slot. */
bool protocol_send_queued(struct mtl_request *request);

void protocol_receive(struct mtl_request *request);

/* Receives a message that has arrived already into contiguous memory. False: it has to be received
 * by a request. */
bool protocol_receive_now(const struct match_key *key, void *buffer, uint64_t size,
                          struct ompi_status_public_t *status);

/* MPI_ERROR belongs to the caller: MPI sets it only in calls with several statuses. */
void protocol_fill_status(struct ompi_status_public_t *status, const struct match_key *key,
                          uint64_t size);

/* A receive of contiguous data that the program waits for at once. A short message needs no request,
 * unless other receives are posted, or other messages unexpected, when the wait begins. */
struct awaited {
    struct match_key key;
    void *buffer;
    uint64_t size;
    struct ompi_status_public_t *status;
    bool over;
};

/* Returns false if a request has to receive. Otherwise the caller polls while protocol_awaits(), and
 * then calls protocol_await_end(); if it is not 'over' by then, a request receives. */
bool protocol_await(struct awaited *receive);
/* False once the message has come, or one that only a request, or a later receive, can take. */
bool protocol_awaits(const struct awaited *receive);
void protocol_await_end(void);

/* Receives a message that MPI_Mprobe has taken out of the unexpected queue. */
void protocol_receive_matched(struct mtl_request *request, struct unexpected *message);

/* Handles a message from a peer. */
void protocol_arrived(struct endpoint *endpoint, const struct wire_header *header,
                      const void *body);

uint32_t protocol_slot_size(void);
/* Longest message that is copied through shared memory. */
uint64_t protocol_shared_memory_limit(void);
/* Longest message that a process may send with its data; NULL: any process. */
uint64_t protocol_longest_eager(const struct endpoint *endpoint);
/* Whether peers write eager messages into slots that this process polls, instead of sending.
 * 'attachable': the slots are in memory that peers of this machine attach. */
bool protocol_polls_slots(bool attachable);
uint64_t protocol_own_name(void);

#endif
