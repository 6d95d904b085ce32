/* SPDX-License-Identifier: BSD-2-Clause */
/* The wire protocol: a header, then a body that depends on the type. All processes of a job have
 * the same byte order and the same version of this file. */
#ifndef MTL_WIRE_H
#define MTL_WIRE_H

#include "rails/rails.h"

#include <stdbool.h>
#include <stdint.h>

#define DEVICES_MAX 8
#define PATHS_MAX   16
#define PORTS_MAX   8

enum wire_type {
    WIRE_EAGER = 1,     /* a message and its data */
    WIRE_FIRST_PIECE,   /* shared memory: a message begins: struct wire_pieces, then data */
    WIRE_PIECE,         /* more data of that message */
    WIRE_RTS,           /* ready to send, the data stay with the sender: struct wire_rts */
    WIRE_CTS,           /* clear to send, write the data here: struct wire_cts */
    WIRE_FIN,           /* one stripe has been written: struct wire_fin */
    WIRE_CTS_FRAGMENTS, /* clear to send, as WIRE_DATA fragments: struct wire_cts */
    WIRE_DATA,          /* one fragment: struct wire_data, then data */
    WIRE_COOP_COPY,     /* sender and receiver copy together: struct wire_coop_copy */
    WIRE_COOP_DONE,     /* the sender has copied its chunks: struct wire_coop_done */
    WIRE_ACK,           /* the send is complete: struct wire_ack */
    WIRE_RAIL_DOWN,     /* stop using this rail: struct wire_rail */
    WIRE_RAIL_DRAINED,  /* everything that arrived on it has been consumed: struct wire_rail */
    WIRE_RAIL_REQ,      /* reconnect a failed rail to this new queue pair: struct wire_rail */
    WIRE_RAIL_REP,      /* the queue pair of the other side: struct wire_rail */
    WIRE_RAIL_RTU,      /* ready to use, both are connected: struct wire_rail */
};

/* Whether data move only after the receiver of such a message has acted. */
static inline bool wire_wants_answer(enum wire_type type)
{
    return type != WIRE_EAGER && type != WIRE_FIRST_PIECE && type != WIRE_PIECE &&
           type != WIRE_FIN && type != WIRE_DATA && type != WIRE_ACK;
}

/* Flags. The sender of an eager message wants a WIRE_ACK when it matches; its body begins with a
 * struct wire_ack. */
#define WIRE_SYNCHRONOUS 1
/* Shared memory only: the body lies in the data ring. */
#define WIRE_IN_DATA_RING 2

struct wire_header {
    uint32_t length;   /* of the body */
    uint32_t consumed; /* messages consumed so far from this rail's other direction */
    uint32_t sequence; /* of eager and RTS messages between two processes */
    uint32_t context;
    int32_t source;
    int32_t tag;
    uint8_t type;
    uint8_t flags;
    uint16_t ack;  /* low bits of the next sequence number expected from the other side */
    uint32_t mark; /* tells a full slot from an empty one; last, for cells */
};

/* Everything but the mark. Reads each field as it was written: a wider load would have to wait for
 * those stores to leave the processor, behind a store into memory that the peer has in its cache. */
static inline void wire_copy_header(struct wire_header *to, const struct wire_header *from)
{
    const volatile struct wire_header *fields = from;

    to->length = fields->length;
    to->consumed = fields->consumed;
    to->sequence = fields->sequence;
    to->context = fields->context;
    to->source = fields->source;
    to->tag = fields->tag;
    to->type = fields->type;
    to->flags = fields->flags;
    to->ack = fields->ack;
}

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
static inline uint64_t wire_pair(uint32_t first, uint32_t second)
{
    return (uint64_t)second << 32 | first;
}

static inline uint32_t wire_kind(uint8_t type, uint8_t flags, uint16_t ack)
{
    return (uint32_t)ack << 16 | (uint32_t)flags << 8 | type;
}
#else
static inline uint64_t wire_pair(uint32_t first, uint32_t second)
{
    return (uint64_t)first << 32 | second;
}

static inline uint32_t wire_kind(uint8_t type, uint8_t flags, uint16_t ack)
{
    return (uint32_t)type << 24 | (uint32_t)flags << 16 | ack;
}
#endif

/* The same by whole words, for whoever reads words soon. */
static inline void wire_store_header(struct wire_header *to, const struct wire_header *from,
                                     uint32_t mark)
{
    struct wire_words {
        uint64_t word[4];
    } __attribute__((may_alias)) *words = (struct wire_words *)to;
    const volatile struct wire_header *fields = from;

    _Static_assert(sizeof(*words) == sizeof(*to), "no padding");
    words->word[0] = wire_pair(fields->length, fields->consumed);
    words->word[1] = wire_pair(fields->sequence, fields->context);
    words->word[2] = wire_pair(fields->source, fields->tag);
    words->word[3] = wire_pair(wire_kind(fields->type, fields->flags, fields->ack), mark);
}

/* Of the whole message. As long as a cache line, so that the data begin with one. */
struct wire_pieces {
    uint64_t size;
    uint64_t unused[7];
};

struct wire_rts {
    uint64_t size;
    uint64_t send_id;
    uint64_t address;
    uint32_t class; /* of communication */
    uint32_t unused;
    uint32_t rkeys[DEVICES_MAX]; /* set if the receiver may read the data */
};

struct wire_cts {
    uint64_t send_id;
    uint64_t size; /* the receive may be shorter than the send */
    uint64_t recv_id;
    uint64_t address;
    uint32_t rkeys[DEVICES_MAX];
};

struct wire_fin {
    uint64_t recv_id;
    uint32_t index;
    uint32_t count; /* stripes of the whole message */
};

struct wire_data {
    uint64_t recv_id;
    uint64_t offset;
};

struct wire_coop_copy {
    uint64_t send_id;
    uint64_t recv_id;
    uint64_t address;
    uint64_t size; /* the receive may be shorter than the send */
    uint64_t chunk;
    uint32_t number; /* of this message in the coop_word */
    uint32_t unused;
};

struct wire_coop_done {
    uint64_t recv_id;
    uint64_t size;
    uint32_t failed; /* the sender could not copy a chunk that it had claimed */
    uint32_t unused;
};

struct wire_ack {
    uint64_t send_id;
};

struct wire_rail {
    uint32_t rail;
    uint32_t generation;
    uint32_t qp_num; /* of the new queue pair, in WIRE_RAIL_REQ and WIRE_RAIL_REP */
    uint32_t unused;
};

/* Where a process wants its messages to be written. */
enum wireup_slots { WIREUP_SEND, WIREUP_SLOTS, WIREUP_SLOTS_AND_CELLS };

/* Over UD, without a header: what two processes tell each other to connect their queue pairs. */
struct wireup_message {
    uint64_t name;
    uint32_t connected; /* the sender's queue pairs are connected */
    uint32_t ready;     /* and the sender knows that the receiver's are, too */
    uint32_t rail_count;
    uint32_t slots; /* enum wireup_slots, of the sender */
    uint64_t memory;
    uint32_t rkeys[DEVICES_MAX];
    uint32_t qps[RAILS_MAX];
};

/* The longest body of a control message. A slot always has room for it. */
#define WIRE_BODY_MAX sizeof(struct wire_cts)

#endif
