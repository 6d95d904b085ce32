/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fast path of RDMA writes: one SGE of a few words, between RC queue pairs of two processes, into
 * memory that this process maps.
 *
 * It checks what wqe.c checks, in one go. Everything else uses the general path, which also maps the
 * memory, and reports errors.
 */

#include "live/live.h"

#include "dma/peer.h"
#include "hca/epoch.h"
#include "hca/observer.h"
#include "hca/proc.h"
#include "hca/qp.h"

/* A program learns that its peer is dead from a completion: without one, there is no need to look. */
static bool may_be_alive(unsigned proc, unsigned flags)
{
    return !(flags & IBV_SEND_SIGNALED) || proc_alive(proc);
}

static struct shared_mr *find_region(const struct shared_qp *peer, const struct ibv_send_wr *wr)
{
    struct shared_mr *mr = shared_mr_find(wr->wr.rdma.rkey);

    if (unlikely(!mr || mr->kind != MR_USER || mr->proc != peer->proc ||
                 (int)mr->proc == proc_self || mr->pd != peer->pd ||
                 !(mr->access & load_relaxed(&peer->access) & IBV_ACCESS_REMOTE_WRITE) ||
                 !mr_in_range(mr, wr->wr.rdma.remote_addr, wr->sg_list->length) ||
                 !load_relaxed(&mr->touched)))
        return NULL;
    return mr;
}

static const char *source_of(const struct hca_qp *qp, const struct ibv_sge *sge, unsigned flags)
{
    struct mem_ref ref;

    if (flags & IBV_SEND_INLINE)
        return (const char *)sge->addr;
    if (!mr_local(sge->lkey, qp->pd->id, sge->addr, sge->length, false, &ref) ||
        ref.kind != MEM_PROCESS || load_relaxed(&ref.mr->unmapped))
        return NULL;
    return (const char *)ref.addr;
}

typedef uint64_t __attribute__((may_alias, aligned(1))) any_uint64;

/* Programs poll the last byte, so the last word is written last. No load is wider than a word: a program
 * that has just written words would make such a load wait until they have left the processor. */
static void copy_words(char *to, const char *from, uint32_t length)
{
    volatile any_uint64 *words = (any_uint64 *)to;
    const volatile any_uint64 *source = (const any_uint64 *)from;
    uint32_t last = length / sizeof(*words) - 1;

    for (uint32_t i = 0; i < last; i++)
        words[i] = source[i];
    atomic_thread_fence(memory_order_release);
    words[last] = source[last];
}

static bool write_mapped(struct hca_qp *qp, const struct ibv_send_wr *wr, unsigned flags)
{
    const struct ibv_sge *sge = wr->sg_list;
    struct shared_qp *peer = wqe_find_peer(qp);
    struct shared_mr *mr = peer ? find_region(peer, wr) : NULL;
    const char *from = source_of(qp, sge, flags);
    int64_t ahead = wr->wr.rdma.remote_addr - qp->last_write;
    uint64_t addr, serial;
    struct mapping *m;
    char *to, *next;

    if (unlikely(!mr || !from))
        return false;
    addr = mr->addr + (wr->wr.rdma.remote_addr - mr->iova);
    serial = load_acquire(&mr->share);
    m = serial ? peer_find_mapping(mr, serial) : NULL;
    to = m ? peer_in_mapping(m, addr, sge->length, true) : NULL;
    if (unlikely(!to || (uintptr_t)to % sizeof(any_uint64) || !may_be_alive(mr->proc, flags)))
        return false;
    qp->last_write = wr->wr.rdma.remote_addr;
    next = peer_in_mapping(m, addr + 2 * ahead, 1, true);
    if (next)
        prefetch_for_writing(next);
    copy_words(to, from, sge->length);
    count_short_write(qp, peer, sge->length);
    return true;
}

bool write_fast(struct hca_qp *qp, const struct ibv_send_wr *wr, unsigned flags)
{
    uint32_t length = wr->sg_list->length;
    bool done;

    if (unlikely(hca_observer || !length || length > LIVE_SHORT_WRITE || length % sizeof(any_uint64)))
        return false;
    epoch_enter();
    done = write_mapped(qp, wr, flags);
    epoch_exit();
    return done;
}
