/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef TESTS_UNIT_TRANSPORT_PAIR_H
#define TESTS_UNIT_TRANSPORT_PAIR_H

/* Two queue pairs, a wire between them that loses, doubles, delays and damages packets, and a clock
 * that goes as fast as it can. Each end checks whatever reaches it against what its peer was told
 * to send. Everything follows from one seed. */

#include "transport/frame.h"
#include "transport/transport.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define PAIR_MEMORY_BYTES  (3u << 18)
#define PAIR_MAX_REQUESTS  2048
#define PAIR_MAX_MESSAGE   65536
#define PAIR_ADDRESS       0x7f0000000000ull /* where the peer's memory begins for the other */
#define PAIR_KEY           0x1234
#define PAIR_SRQ           0x77
#define PAIR_CELLS         4               /* words for atomics, at the beginning of memory */
#define PAIR_SCRATCH_BYTES 8192            /* then what is overwritten, then what is written once */
#define PAIR_LINK_NS       1000            /* of latency */
#define PAIR_LONG_NS       100000000000ull /* for pair_run(): longer than anything takes */

/* Chances in a thousand. */
struct pair_faults {
    unsigned drop;
    unsigned duplicate;
    unsigned reorder;
    unsigned corrupt;
};

/* A work request, what it brings back, and what it should. */
struct pair_request {
    struct transport_wqe wqe;
    uint8_t *local;    /* data to send, or the buffer of a read */
    uint8_t *expected; /* of a read */
    uint64_t original; /* of an atomic, and the one it should be */
    uint64_t expected_original;
    bool completed;
    enum transport_status status;
    uint64_t completed_at;
};

struct pair_end {
    struct transport_qp qp;
    struct responder_resource resources[RESPONDER_MAX_RESOURCES];
    struct transport_counters counters;
    struct pair *pair;
    struct pair_end *peer;
    struct pair_request requests[PAIR_MAX_REQUESTS];
    uint32_t posted;
    uint32_t completed;

    uint8_t *memory; /* the peer's to read and write */
    uint8_t *model;  /* what it will be when all is done that the peer has posted so far */
    uint8_t *placed; /* how often the peer wrote each byte */
    uint32_t written_end;

    uint64_t receive_period_ns; /* some are posted about so often; 0: there is always one */
    uint64_t next_receives_at;
    uint32_t receives;       /* posted and not taken */
    uint32_t receive_length; /* of each */
    uint32_t received;       /* messages */
    uint32_t receive_cursor; /* the peer's request that comes next, if none is lost */
    uint8_t *receive_buffer;
    uint32_t keys_invalidated;

    bool failed;
    enum transport_status why;
    uint64_t link_free_at;
    uint32_t packets_sent;
    uint32_t ack_requests_sent;
};

struct pair_frame;

struct pair {
    struct pair_end ends[2];
    struct pair_faults faults;
    bool (*lose)(struct pair_end *from, const struct packet *packet); /* NULL: leave it to chance */
    struct transport_ops ops;
    uint64_t random;
    uint64_t now;
    struct pair_frame *frames; /* on the wire, earliest first */
    bool loses_messages;       /* UC, UD: what arrives may lack something */
    bool repeats_messages;     /* UD: or come twice */
};

/* Attributes that suit both ends; tests change what they are about. */
struct transport_attributes pair_attributes(enum transport_service service);

/* Both ends get the same attributes, but each its own numbers. Free with pair_free(). */
struct pair *pair_new(uint64_t seed, const struct transport_attributes *attributes);
struct pair *pair_plain(void); /* RC, with those attributes and a perfect wire */
void pair_free(struct pair *pair);

uint32_t pair_random(struct pair *pair, uint32_t below);

/* Posts one request, and enters in the peer's model what it will do. */
struct pair_request *pair_post(struct pair_end *end, enum transport_operation operation,
                               uint32_t length);
/* The same with operation, length, fence… by chance. */
void pair_post_random(struct pair_end *end);

/* Until nothing is going to happen any more, or until that time. */
void pair_run(struct pair *pair, uint64_t until);

/* All that was posted has completed well, and every byte is where it belongs. */
void pair_check_all_done(struct pair *pair);

/* The same for what an end has completed well, when it may have failed. */
void pair_check_completed(struct pair_end *end);

#endif
