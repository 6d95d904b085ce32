/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef HCA_MR_H
#define HCA_MR_H

/* Registered memory: keys, ranges, and the checks before every access. */

#include "hca/objects.h"
#include "hca/proc.h"
#include "hca/table.h"

#include <sys/uio.h>

/* Where bytes are: in a process, or in the segment (device memory). */
enum mem_kind { MEM_PROCESS, MEM_SEGMENT };

struct mem_ref {
    enum mem_kind kind;
    unsigned proc;
    uint64_t addr; /* virtual address, or offset in the segment */
    uint64_t length;
    const struct shared_mr *mr; /* NULL: in no region */
};

/*
 * These functions use the owner's private copy of each entry: a faulty peer may corrupt the entry
 * in the segment, and must not direct us to wrong memory of our own. Peers see changes once they
 * are published.
 */
struct shared_mr *mr_create(uint32_t pd, enum mr_kind kind, uint64_t addr, uint64_t iova,
                            uint64_t length, unsigned access, uint32_t *key);

/* Tell the engine about every change of a region's memory, while its key is invalid. */
void mr_attach(struct shared_mr *mr);
void mr_detach(struct shared_mr *mr);

/* Afterwards no peer accesses the memory. EBUSY: the region is unchanged, because a stopped thread
 * may still access it. */
int mr_invalidate(struct shared_mr *mr);
int mr_destroy(struct shared_mr *mr);

/* Makes the entry valid with a new tag and publishes it. */
uint32_t mr_validate(struct shared_mr *mr, uint8_t tag);
/* Makes the key invalid, without waiting for peers that use it. */
void mr_revoke_key(struct shared_mr *mr);
/* Visits every entry of this process that is or was in use. */
void mr_for_each_own(void (*visit)(struct shared_mr *mr, void *context), void *context);
/* The entry that peers see. */
struct shared_mr *mr_published(const struct shared_mr *mr);
uint8_t mr_next_tag(struct shared_mr *mr);

static inline bool mr_in_range(const struct shared_mr *mr, uint64_t addr, uint64_t length)
{
    uint64_t into = addr - mr->iova;

    return addr >= mr->iova && into <= mr->length && length <= mr->length - into;
}

static inline bool mr_locate(const struct shared_mr *mr, uint64_t addr, uint64_t length,
                             bool for_writing, struct mem_ref *ref)
{
    ref->proc = mr->proc;
    ref->addr = mr->addr + (addr - mr->iova);
    ref->length = length;
    ref->mr = mr;
    if (unlikely(mr->proc >= MAX_PROCS))
        return false;
    ref->kind = MEM_PROCESS;
    if (likely(mr->kind >= MR_USER))
        return true;
    if (mr->kind == MR_NULL) {
        ref->addr = mr->addr + (for_writing ? MR_NULL_SPAN : 0);
        return length <= MR_NULL_SPAN;
    }
    ref->kind = MEM_SEGMENT;
    return seg_at(ref->addr & ~7ull, length + (ref->addr & 7)) || !length;
}

static inline bool mr_allows_local(const struct shared_mr *mr, uint32_t pd, uint64_t addr,
                                   uint64_t length, bool for_writing)
{
    return likely(mr->pd == pd && mr->kind <= MR_USER && mr_in_range(mr, addr, length)) &&
           (!for_writing || mr->access & IBV_ACCESS_LOCAL_WRITE);
}

static inline struct shared_mr *mr_own(uint32_t key)
{
    return table_own_copy(&mr_table, key >> 8, MR_CHUNK_SHIFT, sizeof(struct shared_mr));
}

/* Checks an SGE of a queue of this process with PD `pd`. */
static inline bool mr_local(uint32_t lkey, uint32_t pd, uint64_t addr, uint64_t length,
                            bool for_writing, struct mem_ref *ref)
{
    struct shared_mr *mr = mr_own(lkey);

    return likely(mr && load_acquire(&mr->key) == lkey) && lkey &&
           mr_allows_local(mr, pd, addr, length, for_writing) &&
           mr_locate(mr, addr, length, for_writing, ref);
}

/* The number of leading bytes of a receive's SGE that its key allows to be written. */
static inline uint32_t mr_local_reach(uint32_t lkey, uint32_t pd, uint64_t addr, uint32_t length)
{
    struct shared_mr *mr = mr_own(lkey);

    if (unlikely(!mr || load_acquire(&mr->key) != lkey || !lkey))
        return 0;
    if (likely(mr_allows_local(mr, pd, addr, length, true)))
        return length;
    return mr_allows_local(mr, pd, addr, 0, true) ? mr->iova + mr->length - addr : 0;
}

/* The same as mr_local() for a queue of another process. */
bool mr_local_of(unsigned proc, uint32_t lkey, uint32_t pd, uint64_t addr, uint64_t length,
                 bool for_writing, struct mem_ref *ref);

/* Checks a remote access through QP `qpn` with PD `pd` in process `proc`. */
bool mr_remote(uint32_t rkey, unsigned proc, uint32_t pd, uint32_t qpn, uint64_t addr,
               uint64_t length, unsigned access, struct mem_ref *ref);

/* Why mr_local() or mr_remote() refuses an access, in words. */
void mr_why_local(uint32_t lkey, uint32_t pd, uint64_t addr, uint64_t length, bool for_writing,
                  char *text, size_t size);
void mr_why_remote(uint32_t rkey, unsigned proc, uint32_t pd, uint32_t qpn, uint64_t addr,
                   uint64_t length, unsigned access, char *text, size_t size);

#endif
