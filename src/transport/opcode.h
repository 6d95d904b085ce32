/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TRANSPORT_OPCODE_H
#define TRANSPORT_OPCODE_H

/* Properties of each opcode (IBA volume 1, 9.2.1 "Operation Code", and annex A14
 * for XRC), as a table. */

#include <stddef.h>
#include <stdint.h>

/* The upper three bits of an opcode. */
enum transport_service {
    SERVICE_RC = 0x00,
    SERVICE_UC = 0x20,
    SERVICE_UD = 0x60,
    SERVICE_XRC = 0xa0,
};
#define SERVICE_MASK 0xe0

/* The lower five. */
enum opcode {
    OPCODE_SEND_FIRST,
    OPCODE_SEND_MIDDLE,
    OPCODE_SEND_LAST,
    OPCODE_SEND_LAST_IMMEDIATE,
    OPCODE_SEND_ONLY,
    OPCODE_SEND_ONLY_IMMEDIATE,
    OPCODE_WRITE_FIRST,
    OPCODE_WRITE_MIDDLE,
    OPCODE_WRITE_LAST,
    OPCODE_WRITE_LAST_IMMEDIATE,
    OPCODE_WRITE_ONLY,
    OPCODE_WRITE_ONLY_IMMEDIATE,
    OPCODE_READ_REQUEST,
    OPCODE_READ_RESPONSE_FIRST,
    OPCODE_READ_RESPONSE_MIDDLE,
    OPCODE_READ_RESPONSE_LAST,
    OPCODE_READ_RESPONSE_ONLY,
    OPCODE_ACKNOWLEDGE,
    OPCODE_ATOMIC_ACKNOWLEDGE,
    OPCODE_COMPARE_SWAP,
    OPCODE_FETCH_ADD,
    OPCODE_SEND_LAST_INVALIDATE = 22,
    OPCODE_SEND_ONLY_INVALIDATE = 23,
};

/* Congestion notification packet of RoCEv2 (annex A17): a whole opcode, of no service. */
#define OPCODE_CNP 0x81

/* Extension headers, in the order in which they follow the BTH. */
enum header_flag {
    HEADER_DETH = 1 << 0,
    HEADER_XRCETH = 1 << 1,
    HEADER_RETH = 1 << 2,
    HEADER_ATOMIC = 1 << 3,
    HEADER_AETH = 1 << 4,
    HEADER_ATOMIC_ACK = 1 << 5,
    HEADER_IMMEDIATE = 1 << 6,
    HEADER_IETH = 1 << 7,
};

enum header_bytes {
    LRH_BYTES = 8,
    GRH_BYTES = 40,
    BTH_BYTES = 12,
    DETH_BYTES = 8,
    XRCETH_BYTES = 4,
    RETH_BYTES = 16,
    ATOMIC_BYTES = 28,
    AETH_BYTES = 4,
    ATOMIC_ACK_BYTES = 8,
    IMMEDIATE_BYTES = 4,
    IETH_BYTES = 4,
    CNP_RESERVED_BYTES = 16,
    ICRC_BYTES = 4,
    VCRC_BYTES = 2,
};

enum opcode_flag {
    OPCODE_START = 1 << 0,    /* first packet of its message */
    OPCODE_END = 1 << 1,      /* last packet of its message */
    OPCODE_RESPONSE = 1 << 2, /* goes from responder to requester */
    OPCODE_SEND = 1 << 3,     /* places its payload in a receive */
    OPCODE_WRITE = 1 << 4,    /* places its payload at the address of a RETH */
    OPCODE_READ = 1 << 5,     /* request or response of a read */
    OPCODE_ATOMIC = 1 << 6,   /* request or response of an atomic */
    OPCODE_RECEIVE = 1 << 7,  /* consumes a receive */
    OPCODE_PAYLOAD = 1 << 8,  /* may have a payload */
};

struct opcode_info {
    const char *name;
    uint8_t headers;
    uint8_t header_bytes; /* BTH and extension headers */
    uint16_t flags;
};

extern const struct opcode_info opcode_table[256];

/* NULL: unknown opcode. */
static inline const struct opcode_info *opcode_info(uint8_t opcode)
{
    const struct opcode_info *info = &opcode_table[opcode];

    return info->name ? info : NULL;
}

#endif
