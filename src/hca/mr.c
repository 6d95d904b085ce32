/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/mr.h"

#include "hca/engine.h"
#include "hca/epoch.h"
#include "hca/proc.h"

#include <errno.h>

uint8_t mr_next_tag(struct shared_mr *mr)
{
    return ++mr->next_tag;
}

struct shared_mr *mr_published(const struct shared_mr *mr)
{
    return table_own_entry(&mr_table, mr->index, MR_CHUNK_SHIFT, sizeof(*mr));
}

uint32_t mr_validate(struct shared_mr *mr, uint8_t tag)
{
    uint32_t key = mr->index << 8 | tag;
    struct shared_mr *entry = mr_published(mr);

    mr->next_tag = tag;
    entry->access = mr->access;
    entry->iova = mr->iova;
    entry->addr = mr->addr;
    entry->length = mr->length;
    entry->pd = mr->pd;
    entry->proc = mr->proc;
    entry->kind = mr->kind;
    entry->bound_qpn = mr->bound_qpn;
    entry->index = mr->index;
    store_relaxed(&entry->share, load_relaxed(&mr->share));
    store_release(&mr->key, key);
    store_release(&entry->key, key);
    return key;
}

void mr_attach(struct shared_mr *mr)
{
    store_relaxed(&mr->unmapped, 0);
    if (mr->kind == MR_USER && hca_engine->attach_memory)
        hca_engine->attach_memory(mr);
}

void mr_detach(struct shared_mr *mr)
{
    if (mr->kind == MR_USER && hca_engine->detach_memory)
        hca_engine->detach_memory(mr);
}

struct shared_mr *mr_create(uint32_t pd, enum mr_kind kind, uint64_t addr, uint64_t iova,
                            uint64_t length, unsigned access, uint32_t *key)
{
    uint32_t index;
    struct shared_mr *entry = table_alloc(&mr_table, &index);

    if (!entry)
        return NULL;
    struct shared_mr *mr = mr_own(index << 8);
    mr->index = index;
    mr->pd = pd;
    mr->kind = kind;
    mr->addr = addr;
    mr->iova = iova;
    mr->length = length;
    mr->access = access;
    mr->proc = proc_self;
    mr->bound_qpn = 0;
    store_relaxed(&mr->share, 0);
    store_relaxed(&entry->touched, 0);
    mr_attach(mr);
    *key = mr_validate(mr, mr_next_tag(mr));
    return mr;
}

void mr_revoke_key(struct shared_mr *mr)
{
    store_relaxed(&mr->key, 0);
    atomic_store(&mr_published(mr)->key, 0);
}

/* A peer sets `touched` before it checks the key again; we clear the key before we read `touched`.
 * So either the peer sees the invalid key, or we see that we must wait for a peer. */
int mr_invalidate(struct shared_mr *mr)
{
    uint32_t key = load_relaxed(&mr->key);

    mr_revoke_key(mr);
    if (!atomic_load(&mr_published(mr)->touched) || epoch_grace())
        return 0;
    if (key)
        mr_validate(mr, key);
    return EBUSY;
}

int mr_destroy(struct shared_mr *mr)
{
    int err = mr_invalidate(mr);

    if (err)
        return err;
    mr_detach(mr);
    mr->kind = MR_NONE;
    table_free(&mr_table, mr->index);
    return 0;
}

void mr_for_each_own(void (*visit)(struct shared_mr *mr, void *context), void *context)
{
    if (!mr_table.own_copies || mr_table.owner != proc_self)
        return;
    for (uint32_t c = 0; c < MR_CHUNKS; c++) {
        struct shared_mr *chunk = (struct shared_mr *)mr_table.own_copies[c];
        for (uint32_t i = 0; chunk && i < 1u << MR_CHUNK_SHIFT; i++)
            visit(&chunk[i], context);
    }
}

static bool mark_touched(struct shared_mr *mr, uint32_t key)
{
    if (likely(load_relaxed(&mr->touched)))
        return true;
    atomic_store(&mr->touched, 1);
    return atomic_load(&mr->key) == key;
}

bool mr_local_of(unsigned proc, uint32_t lkey, uint32_t pd, uint64_t addr, uint64_t length,
                 bool for_writing, struct mem_ref *ref)
{
    if ((int)proc == proc_self)
        return mr_local(lkey, pd, addr, length, for_writing, ref);
    struct shared_mr *mr = shared_mr_find(lkey);

    return mr && mr->proc == proc && mr_allows_local(mr, pd, addr, length, for_writing) &&
           mark_touched(mr, lkey) && mr_locate(mr, addr, length, for_writing, ref);
}

bool mr_remote(uint32_t rkey, unsigned proc, uint32_t pd, uint32_t qpn, uint64_t addr,
               uint64_t length, unsigned access, struct mem_ref *ref)
{
    struct shared_mr *mr = shared_mr_find(rkey);

    if (mr && (int)proc == proc_self) {
        mr = mr_own(rkey); /* a peer may only have invalidated the published entry */
        if (mr && load_relaxed(&mr->key) != rkey)
            return false;
    }
    if (!mr || mr->proc != proc || mr->pd != pd || (mr->access & access) != access ||
        !mr_in_range(mr, addr, length))
        return false;
    if (mr->kind == MW_TYPE_2 && mr->bound_qpn != qpn)
        return false;
    if ((int)proc != proc_self && !mark_touched(mr, rkey))
        return false;
    return mr_locate(mr, addr, length, false, ref); /* no null region grants remote access */
}
