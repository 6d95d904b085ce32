/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TRANSPORT_PACKET_H
#define TRANSPORT_PACKET_H

/* A packet as the state machines see it, and its headers as bytes. */

#include "transport/opcode.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACKET_MAX_HEADER_BYTES  (BTH_BYTES + XRCETH_BYTES + ATOMIC_BYTES)
#define PACKET_MAX_PAYLOAD_BYTES 4096

/* A packet references its payload and has no copy: `length` bytes at `offset` of `source`, which is
 * the `data` of the work request, the region that check_remote() returned for a read, or the
 * address of the decoded bytes. */
struct packet_payload {
    uint64_t source;
    uint64_t offset;
    uint32_t length;
};

/* The opcode's headers determine which fields are valid. */
struct packet {
    uint8_t opcode;
    bool solicited;
    bool migrated;
    bool ack_request;
    uint16_t pkey;
    uint8_t syndrome; /* AETH */
    uint32_t msn;
    uint32_t destination_qpn;
    uint32_t psn;
    uint64_t remote_address; /* RETH, AtomicETH */
    uint32_t remote_key;
    uint32_t remote_length; /* RETH only */
    uint64_t swap_or_add;   /* AtomicETH */
    uint64_t compare;
    uint64_t original;       /* AtomicAckETH */
    uint32_t immediate;      /* ImmDt */
    uint32_t invalidate_key; /* IETH */
    uint32_t qkey;           /* DETH */
    uint32_t source_qpn;
    uint32_t srq; /* XRCETH */
    struct packet_payload payload;
    uint64_t route; /* of the work request, 0: to the connected peer; not on the wire */
};

/* Syndromes of an AETH (IBA volume 1, 9.7.5.2): three bits of kind, five of value. */
#define SYNDROME_KIND   0xe0
#define SYNDROME_VALUE  0x1f
#define SYNDROME_ACK    0x00
#define SYNDROME_RNR    0x20
#define SYNDROME_NAK    0x60
#define ACK_NO_CREDITS  (SYNDROME_ACK | 0x1f) /* end-to-end credits are not used */
#define NAK_SEQUENCE    (SYNDROME_NAK | 0)
#define NAK_INVALID     (SYNDROME_NAK | 1)
#define NAK_ACCESS      (SYNDROME_NAK | 2)
#define NAK_OPERATIONAL (SYNDROME_NAK | 3)

/* Padding to a multiple of four bytes. */
static inline uint32_t packet_pad_bytes(const struct packet *packet)
{
    return -packet->payload.length & 3;
}

/* Writes BTH and extension headers of a packet with a known opcode; returns their length. */
size_t packet_encode(const struct packet *packet, uint8_t out[PACKET_MAX_HEADER_BYTES]);

/* Reads what lies between the routing headers and the ICRC. The payload's source is its address in
 * `bytes`. Returns NULL, or a description of the error; then the packet is undefined. */
const char *packet_decode(struct packet *packet, const uint8_t *bytes, size_t length);

#endif
