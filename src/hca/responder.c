/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/responder.h"

/* The PD whose keys the peer of this QP may use, and its process. An XRC target QP has no PD of its
 * own: that of the SRQ counts. */
static uint32_t pd_of(const struct shared_qp *qp, uint32_t srqn, uint16_t *proc)
{
    const struct shared_srq *srq;

    *proc = qp->proc;
    if (qp->type != IBV_QPT_XRC_RECV)
        return qp->pd;
    srq = shared_srq_find(srqn);
    if (!srq || srq->xrcd != qp->xrcd)
        return 0;
    *proc = srq->proc;
    return srq->pd;
}

bool responder_translate(const struct shared_qp *qp, uint32_t srqn, uint32_t rkey, uint64_t addr,
                         uint64_t length, unsigned access, struct mem_ref *ref)
{
    uint16_t proc;
    uint32_t pd = pd_of(qp, srqn, &proc);

    return proc < MAX_PROCS &&
           mr_remote(rkey, proc, pd, load_relaxed(&qp->qpn), addr, length, access, ref);
}

static enum responder_status refuse(struct shared_qp *qp, uint32_t rkey, uint64_t addr,
                                    uint64_t length, unsigned access, enum responder_status why)
{
    qp->refusal = (struct refusal){ .addr = addr,
                                    .length = length,
                                    .rkey = rkey,
                                    .access = access,
                                    .not_enabled = why == RESPONDER_NOT_ENABLED };
    return why;
}

enum responder_status responder_check(struct shared_qp *qp, uint32_t srqn, uint32_t rkey,
                                      uint64_t addr, uint64_t length, unsigned access,
                                      struct mem_ref *ref)
{
    if (unlikely(!(load_relaxed(&qp->access) & access)))
        return refuse(qp, rkey, addr, length, access, RESPONDER_NOT_ENABLED);
    if (length && unlikely(!responder_translate(qp, srqn, rkey, addr, length, access, ref)))
        return refuse(qp, rkey, addr, length, access, RESPONDER_ACCESS_ERROR);
    return RESPONDER_OK;
}

enum responder_status responder_check_atomic(struct shared_qp *qp, uint32_t srqn, uint32_t rkey,
                                             uint64_t addr, unsigned access, struct mem_ref *ref)
{
    enum responder_status status;

    if (addr & 7)
        return refuse(qp, rkey, addr, sizeof(uint64_t), access, RESPONDER_MISALIGNED);
    status = responder_check(qp, srqn, rkey, addr, sizeof(uint64_t), access, ref);
    if (status == RESPONDER_OK && ref->addr & 7) /* a region's iova may differ from its address */
        return refuse(qp, rkey, addr, sizeof(uint64_t), access, RESPONDER_MISALIGNED);
    return status;
}

bool responder_invalidate(const struct shared_qp *qp, uint32_t rkey)
{
    struct shared_mr *mr = shared_mr_find(rkey);

    if (!mr || mr->proc != qp->proc || mr->pd != qp->pd || mr->kind != MW_TYPE_2 ||
        mr->bound_qpn != load_relaxed(&qp->qpn))
        return false;
    atomic_store(&mr->key, 0);
    return true;
}
