/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fast path: a send of one SGE that fits into a CQE, between RC queue pairs, to a peer with its
 * own receive queue and a posted receive.
 *
 * It does what wqe.c and deliver.c do, without the look-ups: their results are cached in the QP,
 * and are valid while the peer's entry is unchanged. Everything else uses the general path, which
 * also reports errors.
 */

#include "live/live.h"

#include "hca/cq.h"
#include "hca/epoch.h"
#include "hca/proc.h"
#include "hca/rq.h"

static bool route_holds(const struct hca_qp *qp)
{
    const struct send_route *r = &qp->route;
    struct shared_qp *peer = r->peer;

    return peer && wqe_chunk_of(r->dest_qpn) == r->chunk &&
           load_acquire(&peer->qpn) == r->dest_qpn &&
           load_relaxed(&peer->dest_qpn) == qp->ibv.qp_num &&
           load_acquire(&peer->state) - IBV_QPS_RTR <= IBV_QPS_SQE - IBV_QPS_RTR &&
           peer->rq == seg_offset(r->rq) && peer->recv_cq == seg_offset(r->cq.cq) &&
           !load_relaxed(&seg->ports_down);
}

static bool find_route(struct hca_qp *qp)
{
    struct shared_qp *peer = wqe_find_peer(qp);
    struct send_route *r = &qp->route;
    struct shared_cq *cq;
    struct rq_view view;

    r->peer = NULL;
    if (!peer || peer->srqn || !load_relaxed(&peer->comm_est) || !rq_open(peer->rq, &view) ||
        !(cq = cq_open(peer->recv_cq)))
        return false;
    r->rq = view.rq;
    r->slot_mask = view.depth - 1;
    r->cq = (struct cq_route){ .cq = cq };
    r->dest_qpn = qp->attr.dest_qp_num;
    r->chunk = wqe_chunk_of(r->dest_qpn);
    r->peer = peer;
    qp->peer_word = proc_word(peer->proc);
    return route_holds(qp);
}

static const void *payload_of(const struct hca_qp *qp, const struct ibv_sge *sge, unsigned flags)
{
    struct mem_ref ref;

    if (flags & IBV_SEND_INLINE)
        return (const void *)sge->addr;
    if (!mr_local(sge->lkey, qp->pd->id, sge->addr, sge->length, false, &ref) ||
        ref.kind != MEM_PROCESS)
        return NULL;
    return (const void *)ref.addr;
}

static bool send_along(struct hca_qp *qp, const struct ibv_sge *sge, unsigned flags)
{
    struct shared_cq *cq = qp->route.cq.cq;
    struct shared_rq *rq = qp->route.rq;
    uint32_t length = sge->length, number;
    const void *payload = payload_of(qp, sge, flags);
    uint64_t ticket;

    if (unlikely(!payload || !rq_next(rq, &number) || !length ||
                 length > load_relaxed(&rq->min_posted_len)))
        return false;
    /* Leave overruns to the general path, which reports them. */
    uint64_t tail = load_relaxed(&cq->tail), waiting = tail - load_relaxed(&cq->head_seen);
    if (unlikely(waiting >= load_relaxed(&cq->capacity) || load_relaxed(&cq->overrun)))
        return false;
    if (unlikely(tail + CQ_ROOM_AHEAD >= qp->route.cq.limit && !cq_has_room(cq)))
        return false;
    struct cqe *e = cq_reserve_along(&qp->route.cq, &ticket);
    if (unlikely(!e))
        return false;
    copy_short(e->data, payload, length);
    e->qpn = qp->route.dest_qpn;
    e->slot = number & qp->route.slot_mask;
    e->length = length;
    e->src_qp = qp->ibv.qp_num;
    e->srqn = 0;
    e->slid = load_relaxed(&qp->shared->lid);
    e->sl = qp->sl;
    store_relaxed(&qp->publishing, qp->sq_posted + 1);
    rq_advance(rq);
    cq_publish(cq, e, ticket, IBV_WC_SUCCESS, IBV_WC_RECV,
               CQE_IN_LINE | (flags & IBV_SEND_SOLICITED ? CQE_SOLICITED : 0));
    count_short_send(qp, qp->route.peer, length);
    return true;
}

bool send_fast(struct hca_qp *qp, const struct ibv_sge *sge, unsigned flags)
{
    bool sent;

    epoch_enter();
    sent = (likely(route_holds(qp)) || find_route(qp)) && send_along(qp, sge, flags);
    epoch_exit();
    return sent;
}
