/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/shared.h"

#include "hca/arena.h"
#include "hca/proc.h"
#include "hca/shm_lock.h"

#include <errno.h>

struct shared_root *shared_root;

static struct shared_root *find_root(void)
{
    uint64_t offset = load_acquire(&seg->cm_root);

    if (!offset) {
        struct shared_root *created = arena_alloc_permanent(sizeof(*created));
        if (!created)
            return NULL;
        if (atomic_compare_exchange_strong(&seg->cm_root, &offset, seg_offset(created)))
            return created;
    }
    return seg_at(offset, sizeof(struct shared_root));
}

int shared_attach(void)
{
    int err;

    if (shared_root && proc_self >= 0)
        return 0;
    if ((err = segment_attach()))
        return err;
    if (!(shared_root = find_root()))
        return ENOMEM;
    shared_lock();
    mailbox_reset();
    shared_unlock();
    return 0;
}

void shared_forget(void)
{
    shared_root = NULL;
}

void shared_lock(void)
{
    shm_lock(&shared_root->lock);
}

void shared_unlock(void)
{
    shm_unlock(&shared_root->lock);
}
