/* SPDX-License-Identifier: BSD-2-Clause */
/* Schedules in the Group Operation Assembly Language (GOAL; Hoefler, Siebert, Lumsdaine 2009): what
 * each rank sends, receives and calculates, and which operations require which. Two readers make
 * them, for the text and for the binary form of LogGOPSim. */
#ifndef REPLAY_GOAL_H
#define REPLAY_GOAL_H

#include "mtl/record_notes.h"
#include "rails/rails.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GOAL_ANY       UINT32_MAX /* source or tag of a receive */
#define GOAL_NONE      UINT32_MAX /* no operation */
#define GOAL_OPS_MAX   0x7fffffffu
#define GOAL_RANKS_MAX 0x7fffffffu
#define GOAL_SIZE_MAX  (1ull << 40) /* of a message: 1 TiB */

enum goal_kind { GOAL_SEND = 1, GOAL_RECV, GOAL_CALC };

struct goal_op {
    uint64_t size;  /* bytes; of a calculation: nanoseconds */
    uint64_t where; /* text: offset of its label, or of its first word */
    uint32_t peer;
    uint32_t tag;
    uint32_t waits;      /* operations that it still requires */
    uint32_t first_edge; /* of its successors, in goal_rank.edges; those of the next follow */
    uint32_t next;       /* for the user of the schedule */
    uint8_t kind;
    uint8_t cpu, nic;
    uint8_t class : 4; /* of a send: enum rails_class */
    uint8_t state : 4; /* for the user of the schedule; 0 after reading */
};

/* An edge leads to an operation that requires this one: when it is done, or when it has started. */
#define GOAL_EDGE_START 0x80000000u

/* What a recorded operation did besides. */
struct goal_note {
    uint32_t op;
    struct record_memory memory;
};

struct goal_rank {
    uint32_t count;
    uint32_t cpus;
    uint32_t note_count;
    struct goal_note *notes; /* in the order of their operations */
    struct goal_op *ops;     /* count + 1: the last one only ends the edges */
    uint32_t *edges;
};

struct goal {
    uint32_t rank_count;
    struct goal_rank *ranks;
    uint64_t ops, edges, sends;
    char *text; /* of the file; NULL: binary */
    size_t length;
    enum rails_class class; /* of sends that do not tell */
    bool connects; /* ranks connect on first use; otherwise they are connected from the beginning */
};

/* Reads a file of either form; "-" is standard input. Returns 0, or -1 with the reason, which names
 * the file, and rank and label if there are any, in 'error'. */
int goal_read(struct goal *goal, const char *path, char *error, size_t size);

/* The same for bytes in memory, which goal_free() frees. */
int goal_parse(struct goal *goal, char *bytes, size_t length, char *error, size_t size);
void goal_free(struct goal *goal);

/* NULL if there is none. */
const struct goal_note *goal_note_of(const struct goal_rank *rank, uint32_t op);

/* Describes an operation: "l3 (line 12): recv 8b from 1 tag 0". */
const char *goal_describe(const struct goal *goal, uint32_t rank, uint32_t op, char *text,
                          size_t size);

/* ---- for the readers ---- */

bool goal_is_binary(const char *bytes, size_t length);
int goal_binary_parse(struct goal *goal, const char *bytes, size_t length, char *error,
                      size_t size);
int goal_text_parse(struct goal *goal, char *error, size_t size);
uint32_t goal_text_line(const struct goal *goal, uint64_t where);
/* The length of the label or word at that offset. */
size_t goal_text_word(const struct goal *goal, uint64_t where);

/* Allocates the ranks, without operations. Returns 0, or -1 with the reason. */
int goal_make_ranks(struct goal *goal, uint64_t count, char *error, size_t size);

/* 'to' requires that 'from' is done or, with GOAL_EDGE_START in 'to', has started. */
struct goal_dependency {
    uint32_t from, to;
};

/* Sets the edges and waits of a rank whose operations are complete. Returns 0, or -1 if there are
 * too many for the memory. */
int goal_link(struct goal_rank *rank, const struct goal_dependency *dependencies, uint64_t count);

int goal_fail(char *error, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
