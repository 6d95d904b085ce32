#ifndef LIVE_PEER_H
#define LIVE_PEER_H

/* Memory of other processes (and our own, through its file) that this process has mapped. */

#include "hca/mr.h"

struct mapping {
    _Atomic uint64_t serial; /* of the share_map it was made from; 0: none */
    char *base;              /* NULL: it could not be mapped, and is not tried again */
    uint64_t start, length;  /* in the owner */
    bool writable;
    uint32_t uses;   /* before it was worth it */
    uint64_t wanted; /* what they count for */
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

/* Where the bytes are for us, inside an epoch and until its end; NULL: only the kernel gets there.
 */
static inline char *peer_address(const struct mem_ref *ref, uint64_t length, bool for_writing)
{
    uint64_t serial = ref->mr ? load_relaxed(&ref->mr->share) : 0;

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

/* Unmaps what its owner has withdrawn. Not inside an epoch. */
void peer_drop_withdrawn(void);
bool peer_maps_any(void);
/* How many were ever mapped. */
unsigned peer_maps_made(void);
/* In a forked child. */
void peer_forget(void);

#endif
