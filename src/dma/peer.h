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

/* The address of the bytes in this process, valid until the end of the epoch; NULL: not mapped. */
static inline char *peer_address(const struct mem_ref *ref, uint64_t length, bool for_writing)
{
    uint64_t serial = ref->mr ? load_acquire(&ref->mr->share) : 0;

    if (!serial)
        return NULL;
    uint32_t index = ref->mr->index;
    struct mapping *chunk = NULL;
    if (likely(index >> MR_CHUNK_SHIFT < MR_CHUNKS))
        chunk = load_acquire(&peer_mappings[index >> MR_CHUNK_SHIFT]);
    if (likely(chunk)) {
        struct mapping *m = &chunk[index & ((1u << MR_CHUNK_SHIFT) - 1)];
        if (likely(load_acquire(&m->serial) == serial))
            return peer_in_mapping(m, ref->addr, length, for_writing);
    }
    return peer_map(ref, serial, length, for_writing);
}

/* Unmaps memory that its owner has withdrawn. Do not call it inside an epoch. */
void peer_drop_withdrawn(void);
bool peer_maps_any(void);
/* How many regions were ever mapped. */
unsigned peer_maps_made(void);
/* In a forked child. */
void peer_forget(void);

#endif
