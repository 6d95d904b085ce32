/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/model/recv_claim.h"

#include "hca/epoch.h"
#include "hca/responder.h"
#include "hca/rq.h"

/* Opens the receive queue of the QP or, for XRC and SRQ users, of the SRQ. */
static bool open_rq(const struct sim_qp *qp, uint32_t srqn, struct rq_view *view)
{
    struct shared_srq *srq;

    if (qp->transport.attributes.service != SERVICE_XRC)
        srqn = qp->srqn;
    return (srqn || !qp->dead) && responder_open_rq(qp->shared, srqn, &srq, view);
}

static void save_recv_sge(struct sim_qp *qp, const struct recv_wqe *rwqe)
{
    uint32_t count = rwqe ? rwqe->num_sge : 0;

    qp->recv_num_sge = count < HCA_MAX_SGE ? count : HCA_MAX_SGE;
    for (uint32_t i = 0; i < qp->recv_num_sge; i++)
        qp->recv_sge[i] =
            (struct sim_sge){ .address = rwqe->sge[i].addr, .length = rwqe->sge[i].length };
}

/* A UD receive reserves its first 40 bytes for the GRH. */
static uint32_t without_grh(uint32_t length)
{
    return length < HCA_GRH_BYTES ? 0 : length - HCA_GRH_BYTES;
}

/* The caller is inside an epoch. */
static bool peek(struct sim_qp *qp, uint32_t srqn, struct rq_view *view)
{
    uint32_t head, number, found, max_sge;
    const struct recv_wqe *rwqe;

    if (!open_rq(qp, srqn, view))
        return false;
    head = load_relaxed(&view->rq->head);
    number = head + view->rq->claimed;
    found = load_acquire(&view->rq->posted) - qp->hidden_receives;
    if ((int32_t)(found - number) <= 0)
        return false;
    rwqe = rq_wqe(view->rq, rq_slot(view, number), &max_sge);
    qp->recv_capacity = rq_recv_capacity(view->rq, rq_slot(view, number));
    save_recv_sge(qp, rwqe);
    if (qp->shared->type == IBV_QPT_UD) {
        qp->recv_capacity.length = without_grh(qp->recv_capacity.length);
        qp->recv_capacity.reach = without_grh(qp->recv_capacity.reach);
    }
    return true;
}

/* QPs of an owner always have the same receive. */
bool recv_claim_peek(struct sim_qp *qp, uint32_t srqn)
{
    struct rq_view view;
    bool found;

    if (qp->owner)
        return true;
    epoch_enter();
    found = peek(qp, srqn, &view);
    epoch_exit();
    return found;
}

enum transport_status recv_claim_take(struct sim_qp *qp, uint32_t srqn)
{
    struct rq_view view;
    bool found;

    if (qp->owner)
        return TRANSPORT_SUCCESS;
    epoch_enter();
    found = peek(qp, srqn, &view);
    if (found) {
        view.rq->claimed++;
        qp->claimed_srqn = srqn;
    }
    epoch_exit();
    return found ? TRANSPORT_SUCCESS : TRANSPORT_NOT_READY;
}

void recv_claim_release(struct sim_qp *qp, uint32_t srqn)
{
    struct rq_view view;

    if (open_rq(qp, srqn, &view) && view.rq->claimed)
        view.rq->claimed--;
}

void recv_claim_cancel(struct sim_qp *qp)
{
    epoch_enter();
    if (qp->transport.responder.message.receive_taken)
        recv_claim_release(qp, qp->claimed_srqn);
    epoch_exit();
}
