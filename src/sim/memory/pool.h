/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory of a modelled fabric. It is part of the segment, at the same address in every process.
 * Only the running vthread (sched/sched.h) allocates, so there is no lock. */
#ifndef SIM_MEMORY_POOL_H
#define SIM_MEMORY_POOL_H

#include <stdbool.h>
#include <stdint.h>

#define BLOCK_CLASSES 40

/* A free list of objects of one size. */
struct pool {
    void *free;
    uint32_t size;
    uint64_t used;
};

struct pool_memory {
    struct pool blocks[BLOCK_CLASSES]; /* by power of two */
    char *fresh;                       /* not yet in a pool */
    uint64_t fresh_left;
    bool is_private; /* all of it is the memory of one process, in 'fresh': there is no segment */
};

/* Set by sim_attach(). */
extern struct pool_memory *pool_memory;

/* Zeroed memory that is never freed. NULL if the segment is full. */
void *pool_alloc_permanent(uint64_t size);

void *pool_take(struct pool *pool);
void pool_give(struct pool *pool, void *block);

/* Blocks of any size. */
void *pool_take_block(uint64_t size);
void pool_give_block(void *block, uint64_t size);

#endif
