/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef HCA_TABLE_H
#define HCA_TABLE_H

/*
 * Objects that peers find by number: queue pairs, shared receive queues, memory keys. A directory
 * in the segment points to chunks; each chunk belongs to one process, which allocates its entries.
 */

#include "hca/segment.h"
#include "util/spinlock.h"

struct table {
    _Atomic uint64_t *(*dir)(void);
    uint32_t chunks;
    uint32_t chunk_shift;
    uint32_t entry_size;
    enum seed_purpose first; /* seed of the first number */
    struct spinlock lock;
    uint32_t *free_indices;
    uint32_t free_count, free_capacity;
    int owner;         /* process slot that the free indices belong to */
    char **own_chunks; /* by chunk number; NULL: not ours */
    bool has_copies;
    char **own_copies; /* private copies of own chunks, which no peer can change */
};

extern struct table qp_table, srq_table, mr_table;

/* Returns the entry and its index (never 0), or NULL with errno. */
void *table_alloc(struct table *t, uint32_t *index);
void table_free(struct table *t, uint32_t index);

/* An entry of this process, or NULL. */
static inline void *table_own_entry(const struct table *t, uint32_t index, uint32_t chunk_shift,
                                    uint32_t entry_size)
{
    uint32_t chunk = index >> chunk_shift;

    if (unlikely(chunk >= t->chunks || !t->own_chunks || !t->own_chunks[chunk]))
        return NULL;
    return t->own_chunks[chunk] + (uint64_t)(index & ((1u << chunk_shift) - 1)) * entry_size;
}

/* The private copy of an entry of this process, or NULL. */
static inline void *table_own_copy(const struct table *t, uint32_t index, uint32_t chunk_shift,
                                   uint32_t entry_size)
{
    uint32_t chunk = index >> chunk_shift;

    if (unlikely(chunk >= t->chunks || !t->own_copies || !t->own_copies[chunk]))
        return NULL;
    return t->own_copies[chunk] + (uint64_t)(index & ((1u << chunk_shift) - 1)) * entry_size;
}

static inline void *table_entry(_Atomic uint64_t *dir, uint32_t index, uint32_t chunk_shift,
                                uint32_t chunks, uint32_t entry_size)
{
    uint32_t chunk = index >> chunk_shift;

    if (unlikely(chunk >= chunks))
        return NULL;
    char *base = seg_at(load_acquire(&dir[chunk]), (uint64_t)entry_size << chunk_shift);
    return base ? base + (uint64_t)(index & ((1u << chunk_shift) - 1)) * entry_size : NULL;
}

static inline struct shared_qp *shared_qp_find(uint32_t qpn)
{
    struct shared_qp *qp = table_entry(seg->qp_dir, qpn & ((1u << QP_INDEX_BITS) - 1),
                                       QP_CHUNK_SHIFT, QP_CHUNKS, sizeof(struct shared_qp));

    return qp && load_acquire(&qp->qpn) == qpn && qpn ? qp : NULL;
}

static inline struct shared_srq *shared_srq_find(uint32_t srqn)
{
    struct shared_srq *srq = table_entry(seg->srq_dir, srqn & ((1u << SRQ_INDEX_BITS) - 1),
                                         SRQ_CHUNK_SHIFT, SRQ_CHUNKS, sizeof(struct shared_srq));

    return srq && load_acquire(&srq->srqn) == srqn && srqn ? srq : NULL;
}

static inline struct shared_mr *shared_mr_find(uint32_t key)
{
    struct shared_mr *mr = table_entry(seg->mr_dir, key >> 8, MR_CHUNK_SHIFT, MR_CHUNKS,
                                       sizeof(struct shared_mr));

    return mr && load_acquire(&mr->key) == key && key ? mr : NULL;
}

#endif
