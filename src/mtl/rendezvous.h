/* SPDX-License-Identifier: BSD-2-Clause */
/* The rendezvous protocol for long messages. The sender sends an RTS; once it has matched, the data
 * go from user memory to user memory, in as many stripes as the policy plans. */
#ifndef MTL_RENDEZVOUS_H
#define MTL_RENDEZVOUS_H

#include "mtl/connection.h"
#include "mtl/registration.h"
#include "mtl/request_id.h"

struct transfer;

/* The part of a message that goes over one rail. */
struct stripe {
    struct work work; /* first: a completion's wr_id points at it */
    struct transfer *transfer;
    struct rails_stripe rails;
    uint32_t generation; /* of the rail when the stripe was assigned to it */
    bool posted;
    uint64_t head_length; /* bytes at its beginning that are sent ahead */
};

struct transfer {
    uint64_t id;
    struct transfer *next; /* in the deferred list, or among the spare ones */
    bool deferred;
    bool sending;
    bool reading; /* this side RDMA-reads the peer's memory */
    struct mtl_request *request;
    struct endpoint *endpoint;
    char *data;
    bool own_data; /* a contiguous copy, because the user's data are not contiguous */
    uint64_t length;
    uint64_t arrived; /* within a node: bytes copied or received */
    uint64_t sent;    /* within a node: bytes sent as fragments */
    bool fragmented;
    bool invited; /* within a node: the sender may copy, this process has not claimed anything */
    uint32_t coop_number;
    struct transfer *next_invited;
    struct registration *registration;
    uint64_t peer_id;
    uint64_t peer_address;
    uint32_t peer_rkeys[DEVICES_MAX];
    uint32_t stripes_left;
    uint32_t stripes_seen; /* bit mask of the stripes whose FIN has arrived */
    struct rails_plan plan;
    struct stripe stripe[RAILS_MAX];
};

/* Puts the transfer on the list that rendezvous_progress() retries. */
void rendezvous_defer(struct transfer *transfer);

/* All data have arrived: completes the request. */
void rendezvous_complete(struct transfer *transfer);

void rendezvous_send_ack(struct endpoint *endpoint, uint64_t send_id);

/* Fills in the RTS of a send. False if there is no memory. */
bool rendezvous_make_rts(struct mtl_request *request, struct wire_rts *rts);

/* A receive has matched an RTS. */
void rendezvous_receive(struct mtl_request *request, struct endpoint *endpoint,
                        const struct wire_rts *rts);

void rendezvous_arrived(struct endpoint *endpoint, const struct wire_header *header,
                        const void *body);

/* Whether peers on this node still have to copy long messages of this process. */
bool rendezvous_has_shared_sends(void);

/* Whether a message of a peer may have to be answered. */
bool rendezvous_in_progress(void);
/* Whether the next step may follow a completion of this process alone. */
bool rendezvous_awaits_completions(void);

/* Retries deferred transfers. Returns how many stripes or fragments were posted. */
int rendezvous_progress(void);

/* Completes all transfers with that endpoint with an error. */
void rendezvous_fail(struct endpoint *endpoint);
void rendezvous_free(void);

/* Events of a stripe, called by the rail. */
void rendezvous_stripe_done(struct stripe *stripe); /* its FIN, or the RDMA read, has completed */
void rendezvous_head_done(struct stripe *stripe);   /* half of its head has arrived */
void rendezvous_stripe_lost(struct stripe *stripe); /* the rail failed, and is drained */
void rendezvous_read_failed(struct stripe *stripe);

#endif
