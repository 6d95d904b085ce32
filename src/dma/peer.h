/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef LIVE_PEER_H
#define LIVE_PEER_H

/* Memory of other processes (and our own, through its file) that this process maps. */

#include "hca/mr.h"

struct mapping {
    _Atomic uint64_t serial; /* of its share_map; 0: none */
    char *base;              /* NULL: mapping failed, do not retry */
    char *attached;          /* the whole System V segment that `base` is in; NULL: a file */
    uint64_t start, length;  /* in the owner */
    bool writable;
    uint32_t uses;   /* before it was mapped */
    uint64_t wanted; /* serial number that `uses` counts for */
};

extern struct mapping *_Atomic peer_mappings[MR_CHUNKS];

char *peer_map(const struct mem_ref *ref, uint64_t serial, uint64_t length, bool for_writing);

static inline char *peer_in_mapping(const struct mapping *m, uint64_t addr, uint64_t length,
                                    bool for_writing)
{
    uint64_t into = addr - m->start;

    if (unlikely(!m->base || into > m->length || length > m->length - into ||
                 (for_writing && !m->writable)))
        return NULL;
    return m->base + into;
}

/* NULL: not mapped yet. */
static inline struct mapping *peer_find_mapping(const struct shared_mr *mr, uint64_t serial)
{
    uint32_t index = mr->index;
    struct mapping *chunk = NULL, *m;

    if (likely(index >> MR_CHUNK_SHIFT < MR_CHUNKS))
        chunk = load_acquire(&peer_mappings[index >> MR_CHUNK_SHIFT]);
    if (unlikely(!chunk))
        return NULL;
    m = &chunk[index & ((1u << MR_CHUNK_SHIFT) - 1)];
    return likely(load_acquire(&m->serial) == serial) ? m : NULL;
}

/* The address of the bytes in this process, valid until the end of the epoch; NULL: not mapped. */
static inline char *peer_address(const struct mem_ref *ref, uint64_t length, bool for_writing)
{
    uint64_t serial = ref->mr ? load_acquire(&ref->mr->share) : 0;
    struct mapping *m;

    if (!serial)
        return NULL;
    m = peer_find_mapping(ref->mr, serial);
    if (likely(m))
        return peer_in_mapping(m, ref->addr, length, for_writing);
    return peer_map(ref, serial, length, for_writing);
}

/* A write `ahead` bytes behind this one will probably follow. */
static inline void peer_prefetch(const struct mem_ref *ref, int64_t ahead)
{
    uint64_t serial = ref->mr ? load_relaxed(&ref->mr->share) : 0;
    struct mapping *m = serial ? peer_find_mapping(ref->mr, serial) : NULL;
    char *at = m ? peer_in_mapping(m, ref->addr + ahead, 1, true) : NULL;

    if (at)
        prefetch_for_writing(at);
}

/* Unmaps memory that its owner has withdrawn. Do not call it inside an epoch. */
void peer_drop_withdrawn(void);
/* How many regions were ever mapped. */
unsigned peer_maps_made(void);
/* In a forked child. */
void peer_forget(void);

#endif
