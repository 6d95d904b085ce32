/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/memory/pool.h"

#include "hca/arena.h"
#include "util/util.h"

#include <string.h>

#define FRESH_BYTES    (1u << 20)
#define SMALLEST_BLOCK 6 /* 64 bytes */
#define SMALL          512 /* bytes: objects below are made SMALL_AT_ONCE at a time */
#define SMALL_AT_ONCE  8

struct pool_memory *pool_memory;

void *pool_alloc_permanent(uint64_t size)
{
    void *memory;

    size = round_up(size, 64);
    if (size > FRESH_BYTES / 4 && !pool_memory->is_private)
        return arena_alloc_permanent(size);
    if (pool_memory->fresh_left < size) {
        memory = pool_memory->is_private ? NULL : arena_alloc_permanent(FRESH_BYTES);
        if (!memory)
            return NULL;
        pool_memory->fresh = memory;
        pool_memory->fresh_left = FRESH_BYTES;
    }
    memory = pool_memory->fresh;
    pool_memory->fresh += size;
    pool_memory->fresh_left -= size;
    return memory;
}

/* Small objects are side by side, and only the first of them begins a cache line. */
static bool make_objects(struct pool *pool)
{
    uint32_t count = pool->size < SMALL ? SMALL_AT_ONCE : 1;
    char *objects = pool_alloc_permanent((uint64_t)count * pool->size);

    if (!objects)
        return false;
    pool->used += count;
    while (count-- > 0)
        pool_give(pool, objects + (uint64_t)count * pool->size);
    return true;
}

void *pool_take(struct pool *pool)
{
    void *block;

    if (unlikely(!pool->free) && !make_objects(pool))
        return NULL;
    block = pool->free;
    memcpy(&pool->free, block, sizeof(void *));
    pool->used++;
    return block;
}

void pool_give(struct pool *pool, void *block)
{
    memcpy(block, &pool->free, sizeof(void *));
    pool->free = block;
    pool->used--;
}

static struct pool *block_class(uint64_t size)
{
    unsigned int class = SMALLEST_BLOCK;

    while ((1ull << class) < size)
        class ++;
    pool_memory->blocks[class].size = 1u << class;
    return &pool_memory->blocks[class];
}

void *pool_take_block(uint64_t size)
{
    return pool_take(block_class(size));
}

void pool_give_block(void *block, uint64_t size)
{
    pool_give(block_class(size), block);
}
