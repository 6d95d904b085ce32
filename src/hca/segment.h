/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef HCA_SEGMENT_H
#define HCA_SEGMENT_H

/* The shared-memory segment of a fabric: finding, creating, mapping and leaving it. */

#include "hca/layout.h"

struct fabric_config {
    char name[65];
    char dir[256];
    unsigned nodes, node, devices, ports;
    unsigned seed; /* 0: choose one at random */
};

extern struct segment *seg;
extern uint64_t seg_limit;         /* bytes that are mapped */
extern _Atomic uint64_t seg_known; /* known size of the file, which only grows */

/* Checks whether the file has grown to that size. */
bool segment_reaches(uint64_t end);

/* Reads VERBENA_*. EINVAL: a value is invalid, and was logged. */
int segment_read_config(struct fabric_config *config);

/* Idempotent. Returns 0 or an errno value, with the reason logged. */
int segment_attach(void);
const struct fabric_config *segment_config(void);
const char *segment_path(void);

/* Reserves memory for the slots of the first `count` processes. Returns 0 or an errno value, with the
 * reason logged. Call it before seg->proc_high is raised. */
int segment_reserve_procs(unsigned count);
/* Of struct segment, what is reserved so far. */
uint64_t segment_head_bytes(void);

/* Numbers whose first value is random in each fabric. */
enum seed_purpose {
    SEED_LID,
    SEED_GUID,
    SEED_QP_GENERATION,
    SEED_QP,
    SEED_SRQ,
    SEED_MR,
    SEED_WIRE_TOKEN,
};
/* Depends only on the fabric's seed and the purpose. */
uint64_t segment_random(enum seed_purpose purpose);

/* A descriptor of the segment, reopened if the program has closed it; -1 with errno. */
int segment_fd(void);
/* A new open file of the segment; -1 with errno. */
int segment_open_again(void);

/* A pointer to `size` bytes at `offset`, or NULL if that is outside the file or misaligned. */
static inline void *seg_at(uint64_t offset, uint64_t size)
{
    if (unlikely(offset < sizeof(struct segment) || offset >= seg_limit ||
                 size > seg_limit - offset || (offset & 7)))
        return NULL;
    if (unlikely(offset + size > load_relaxed(&seg_known)) && !segment_reaches(offset + size))
        return NULL;
    return (char *)seg + offset;
}

static inline uint64_t seg_offset(const void *ptr)
{
    return (const char *)ptr - (const char *)seg;
}

#endif
