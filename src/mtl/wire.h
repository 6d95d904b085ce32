/* What processes say to each other: a header, then what its type says. All members of a job have
 * the same byte order and the same version of this. */
#ifndef MTL_WIRE_H
#define MTL_WIRE_H

#include <stdint.h>

#define DEVICES_MAX 8
#define PATHS_MAX   16
#define PORTS_MAX   8

enum wire_type {
    WIRE_EAGER = 1, /* a message with its data */
    WIRE_OFFER,     /* a message whose data are with the sender: struct wire_offer */
    WIRE_ACCEPT,    /* where the data may be written: struct wire_accept */
    WIRE_PIECE,     /* a piece of them has been: struct wire_piece */
    WIRE_PULL,      /* the data are to be sent in fragments: struct wire_accept */
    WIRE_FRAGMENT,  /* struct wire_fragment, then data */
    WIRE_HELP,      /* both copy the data: struct wire_help */
    WIRE_HELPED,    /* the sender has copied what it could: struct wire_helped */
    WIRE_DONE,      /* the sender's part is over: struct wire_done */
    WIRE_RAIL_DOWN, /* not to be used any more: struct wire_rail */
    WIRE_RAIL_SHUT, /* nothing will come out of it any more: struct wire_rail */
    WIRE_RAIL_ASK,  /* here is a new queue pair for one that is down: struct wire_rail */
    WIRE_RAIL_OPEN, /* and here is its peer: struct wire_rail */
    WIRE_RAIL_UP,   /* they are connected: struct wire_rail */
};

/* The sender of an eager message wants to know when it has been matched: struct wire_done first. */
#define WIRE_SYNCHRONOUS 1
/* Through shared memory: the rest lies in the data ring. */
#define WIRE_FAR 2

struct wire_header {
    uint32_t mark;     /* tells a full slot from an empty one */
    uint32_t length;   /* of what follows */
    uint32_t consumed; /* messages of this rail's other direction, so far */
    uint32_t sequence; /* of messages to be matched, between two processes */
    uint32_t context;
    int32_t source;
    int32_t tag;
    uint8_t type;
    uint8_t flags;
    uint16_t heard; /* messages to be matched of the other direction, so far; its lower bits */
};

struct wire_offer {
    uint64_t size;
    uint64_t cookie; /* the sender's name for it */
    uint64_t address;
    uint32_t class; /* of communication */
    uint32_t unused;
    uint32_t rkeys[DEVICES_MAX]; /* to be read with, if it is registered */
};

struct wire_accept {
    uint64_t cookie; /* the sender's */
    uint64_t size;   /* what the receiver has room for */
    uint64_t target; /* the receiver's name for it */
    uint64_t address;
    uint32_t rkeys[DEVICES_MAX];
};

struct wire_piece {
    uint64_t target;
    uint32_t index;
    uint32_t count; /* of pieces in all */
};

struct wire_fragment {
    uint64_t target;
    uint64_t offset;
};

struct wire_help {
    uint64_t cookie; /* the sender's */
    uint64_t target; /* the receiver's name for it */
    uint64_t address;
    uint64_t size; /* what the receiver has room for */
    uint64_t part;
    uint32_t claims; /* number of the message in the word of claims */
    uint32_t unused;
};

struct wire_helped {
    uint64_t target;
    uint64_t size;
    uint32_t failed; /* something that it had taken on it could not copy */
    uint32_t unused;
};

struct wire_done {
    uint64_t cookie;
};

struct wire_rail {
    uint32_t rail;
    uint32_t life;
    uint32_t qp; /* number of the queue pair, if there is a new one */
    uint32_t unused;
};

/* Bodies are this long at most, so that control messages always fit. */
#define WIRE_BODY_MAX sizeof(struct wire_accept)

#endif
