/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CM_MAD_H
#define CM_MAD_H

/* CM messages as management datagrams (IBA volume 1, 12.6, and annex A11 for IP addresses).
 * Encoding and decoding are pure functions. */

#include "cm/mailbox.h"
#include "hca/mad.h"

/* What a datagram carries besides a message of the connection manager. */
struct mad_message {
    uint64_t transaction;
    uint32_t local_id, remote_id; /* of its sender and of its receiver */
    uint64_t service_id;          /* REQ, SIDR REQ, SIDR REP */
    uint8_t local_gid[16];        /* of its sender; decoded from a REQ only */
    uint8_t remote_gid[16];       /* REQ */
    uint8_t about;                /* REJ, MRA: the kind of message; see enum mad_about */
    uint8_t response_timeout;     /* REQ: of its sender. MRA: how long to wait. 4.096 µs << n */
    uint8_t max_retries;          /* REQ */
    uint8_t hop_limit;            /* REQ */
    struct cm_message message;
};

enum mad_about { MAD_ABOUT_REQ, MAD_ABOUT_REP, MAD_ABOUT_OTHER };

void mad_encode(const struct mad_message *m, uint8_t bytes[MAD_BYTES]);
/* Returns NULL, or why it is no message of the connection manager. */
const char *mad_decode(struct mad_message *m, const uint8_t bytes[MAD_BYTES]);

static inline bool mad_is_request(const struct mad_message *m)
{
    return m->message.type == CM_MSG_REQ || m->message.type == CM_MSG_SIDR_REQ;
}

static inline uint16_t mad_port_space(const struct mad_message *m)
{
    return m->service_id >> 16;
}

#endif
