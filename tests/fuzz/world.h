/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The objects of the fuzzed calls: a few of every kind, memory that may be overwritten, and a
 * bystander, a connection that no hostile call may affect.
 */
#ifndef TESTS_FUZZ_WORLD_H
#define TESTS_FUZZ_WORLD_H

#include "rig.h"

#define POOL        6
#define ARENA_BYTES (1u << 20)
#define ROOM_BYTES                                                                \
    (16ull << 30) /* reserved behind the arena: wild ranges fault, nothing is hit \
                   */
#define SGE_ROOM 320

struct input {
    const uint8_t *data;
    size_t size;
};

bool input_done(const struct input *in);
uint8_t take8(struct input *in);
uint32_t take32(struct input *in);
uint64_t take64(struct input *in);
void take_bytes(struct input *in, void *out, size_t len);
/* Values that often reveal bugs: small, powers of two, extremes, or any. */
uint32_t take_edge(struct input *in);

/* A queue pair can be destroyed only after it has left its groups. */
struct membership {
    struct ibv_qp *qp;
    union ibv_gid gid;
    uint16_t lid;
};

#define MEMBERSHIPS 64

struct world {
    struct rig rig;
    uint8_t *arena;
    struct ibv_comp_channel *channel;
    struct ibv_pd *pd[POOL];
    struct ibv_mr *mr[POOL];
    struct ibv_cq *cq[POOL];
    struct ibv_cq_ex *cq_ex[POOL]; /* the same as cq[i] where it was made by ibv_create_cq_ex */
    struct ibv_srq *srq[POOL];
    struct ibv_qp *qp[POOL];
    struct ibv_qp_ex *qp_ex[POOL];
    struct ibv_ah *ah[POOL];
    struct ibv_mw *mw[POOL];
    struct ibv_dm *dm[POOL];
    struct ibv_xrcd *xrcd[POOL];
    struct membership group[MEMBERSHIPS];
    int groups;
};

void world_begin(struct world *world);
void world_end(struct world *world);
void bystander_check(void);

/* An object of the pool, or NULL if the chosen slot is empty. */
#define PICK(world, kind, in) ((world)->kind[take8(in) % POOL])

uint64_t wild_address(struct world *world, struct input *in);
uint64_t wild_length(struct input *in);
uint32_t wild_key(struct world *world, struct input *in, bool remote);

/* Prints the violation and aborts, so that the fuzzer keeps the input. */
void violated(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

/* One call with arguments from the input. */
typedef void (*action_fn)(struct world *world, struct input *in);

struct action {
    const char *name;
    action_fn run;
};

extern const struct action object_actions[];
extern const size_t object_action_count;
extern const struct action data_actions[];
extern const size_t data_action_count;

#endif
