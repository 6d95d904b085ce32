/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/bounce.h"

#include "hca/arena.h"
#include "hca/proc.h"

#include <stdlib.h>
#include <string.h>

#define CHUNKS_PER_PEER 8

struct bounce_note {
    uint64_t chunk;
    uint32_t block;
};

/* As a sender: the chunks that we use at each peer. */
struct pool {
    struct spinlock lock;
    uint32_t word; /* proc_word of the peer that owns the chunks */
    uint32_t chunks;
    uint32_t next; /* block to try first */
    uint64_t chunk[CHUNKS_PER_PEER];
};
static struct pool *_Atomic pools[MAX_PROCS];

/* As a receiver: the chunks in which messages have arrived. */
static struct spinlock seen_lock;
static uint64_t *seen;
static uint32_t seen_count, seen_capacity;
static _Atomic uint64_t last_seen; /* read before the lock is taken */

void bounce_forget(void)
{
    memset(pools, 0, sizeof(pools)); /* the pools belong to the parent */
    seen_count = 0;
    last_seen = 0;
}

static struct bounce_chunk *chunk_at(uint64_t offset)
{
    return seg_at(offset, sizeof(struct bounce_chunk));
}

static bool add_chunk(struct pool *pool, unsigned proc)
{
    struct bounce_chunk *chunk;

    if (pool->chunks == CHUNKS_PER_PEER)
        return false;
    chunk = arena_alloc_for(proc, sizeof(*chunk));
    if (!chunk)
        return false;
    chunk->sender = proc_word(proc_self);
    pool->next = pool->chunks * BOUNCE_BLOCKS;
    pool->chunk[pool->chunks++] = seg_offset(chunk);
    return true;
}

static struct bounce_block *try_block(struct pool *pool, struct bounce_note *note)
{
    uint32_t at = pool->next;
    struct bounce_chunk *chunk = chunk_at(pool->chunk[at / BOUNCE_BLOCKS]);

    if (!chunk || load_acquire(&chunk->blocks[at % BOUNCE_BLOCKS].busy))
        return NULL;
    pool->next = (at + 1) % (pool->chunks * BOUNCE_BLOCKS);
    note->chunk = seg_offset(chunk);
    note->block = at % BOUNCE_BLOCKS;
    store_relaxed(&chunk->blocks[note->block].busy, 1);
    return &chunk->blocks[note->block];
}

static struct pool *pool_for(unsigned proc)
{
    struct pool *pool = load_acquire(&pools[proc]);

    if (unlikely(!pool)) {
        struct pool *fresh = calloc(1, sizeof(*fresh));
        if (fresh && !atomic_compare_exchange_strong(&pools[proc], &pool, fresh))
            free(fresh);
        else
            pool = fresh;
    }
    return pool;
}

struct bounce_block *bounce_take(unsigned proc, struct cqe *entry)
{
    struct pool *pool = pool_for(proc);
    struct bounce_block *block = NULL;
    struct bounce_note note;

    if (!pool)
        return NULL;
    spin_lock(&pool->lock);
    if (pool->word != proc_word(proc)) {
        pool->word = proc_word(proc);
        pool->chunks = 0;
    }
    if (pool->chunks)
        block = try_block(pool, &note);
    if (!block && add_chunk(pool, proc))
        block = try_block(pool, &note);
    spin_unlock(&pool->lock);
    if (block)
        memcpy(entry->data, &note, sizeof(note));
    return block;
}

static void remember(uint64_t chunk)
{
    if (likely(chunk == load_relaxed(&last_seen)))
        return;
    spin_lock(&seen_lock);
    store_relaxed(&last_seen, chunk);
    uint32_t i = 0;
    while (i < seen_count && seen[i] != chunk)
        i++;
    if (i == seen_count && seen_count == seen_capacity) {
        uint32_t capacity = seen_capacity ? 2 * seen_capacity : 16;
        uint64_t *grown = realloc(seen, capacity * sizeof(*grown));
        if (grown) {
            seen = grown;
            seen_capacity = capacity;
        }
    }
    if (i == seen_count && seen_count < seen_capacity)
        seen[seen_count++] = chunk;
    spin_unlock(&seen_lock);
}

struct bounce_block *bounce_find(const struct cqe *entry)
{
    struct bounce_note note;

    memcpy(&note, entry->data, sizeof(note));
    struct bounce_chunk *chunk = chunk_at(note.chunk);
    return chunk && note.block < BOUNCE_BLOCKS ? &chunk->blocks[note.block] : NULL;
}

void bounce_return(const struct cqe *entry)
{
    struct bounce_block *block = bounce_find(entry);
    struct bounce_note note;

    if (!block)
        return;
    memcpy(&note, entry->data, sizeof(note));
    remember(note.chunk);
    store_release(&block->busy, 0);
}

static bool is_idle(struct bounce_chunk *chunk)
{
    for (unsigned i = 0; i < BOUNCE_BLOCKS; i++)
        if (load_acquire(&chunk->blocks[i].busy))
            return false;
    return true;
}

void bounce_free_abandoned(void)
{
    spin_lock(&seen_lock);
    for (uint32_t i = 0; i < seen_count;) {
        struct bounce_chunk *chunk = chunk_at(seen[i]);
        if (chunk && !proc_word_runs(chunk->sender) && is_idle(chunk)) {
            seen[i] = seen[--seen_count];
            store_relaxed(&last_seen, 0);
            arena_free(chunk, sizeof(*chunk));
        } else {
            i++;
        }
    }
    spin_unlock(&seen_lock);
}
