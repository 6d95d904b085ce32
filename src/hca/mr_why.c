/* SPDX-License-Identifier: BSD-2-Clause */
/* Why a key does not allow an access, in words. */

#include "hca/mr.h"

#include <stdio.h>

static void name_access(unsigned access, char *text, size_t size)
{
    static const struct {
        unsigned flag;
        const char *name;
    } names[] = {
        { IBV_ACCESS_LOCAL_WRITE, "LOCAL_WRITE" },
        { IBV_ACCESS_REMOTE_WRITE, "REMOTE_WRITE" },
        { IBV_ACCESS_REMOTE_READ, "REMOTE_READ" },
        { IBV_ACCESS_REMOTE_ATOMIC, "REMOTE_ATOMIC" },
        { IBV_ACCESS_MW_BIND, "MW_BIND" },
    };
    size_t used = 0;

    snprintf(text, size, "local reading only");
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (access & names[i].flag && used < size)
            used += snprintf(text + used, size - used, "%s%s", used ? ", " : "", names[i].name);
    }
}

static void why_not(const struct shared_mr *mr, uint32_t pd, uint64_t addr, uint64_t length,
                    unsigned access, char *text, size_t size)
{
    unsigned long long first = mr->iova, last = mr->iova + mr->length, end = addr + length;
    char allowed[96], wanted[96];

    name_access(mr->access, allowed, sizeof(allowed));
    name_access(access, wanted, sizeof(wanted));
    if (mr->pd != pd)
        snprintf(text, size, "the region belongs to PD %u, the QP to PD %u", mr->pd, pd);
    else if (!mr_in_range(mr, addr, length) && addr >= first && addr < last)
        snprintf(text, size, "the region ends at 0x%llx, %llu bytes before the end of the access",
                 last, end - last);
    else if (!mr_in_range(mr, addr, length))
        snprintf(text, size, "the region is 0x%llx to 0x%llx", first, last);
    else if ((mr->access & access) != access)
        snprintf(text, size, "the access needs %s, the region allows %s", wanted, allowed);
    else
        snprintf(text, size, "the key has become valid since");
}

void mr_why_local(uint32_t lkey, uint32_t pd, uint64_t addr, uint64_t length, bool for_writing,
                  char *text, size_t size)
{
    struct shared_mr *mr = mr_own(lkey);

    if (!mr || !lkey || load_acquire(&mr->key) != lkey)
        snprintf(text, size, "no region of this process has this lkey");
    else if (mr->kind > MR_USER)
        snprintf(text, size, "the key is that of a memory window, which has no lkey");
    else
        why_not(mr, pd, addr, length, for_writing ? IBV_ACCESS_LOCAL_WRITE : 0, text, size);
}

void mr_why_remote(uint32_t rkey, unsigned proc, uint32_t pd, uint32_t qpn, uint64_t addr,
                   uint64_t length, unsigned access, char *text, size_t size)
{
    const struct shared_mr *mr = shared_mr_find(rkey);

    if (!mr)
        snprintf(text, size, "no region of the responder has this rkey");
    else if (mr->proc != proc)
        snprintf(text, size, "the key belongs to process %d, the QP to process %d",
                 mr->proc < MAX_PROCS ? proc_slot(mr->proc)->pid : 0, proc_slot(proc)->pid);
    else if (mr->kind == MW_TYPE_2 && mr->bound_qpn != qpn)
        snprintf(text, size, "the memory window is bound to QP 0x%x", mr->bound_qpn);
    else
        why_not(mr, pd, addr, length, access, text, size);
}
