#include "hca/mr.h"

#include "hca/epoch.h"
#include "hca/proc.h"

#include <errno.h>

uint8_t mr_next_tag(struct shared_mr *mr)
{
    return ++mr->next_tag;
}

uint32_t mr_validate(struct shared_mr *mr, uint8_t tag)
{
    uint32_t key = mr->index << 8 | tag;

    mr->next_tag = tag;
    store_release(&mr->key, key);
    return key;
}

struct shared_mr *mr_create(uint32_t pd, enum mr_kind kind, uint64_t addr, uint64_t iova,
                            uint64_t length, unsigned access, uint32_t *key)
{
    uint32_t index;
    struct shared_mr *mr = table_alloc(&mr_table, &index);

    if (!mr)
        return NULL;
    mr->index = index;
    mr->pd = pd;
    mr->kind = kind;
    mr->addr = addr;
    mr->iova = iova;
    mr->length = length;
    mr->access = access;
    mr->proc = proc_self;
    mr->bound_qpn = 0;
    store_relaxed(&mr->touched, 0);
    *key = mr_validate(mr, mr_next_tag(mr));
    return mr;
}

/* A peer sets `touched` before it looks at the key again, we clear the key before we look at
 * `touched`: either it sees the key gone, or we see that there is somebody to wait for. */
void mr_invalidate(struct shared_mr *mr)
{
    atomic_store(&mr->key, 0);
    if (atomic_load(&mr->touched))
        epoch_grace();
}

void mr_destroy(struct shared_mr *mr)
{
    mr_invalidate(mr);
    mr->kind = MR_NONE;
    table_free(&mr_table, mr->index);
}

static bool mark_touched(struct shared_mr *mr, uint32_t key)
{
    if (likely(load_relaxed(&mr->touched)))
        return true;
    atomic_store(&mr->touched, 1);
    return atomic_load(&mr->key) == key;
}

bool mr_local_of(unsigned proc, uint32_t lkey, uint32_t pd, uint64_t addr, uint64_t length,
                 bool for_writing, struct place *place)
{
    struct shared_mr *mr = shared_mr_find(lkey);

    return mr && mr->proc == proc && mr_allows_local(mr, pd, addr, length, for_writing) &&
           ((int)proc == proc_self || mark_touched(mr, lkey)) &&
           mr_locate(mr, addr, length, place);
}

bool mr_remote(uint32_t rkey, unsigned proc, uint32_t pd, uint32_t qpn, uint64_t addr,
               uint64_t length, unsigned access, struct place *place)
{
    struct shared_mr *mr = shared_mr_find(rkey);

    if (!mr || mr->proc != proc || mr->pd != pd || (mr->access & access) != access ||
        !mr_in_range(mr, addr, length))
        return false;
    if (mr->kind == MW_TYPE_2 && mr->bound_qpn != qpn)
        return false;
    if ((int)proc != proc_self && !mark_touched(mr, rkey))
        return false;
    return mr_locate(mr, addr, length, place);
}
