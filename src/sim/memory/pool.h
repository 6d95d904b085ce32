/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory of a modelled fabric: it lies in the segment, at the same address in every process, and is
 * handed out by whichever vthread runs (sched/sched.h), so nothing here takes a lock. */
#ifndef SIM_MEMORY_POOL_H
#define SIM_MEMORY_POOL_H

#include <stdint.h>

#define BLOCK_CLASSES 40

/* Objects of one size that come and go. */
struct pool {
    void *free;
    uint32_t size;
    uint64_t used;
};

struct pool_memory {
    struct pool blocks[BLOCK_CLASSES]; /* by powers of two */
    char *fresh;                       /* not yet given to a pool */
    uint64_t fresh_left;
};

/* Set by whoever attaches this process to the modelled fabric. */
extern struct pool_memory *pool_memory;

/* Zeroed memory that is never freed. NULL if the segment is full. */
void *pool_alloc_permanent(uint64_t size);

void *pool_take(struct pool *pool);
void pool_give(struct pool *pool, void *block);

/* Blocks of any size. */
void *pool_take_block(uint64_t size);
void pool_give_block(void *block, uint64_t size);

#endif
