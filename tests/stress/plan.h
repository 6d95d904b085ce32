/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A run depends only on its seed: which processes communicate, over which transport, and the
 * endless sequence of operations in each direction. Both ends of a link derive the same sequence,
 * so a receiver knows every byte before it arrives.
 */
#ifndef TESTS_STRESS_PLAN_H
#define TESTS_STRESS_PLAN_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#define MAX_PROCS       8
#define MAX_LINKS       24
#define MAX_SGE         4
#define WRITES_PER_RECV 3
#define LANDING_SLOT    2048u
#define FADD_CELLS      4
#define HEADER_BYTES    8u

enum transport { TRANSPORT_RC, TRANSPORT_UC, TRANSPORT_UD, TRANSPORT_XRC, TRANSPORT_COUNT };
extern const char *const transport_name[TRANSPORT_COUNT];

struct plan_side {
    int proc;
    uint32_t sq_depth;
    uint32_t rq_depth;
    bool use_srq;
    uint32_t ops;
    uint8_t send_cq;
    uint8_t recv_cq;
};

struct plan_link {
    int index;
    enum transport transport;
    uint32_t max_len;
    bool lossy; /* UC and UD without flow control: a message may find no receive */
    struct plan_side side[2];
};

struct plan_proc {
    int cqs;
    bool events;
    bool churn;
    bool mapped_memory;
    uint32_t srq_depth;
    uint32_t srq_len;
    uint32_t xrc_srq_depth;
    uint32_t xrc_srq_len;
};

struct plan {
    uint64_t seed;
    bool with_kills;
    int procs;
    int links;
    struct plan_proc proc[MAX_PROCS];
    struct plan_link link[MAX_LINKS];
};

enum op_kind {
    OP_SEND,
    OP_SEND_IMM,
    OP_WRITE,
    OP_WRITE_IMM,
    OP_READ,
    OP_READ_BACK,
    OP_CAS,
    OP_FADD,
    OP_KINDS
};
extern const char *const op_name[OP_KINDS];

struct op {
    enum op_kind kind;
    uint32_t seq;
    uint32_t recv_seq; /* which receive of the peer it consumes */
    uint32_t len;
    uint32_t imm;
    int num_sge;
    uint32_t cut[MAX_SGE];
    bool inline_data;
    bool signalled;
    bool own_mr;
    bool fence;
    bool to_big; /* a write into the big area instead of a landing slot */
    uint32_t slot;
    uint32_t payload_seq;
    uint32_t read_offset;
    uint64_t compare;
    uint64_t swap;
    bool cas_matches;
    int cell;
    uint64_t add;
};

/* Iterates over the operations in one direction of a link. */
struct op_walk {
    const struct plan_link *link;
    int side;
    uint64_t key;
    uint32_t seq;
    uint32_t recv_seq;
    uint32_t writes;
    uint32_t slots;
    uint32_t since_recv;
    bool read_back_unfenced;
    uint32_t last_slot;
    uint32_t last_slot_len;
    uint32_t last_slot_payload;
    uint32_t big_len;
    uint32_t big_payload;
    uint64_t cas_value;
};

void plan_make(struct plan *plan, uint64_t seed, int procs, uint32_t ops);
void plan_print(const struct plan *plan);

uint32_t plan_landing_slots(const struct plan *plan, const struct plan_link *link, int receiver);
uint32_t plan_read_bytes(const struct plan_link *link);
uint64_t plan_read_key(const struct plan *plan, const struct plan_link *link, int owner);

void walk_start(struct op_walk *walk, const struct plan *plan, const struct plan_link *link,
                int side);
bool walk_next(struct op_walk *walk, struct op *op);
bool op_consumes_receive(const struct op *op);
bool op_moves_payload(const struct op *op);
/* Unreliable messages carry their sequence number, for a receiver that may have missed some. */
bool link_carries_header(const struct plan_link *link);

void payload_fill(uint64_t key, uint32_t seq, uint32_t offset, void *buf, uint32_t len);
/* The offset of the first wrong byte, or -1. */
int64_t payload_check(uint64_t key, uint32_t seq, uint32_t offset, const void *buf, uint32_t len);

#endif
