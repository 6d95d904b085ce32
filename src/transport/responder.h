#ifndef TRANSPORT_RESPONDER_H
#define TRANSPORT_RESPONDER_H

/* Carries out what arrives, once and in order, and answers (IBA volume 1, 9.7.4, 9.7.5, 9.8). */

#include "transport/packet.h"

#define RESPONDER_MAX_ANSWERS 16

struct transport_qp;

/* A read or atomic that was accepted: what is needed to answer it, and to answer it again. */
struct responder_answer {
    uint8_t opcode;  /* of the request; counts if packets is not 0 */
    bool pending;    /* packets of it are still to be sent */
    bool given_once; /* all of them were sent before: a requester may have got them */
    uint32_t psn;
    uint32_t packets;
    uint32_t start_psn; /* of what is being sent: a repeated read may begin in the middle */
    uint32_t next_psn;
    uint32_t key;
    uint32_t length;
    uint64_t address;
    uint64_t region;
    uint64_t original;
};

/* The message that is arriving. */
struct responder_message {
    bool open;          /* its first packet was accepted, its last was not */
    bool receive_taken; /* outlives a UC message that was cut off: the next one uses it */
    uint16_t kind;      /* OPCODE_SEND or OPCODE_WRITE */
    uint32_t length;    /* bytes so far */
    uint32_t total;     /* of a write, as its RETH said */
    uint64_t region;
    uint64_t address;
};

struct responder {
    uint32_t expected_psn;
    uint32_t msn;
    struct responder_message message;
    bool gap_reported; /* say nothing more until the expected packet comes */
    bool acknowledge;  /* an acknowledgement is to be sent, after the answers */
    uint8_t syndrome;  /* its syndrome */
    uint8_t pending;   /* answers that are */
    uint8_t oldest;    /* answer: the next one to be given up for a new request */
    struct responder_answer answers[RESPONDER_MAX_ANSWERS];
};

void responder_init(struct transport_qp *qp);
void responder_receive(struct transport_qp *qp, const struct packet *packet,
                       const struct opcode_info *info);
bool responder_pull(struct transport_qp *qp, struct packet *packet);

#endif
