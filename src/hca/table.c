/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/table.h"

#include "hca/arena.h"
#include "hca/epoch.h"
#include "hca/proc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static _Atomic uint64_t *qp_dir(void)
{
    return seg->qp_dir;
}

static _Atomic uint64_t *srq_dir(void)
{
    return seg->srq_dir;
}

static _Atomic uint64_t *mr_dir(void)
{
    return seg->mr_dir;
}

struct table qp_table = { qp_dir, QP_CHUNKS, QP_CHUNK_SHIFT, sizeof(struct shared_qp), SEED_QP,
                          .owner = -1 };
struct table srq_table = { srq_dir, SRQ_CHUNKS, SRQ_CHUNK_SHIFT, sizeof(struct shared_srq),
                           SEED_SRQ, .owner = -1 };
struct table mr_table = { mr_dir, MR_CHUNKS, MR_CHUNK_SHIFT, sizeof(struct shared_mr), SEED_MR,
                          .owner = -1, .has_copies = true };

static bool reserve_indices(struct table *t, uint32_t more)
{
    if (t->free_count + more <= t->free_capacity)
        return true;
    uint32_t capacity = round_up_pow2(t->free_count + more);
    uint32_t *grown = realloc(t->free_indices, capacity * sizeof(*grown));
    if (!grown)
        return false;
    t->free_indices = grown;
    t->free_capacity = capacity;
    return true;
}

static int add_chunk(struct table *t)
{
    uint32_t entries = 1u << t->chunk_shift;
    uint64_t size = (uint64_t)t->entry_size * entries;

    if (!reserve_indices(t, entries))
        return ENOMEM;
    void *copy = t->has_copies ? aligned_alloc(CACHE_LINE, size) : NULL;
    if (t->has_copies && !copy)
        return ENOMEM;
    void *chunk = arena_alloc(size);
    if (!chunk) {
        int err = errno;
        free(copy);
        return err;
    }
    uint64_t first = segment_random(t->first);
    for (uint32_t tried = 0; tried < t->chunks; tried++) {
        uint32_t c = ((first >> t->chunk_shift) + tried) % t->chunks;
        uint64_t empty = 0;
        if (load_relaxed(&t->dir()[c]) ||
            !atomic_compare_exchange_strong(&t->dir()[c], &empty, seg_offset(chunk)))
            continue;
        t->own_chunks[c] = chunk;
        if (copy)
            t->own_copies[c] = memset(copy, 0, size);
        for (uint32_t i = entries; i-- > 0;) {
            uint32_t index = c << t->chunk_shift | ((first + i) & (entries - 1));
            if (index > 1) /* 0 is "none"; QP numbers 0 and 1 are the management QPs */
                t->free_indices[t->free_count++] = index;
        }
        return 0;
    }
    arena_free(chunk, size);
    free(copy);
    return ENOMEM;
}

static int start_afresh(struct table *t)
{
    if (!t->own_chunks)
        t->own_chunks = calloc(t->chunks, sizeof(*t->own_chunks));
    if (!t->own_copies && t->has_copies)
        t->own_copies = calloc(t->chunks, sizeof(*t->own_copies));
    if (!t->own_chunks || (t->has_copies && !t->own_copies))
        return ENOMEM;
    memset(t->own_chunks, 0, t->chunks * sizeof(*t->own_chunks));
    if (t->own_copies)
        memset(t->own_copies, 0, t->chunks * sizeof(*t->own_copies));
    t->free_count = 0;
    t->owner = proc_self;
    return 0;
}

void *table_alloc(struct table *t, uint32_t *index)
{
    void *entry = NULL;
    int err = 0;

    spin_lock(&t->lock);
    if (t->owner != proc_self) /* first use, or a forked child, which owns no entries */
        err = start_afresh(t);
    if (!err && !t->free_count)
        err = add_chunk(t);
    if (!err) {
        *index = t->free_indices[--t->free_count];
        entry = table_own_entry(t, *index, t->chunk_shift, t->entry_size);
    }
    spin_unlock(&t->lock);
    if (!entry)
        errno = err;
    return entry;
}

static void release_index(void *table, uint64_t index)
{
    struct table *t = table;

    spin_lock(&t->lock);
    if (t->owner == proc_self && reserve_indices(t, 1))
        t->free_indices[t->free_count++] = index;
    spin_unlock(&t->lock);
}

void table_free(struct table *t, uint32_t index)
{
    epoch_retire(release_index, t, index);
}
