/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/opcode.h"

/* clang-format off */
#define BYTES(headers)                                        \
    (BTH_BYTES +                                              \
     ((headers) & HEADER_DETH ? DETH_BYTES : 0) +             \
     ((headers) & HEADER_XRCETH ? XRCETH_BYTES : 0) +         \
     ((headers) & HEADER_RETH ? RETH_BYTES : 0) +             \
     ((headers) & HEADER_ATOMIC ? ATOMIC_BYTES : 0) +         \
     ((headers) & HEADER_AETH ? AETH_BYTES : 0) +             \
     ((headers) & HEADER_ATOMIC_ACK ? ATOMIC_ACK_BYTES : 0) + \
     ((headers) & HEADER_IMMEDIATE ? IMMEDIATE_BYTES : 0) +   \
     ((headers) & HEADER_IETH ? IETH_BYTES : 0))

#define OP(service, opcode, label, with, what)  \
    [SERVICE_##service | OPCODE_##opcode] = {   \
        .name = #service " " label,             \
        .headers = (with),                      \
        .header_bytes = BYTES(with),            \
        .flags = (what),                        \
    }

#define RETH     HEADER_RETH
#define ATOMIC   HEADER_ATOMIC
#define AETH     HEADER_AETH
#define ORIGINAL HEADER_ATOMIC_ACK
#define IMM      HEADER_IMMEDIATE
#define IETH     HEADER_IETH

#define FIRST    OPCODE_START
#define LAST     OPCODE_END
#define ONLY     (OPCODE_START | OPCODE_END)
#define SEND     (OPCODE_SEND | OPCODE_PAYLOAD | OPCODE_RECEIVE)
#define PUT      (OPCODE_WRITE | OPCODE_PAYLOAD)
#define NOTE     (OPCODE_WRITE | OPCODE_PAYLOAD | OPCODE_RECEIVE)
#define READ     OPCODE_READ
#define SWAP     OPCODE_ATOMIC
#define DATA     (OPCODE_RESPONSE | OPCODE_READ | OPCODE_PAYLOAD)
#define ACK      OPCODE_RESPONSE
#define RESULT   (OPCODE_RESPONSE | OPCODE_ATOMIC)

/* `own` is a header which the service puts in front of the others of every request. */
#define SENDS_IN_ONE_PACKET(s, own)                                                                \
    OP(s, SEND_ONLY,            "SEND Only",                      own,              SEND | ONLY),  \
    OP(s, SEND_ONLY_IMMEDIATE,  "SEND Only with Immediate",       own | IMM,        SEND | ONLY)

#define SENDS_AND_WRITES(s, own)                                                                   \
    SENDS_IN_ONE_PACKET(s, own),                                                                   \
    OP(s, SEND_FIRST,           "SEND First",                     own,              SEND | FIRST), \
    OP(s, SEND_MIDDLE,          "SEND Middle",                    own,              SEND),         \
    OP(s, SEND_LAST,            "SEND Last",                      own,              SEND | LAST),  \
    OP(s, SEND_LAST_IMMEDIATE,  "SEND Last with Immediate",       own | IMM,        SEND | LAST),  \
    OP(s, WRITE_FIRST,          "RDMA WRITE First",               own | RETH,       PUT | FIRST),  \
    OP(s, WRITE_MIDDLE,         "RDMA WRITE Middle",              own,              PUT),          \
    OP(s, WRITE_LAST,           "RDMA WRITE Last",                own,              PUT | LAST),   \
    OP(s, WRITE_LAST_IMMEDIATE, "RDMA WRITE Last with Immediate", own | IMM,        NOTE | LAST),  \
    OP(s, WRITE_ONLY,           "RDMA WRITE Only",                own | RETH,       PUT | ONLY),   \
    OP(s, WRITE_ONLY_IMMEDIATE, "RDMA WRITE Only with Immediate", own | RETH | IMM, NOTE | ONLY)

#define WHAT_NEEDS_ANSWERS(s, own)                                                                 \
    OP(s, SEND_LAST_INVALIDATE, "SEND Last with Invalidate",      own | IETH,       SEND | LAST),  \
    OP(s, SEND_ONLY_INVALIDATE, "SEND Only with Invalidate",      own | IETH,       SEND | ONLY),  \
    OP(s, READ_REQUEST,         "RDMA READ Request",              own | RETH,       READ | ONLY),  \
    OP(s, COMPARE_SWAP,         "CmpSwap",                        own | ATOMIC,     SWAP | ONLY),  \
    OP(s, FETCH_ADD,            "FetchAdd",                       own | ATOMIC,     SWAP | ONLY),  \
    OP(s, READ_RESPONSE_FIRST,  "RDMA READ response First",       AETH,             DATA | FIRST), \
    OP(s, READ_RESPONSE_MIDDLE, "RDMA READ response Middle",      0,                DATA),         \
    OP(s, READ_RESPONSE_LAST,   "RDMA READ response Last",        AETH,             DATA | LAST),  \
    OP(s, READ_RESPONSE_ONLY,   "RDMA READ response Only",        AETH,             DATA | ONLY),  \
    OP(s, ACKNOWLEDGE,          "Acknowledge",                    AETH,             ACK | ONLY),   \
    OP(s, ATOMIC_ACKNOWLEDGE,   "ATOMIC Acknowledge",             AETH | ORIGINAL,  RESULT | ONLY)
/* clang-format on */

const struct opcode_info opcode_table[256] = {
    SENDS_AND_WRITES(RC, 0),
    WHAT_NEEDS_ANSWERS(RC, 0),
    SENDS_AND_WRITES(UC, 0),
    SENDS_IN_ONE_PACKET(UD, HEADER_DETH),
    SENDS_AND_WRITES(XRC, HEADER_XRCETH),
    WHAT_NEEDS_ANSWERS(XRC, HEADER_XRCETH),
    [OPCODE_CNP] = { .name = "CNP",
                     .header_bytes = BTH_BYTES + CNP_RESERVED_BYTES,
                     .flags = OPCODE_START | OPCODE_END },
};
