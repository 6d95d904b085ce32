/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TRANSPORT_RESPONDER_H
#define TRANSPORT_RESPONDER_H

/* Executes requests once and in order, and responds (IBA volume 1, 9.7.4, 9.7.5, 9.8). */

#include "transport/packet.h"

#define RESPONDER_MAX_RESOURCES 16

struct transport_qp;

/* An accepted read or atomic: what is needed to respond to it, and to its duplicates. */
struct responder_resource {
    uint8_t opcode; /* of the request; valid if packets is not 0 */
    bool pending;   /* response packets are still to be sent */
    bool responded; /* all of them were sent once: the requester may have received them */
    uint32_t psn;
    uint32_t packets;
    uint32_t start_psn; /* of this response: a duplicate read may begin in the middle */
    uint32_t next_psn;
    uint32_t key;
    uint32_t length;
    uint64_t address;
    uint64_t region;
    uint64_t original;
};

/* The message being received. */
struct responder_message {
    bool open;          /* its first packet was accepted, its last was not */
    bool receive_taken; /* kept when a UC message is cut off: the next one uses it */
    uint16_t kind;      /* OPCODE_SEND or OPCODE_WRITE */
    uint32_t length;    /* bytes so far */
    uint32_t total;     /* of a write, from its RETH */
    uint64_t region;
    uint64_t address;
};

struct responder {
    uint32_t expected_psn;
    uint32_t msn;
    struct responder_message message;
    bool gap_reported; /* send no further NAK until the expected packet arrives */
    bool acknowledge;  /* an ACK or NAK is to be sent, after pending responses */
    uint8_t syndrome;  /* of that ACK or NAK */
    uint8_t pending;   /* resources with response packets to send */
    uint8_t oldest;    /* resource: reused by the next read or atomic */
    struct responder_resource *resources; /* as many as the attributes say */
};

void responder_init(struct transport_qp *qp);
void responder_receive(struct transport_qp *qp, const struct packet *packet,
                       const struct opcode_info *info);
bool responder_pull(struct transport_qp *qp, struct packet *packet);

/* The index of the resource whose response is pulled next. One must be pending. */
unsigned responder_next(const struct transport_qp *qp);

#endif
