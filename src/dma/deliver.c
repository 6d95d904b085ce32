/* SPDX-License-Identifier: BSD-2-Clause */
#include "dma/deliver.h"

#include "hca/async.h"
#include "hca/bounce.h"
#include "hca/cq.h"
#include "hca/proc.h"
#include "hca/qp.h"
#include "hca/responder.h"

#include <errno.h>
#include <string.h>

bool deliver_find_target(struct shared_qp *peer, uint32_t srqn, bool datagram,
                         struct deliver_target *t)
{
    t->qpn = load_relaxed(&peer->qpn);
    t->srqn = responder_srqn(peer, srqn);
    if (!responder_open_rq(peer, t->srqn, &t->srq, &t->rq))
        return false;
    t->many_senders = t->srqn || datagram;
    if (!t->srq) {
        t->proc = peer->proc;
        t->pd = peer->pd;
        t->cq = cq_open(peer->recv_cq);
        return t->cq;
    }
    if (t->srq->proc >= MAX_PROCS ||
        (peer->type == IBV_QPT_XRC_RECV && (!t->srq->is_xrc || t->srq->xrcd != peer->xrcd)))
        return false;
    t->proc = t->srq->proc;
    t->pd = t->srq->pd;
    t->cq = cq_open(t->srq->is_xrc ? t->srq->cq : peer->recv_cq);
    return t->cq;
}

bool deliver_take(struct deliver_target *t)
{
    uint32_t left, limit;

    if (!t->many_senders)
        return rq_peek(&t->rq);
    if (!rq_take(&t->rq, &left))
        return false;
    if (t->srq && (limit = load_relaxed(&t->rq.rq->limit)) && left < limit &&
        atomic_compare_exchange_strong(&t->rq.rq->limit, &limit, 0))
        async_raise(t->proc, &t->srq->events, IBV_EVENT_SRQ_LIMIT_REACHED);
    return true;
}

static enum ibv_wc_status check_capacity(const struct deliver_target *t, uint64_t length)
{
    uint32_t min_len = load_relaxed(&t->rq.rq->min_posted_len);

    if (likely(min_len && length <= min_len))
        return IBV_WC_SUCCESS;
    return rq_capacity_check(rq_recv_capacity(t->rq.rq, t->rq.slot), length);
}

/* Writes to the receiver's buffers directly, after `skip` bytes. */
static enum ibv_wc_status place_directly(const struct deliver_target *t, const struct delivery *m,
                                         uint32_t skip)
{
    uint32_t max_sge, num_sge;
    /* The receiver may change it meanwhile: read each field once, then check it. */
    const volatile struct recv_wqe *wqe = rq_wqe(t->rq.rq, t->rq.slot, &max_sge);
    struct mem_ref refs[HCA_MAX_SGE];
    uint32_t left = m->length;
    unsigned count = 0;

    if (!wqe || (num_sge = wqe->num_sge) > max_sge)
        return IBV_WC_LOC_PROT_ERR;
    for (uint32_t i = 0; i < num_sge && left; i++) {
        uint64_t addr = wqe->sge[i].addr;
        uint32_t n = wqe->sge[i].length;
        if (skip >= n) {
            skip -= n;
            continue;
        }
        addr += skip;
        n = n - skip < left ? n - skip : left;
        skip = 0;
        if (!mr_local_of(t->proc, wqe->sge[i].lkey, t->pd, addr, n, true, &refs[count++]))
            return IBV_WC_LOC_PROT_ERR;
        left -= n;
    }
    switch (copy_out(m->payload, refs, count)) {
    case 0:
        return IBV_WC_SUCCESS;
    case ESRCH:
        return IBV_WC_RETRY_EXC_ERR;
    default:
        return IBV_WC_LOC_PROT_ERR;
    }
}

static void gather(const struct local_list *list, uint8_t *to)
{
    for (unsigned i = 0; i < list->count; i++) {
        memcpy(to, list->iov[i].iov_base, list->iov[i].iov_len);
        to += list->iov[i].iov_len;
    }
}

static void complete_receive(struct deliver_target *t, struct cqe *e, uint64_t ticket,
                             const struct delivery *m, enum ibv_wc_status status, unsigned flags)
{
    e->qpn = t->qpn;
    e->srqn = t->srqn;
    e->slot = t->rq.slot;
    e->length = m->length + (m->datagram ? HCA_GRH_BYTES : 0);
    e->imm = m->wqe->imm;
    e->src_qp = m->src_qp;
    e->slid = m->slid;
    e->sl = m->wqe->sl;
    if (!t->many_senders)
        rq_advance(t->rq.rq);
    cq_publish(t->cq, e, ticket, status, m->opcode, flags);
}

