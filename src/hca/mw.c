/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/mw.h"

#include "hca/mr.h"

int mw_invalidate(struct hca_qp *qp, const struct send_wqe *w)
{
    struct shared_mr *mr = shared_mr_find(w->imm) ? mr_own(w->imm) : NULL;

    if (!mr || load_relaxed(&mr->key) != w->imm || mr->pd != qp->pd->id || mr->kind != MW_TYPE_2)
        return IBV_WC_LOC_PROT_ERR;
    mr_revoke_key(mr);
    return IBV_WC_SUCCESS;
}

int mw_bind(struct hca_qp *qp, const struct send_wqe *w)
{
    struct hca_mw *mw = (struct hca_mw *)w->mw;
    const struct ibv_mw_bind_info *b = &w->bind;
    struct hca_mr *mr = (struct hca_mr *)b->mr;
    struct mem_ref ref = { 0 };

    if (b->length &&
        (!(mr->own->access & IBV_ACCESS_MW_BIND) || mr->own->pd != qp->pd->id ||
         !mr_local(mr->ibv.lkey, qp->pd->id, b->addr, b->length,
                   b->mw_access_flags & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC),
                   &ref)))
        return IBV_WC_MW_BIND_ERR;
    if (mw->bound_to)
        atomic_fetch_sub(&mw->bound_to->windows, 1);
    mr_revoke_key(mw->own);
    mw->bound_to = b->length ? mr : NULL;
    if (!b->length)
        return IBV_WC_SUCCESS;
    atomic_fetch_add(&mr->windows, 1);
    mw->own->iova = b->mw_access_flags & IBV_ACCESS_ZERO_BASED ? 0 : b->addr;
    mw->own->addr = ref.addr;
    mw->own->length = b->length;
    mw->own->access = b->mw_access_flags;
    mw->own->bound_qpn = qp->ibv.qp_num;
    mr_validate(mw->own, w->rkey);
    return IBV_WC_SUCCESS;
}
