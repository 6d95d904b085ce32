/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fast path of RDMA writes: one SGE of a few words, between RC queue pairs of two processes, into
 * memory that this process maps.
 *
 * It does what wqe.c does, without the look-ups: their results are cached in the QP, and are valid
 * while the entries of the peer and of the region are unchanged. Everything else uses the general
 * path, which also maps the memory, and reports errors.
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

static uint64_t mr_chunk_of(uint32_t rkey)
{
    return load_acquire(&seg->mr_dir[rkey >> 8 >> MR_CHUNK_SHIFT]);
}

static bool peer_holds(const struct hca_qp *qp)
{
    const struct write_route *r = &qp->write_route;
    const struct shared_qp *peer = r->peer;

    return peer && wqe_chunk_of(r->dest_qpn) == r->qp_chunk &&
           load_acquire(&peer->qpn) == r->dest_qpn &&
           load_relaxed(&peer->dest_qpn) == qp->ibv.qp_num &&
           load_relaxed(&peer->lid) == qp->dest_lid &&
           load_acquire(&peer->state) - IBV_QPS_RTR <= IBV_QPS_SQE - IBV_QPS_RTR &&
           load_relaxed(&peer->access) & IBV_ACCESS_REMOTE_WRITE && !load_relaxed(&seg->ports_down);
}

static bool route_holds(const struct hca_qp *qp, uint32_t rkey)
{
    const struct write_route *r = &qp->write_route;

    return peer_holds(qp) && r->rkey == rkey && mr_chunk_of(rkey) == r->mr_chunk &&
           load_acquire(&r->mr->key) == rkey && load_acquire(&r->mr->share) == r->serial &&
           load_acquire(&r->mapping->serial) == r->serial;
}

static const struct shared_mr *find_region(const struct shared_qp *peer, uint32_t rkey)
{
    const struct shared_mr *mr = shared_mr_find(rkey);

    if (!mr || mr->kind != MR_USER || mr->proc != peer->proc || (int)mr->proc == proc_self ||
        mr->pd != peer->pd || !(mr->access & IBV_ACCESS_REMOTE_WRITE) ||
        !load_relaxed(&mr->touched))
        return NULL;
    return mr;
}

/* What the region and its mapping have in common. */
static void set_memory(struct write_route *r)
{
    const struct shared_mr *mr = r->mr;
    const struct mapping *m = r->mapping;
    uint64_t start = mr->addr > m->start ? mr->addr : m->start;
    uint64_t end = mr->addr + mr->length, mapped_end = m->start + m->length;

    end = end < mapped_end ? end : mapped_end;
    r->first = mr->iova + (start - mr->addr);
    r->length = start < end ? end - start : 0;
    r->memory = m->base + (start - m->start);
}

static bool find_route(struct hca_qp *qp, uint32_t rkey)
{
    struct shared_qp *peer = wqe_find_peer(qp);
    struct write_route *r = &qp->write_route;

    r->peer = NULL;
    r->mr = peer ? find_region(peer, rkey) : NULL;
    r->serial = r->mr ? load_acquire(&r->mr->share) : 0;
    r->mapping = r->serial ? peer_find_mapping(r->mr, r->serial) : NULL;
    if (!r->mapping || !r->mapping->base || !r->mapping->writable)
        return false;
    set_memory(r);
    r->dest_qpn = qp->attr.dest_qp_num;
    r->qp_chunk = wqe_chunk_of(r->dest_qpn);
    r->rkey = rkey;
    r->mr_chunk = mr_chunk_of(rkey);
    r->peer = peer;
    return route_holds(qp, rkey);
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

static bool write_along(struct hca_qp *qp, const struct ibv_send_wr *wr, unsigned flags)
{
    const struct ibv_sge *sge = wr->sg_list;
    const struct write_route *r = &qp->write_route;
    const char *from = source_of(qp, sge, flags);
    uint64_t remote = wr->wr.rdma.remote_addr, into = remote - r->first, next;

    if (unlikely(!from || into > r->length || sge->length > r->length - into ||
                 (uintptr_t)(r->memory + into) % sizeof(any_uint64) ||
                 !may_be_alive(r->peer->proc, flags)))
        return false;
    next = into + 2 * (remote - qp->last_write);
    qp->last_write = remote;
    if (next < r->length)
        prefetch_for_writing(r->memory + next);
    copy_words(r->memory + into, from, sge->length);
    count_short_write(qp, r->peer, sge->length);
    return true;
}

bool write_fast(struct hca_qp *qp, const struct ibv_send_wr *wr, unsigned flags)
{
    uint32_t length = wr->sg_list->length, rkey = wr->wr.rdma.rkey;
    bool done;

    if (unlikely(hca_observer || !length || length > LIVE_SHORT_WRITE || length % sizeof(any_uint64)))
        return false;
    epoch_enter();
    done = (likely(route_holds(qp, rkey)) || find_route(qp, rkey)) && write_along(qp, wr, flags);
    epoch_exit();
    return done;
}