static unsigned flags_of(const struct delivery *m)
{
    unsigned flags = m->wqe->flags & IBV_SEND_SOLICITED ? CQE_SOLICITED : 0;

    if (m->wqe->opcode == IBV_WR_SEND_WITH_IMM || m->wqe->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
        flags |= CQE_IMM;
    if (m->wqe->opcode == IBV_WR_SEND_WITH_INV)
        flags |= CQE_INV;
    return flags;
}

bool deliver_complete(struct deliver_target *t, const struct delivery *m, enum ibv_wc_status status,
                      unsigned cqe_flags)
{
    uint64_t ticket;
    struct cqe *e = cq_reserve(t->cq, &ticket);

    if (e)
        complete_receive(t, e, ticket, m, status, flags_of(m) | cqe_flags);
    return e;
}

/* The receive cannot take the message: an error at both ends. */
static int refuse(struct shared_qp *peer, struct deliver_target *t, const struct delivery *m,
                  enum ibv_wc_status theirs, enum ibv_wc_status ours)
{
    deliver_complete(t, m, theirs, 0);
    qp_set_error(peer);
    return ours;
}

void deliver_note_first_message(struct shared_qp *peer)
{
    store_relaxed(&peer->comm_est, 1);
    if (load_relaxed(&peer->state) == IBV_QPS_RTR)
        async_raise(peer->proc, &peer->events, IBV_EVENT_COMM_EST);
}

static bool fits_inline(const struct delivery *m)
{
    return m->length <= (m->wqe->has_grh ? CQE_DGID_AT : CQE_INLINE);
}

int deliver_message(struct shared_qp *peer, const struct delivery *m)
{
    uint32_t skip = m->datagram ? HCA_GRH_BYTES : 0;
    struct bounce_block *block = NULL;
    unsigned flags = flags_of(m);
    enum ibv_wc_status status;
    struct deliver_target t;
    uint64_t ticket;

    if (unlikely(!deliver_find_target(peer, m->wqe->srqn, m->datagram, &t)))
        return IBV_WC_REM_INV_REQ_ERR;
    if (unlikely(m->sender && !cq_has_room(t.cq)))
        return DELIVER_NO_ROOM;
    if (unlikely(!deliver_take(&t)))
        return DELIVER_NO_RECEIVE;
    if (m->payload && (status = check_capacity(&t, (uint64_t)m->length + skip)))
        return refuse(peer, &t, m, status,
                      status == IBV_WC_LOC_LEN_ERR ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_REM_OP_ERR);
    if (unlikely(!load_relaxed(&peer->comm_est)))
        deliver_note_first_message(peer);

    bool direct = m->payload && m->length > BOUNCE_BYTES;
    if (direct && (status = place_directly(&t, m, skip))) {
        if (status == IBV_WC_RETRY_EXC_ERR)
            return status;
        return refuse(peer, &t, m, status, IBV_WC_REM_OP_ERR);
    }
    struct cqe *e = cq_reserve(t.cq, &ticket);
    if (unlikely(!e))
        return IBV_WC_REM_OP_ERR;
    if (m->payload && !direct) {
        if (fits_inline(m)) {
            gather(m->payload, e->data);
            flags |= CQE_IN_LINE;
        } else if ((block = bounce_take(t.proc, e))) {
            gather(m->payload, block->data);
            flags |= CQE_IN_BOUNCE;
        } else if ((status = place_directly(&t, m, skip))) {
            complete_receive(&t, e, ticket, m, status, flags);
            qp_set_error(peer);
            return IBV_WC_REM_OP_ERR;
        }
    }
    if (m->wqe->has_grh && m->datagram) {
        memcpy(e->data + CQE_DGID_AT, &m->wqe->dgid, sizeof(m->wqe->dgid));
        flags |= CQE_GRH;
    }
    if (m->sender)
        store_relaxed(&m->sender->publishing, m->wqe->sq_index + 1);
    complete_receive(&t, e, ticket, m, IBV_WC_SUCCESS, flags);
    return IBV_WC_SUCCESS;
}

int deliver_obstacle(struct shared_qp *peer, const struct send_wqe *wqe)
{
    struct deliver_target t;

    if (!deliver_find_target(peer, wqe->srqn, false, &t) ||
        load_relaxed(&t.rq.rq->head) == load_acquire(&t.rq.rq->posted))
        return DELIVER_NO_RECEIVE;
    return cq_has_room(t.cq) ? 0 : DELIVER_NO_ROOM;
}
