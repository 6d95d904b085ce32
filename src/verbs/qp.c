/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs: create, modify, query, destroy. */

#include "verbs/verbs.h"

#include "check/check.h"
#include "hca/qp.h"

#include <string.h>

static bool is_xrc(enum ibv_qp_type type)
{
    return type == IBV_QPT_XRC_SEND || type == IBV_QPT_XRC_RECV;
}

static int check_init(const struct ibv_qp_init_attr *a, struct ibv_pd *pd, struct ibv_xrcd *xrcd)
{
    switch (a->qp_type) {
    case IBV_QPT_RC:
    case IBV_QPT_UC:
    case IBV_QPT_UD:
        if (!pd || !a->send_cq || !a->recv_cq)
            return check_because(EINVAL, "a QP of this type needs a PD and two CQs");
        break;
    case IBV_QPT_XRC_SEND:
        if (!pd || !a->send_cq)
            return EINVAL;
        break;
    case IBV_QPT_XRC_RECV:
        return xrcd ? 0 : EINVAL;
    default:
        return EOPNOTSUPP;
    }
    if (a->cap.max_send_wr > HCA_MAX_WR || a->cap.max_send_sge > HCA_MAX_SGE ||
        a->cap.max_inline_data > HCA_MAX_INLINE)
        return check_because(EINVAL,
                             "%u sends of %u SGEs and %u bytes inline: the device allows %d of %d "
                             "and %d",
                             a->cap.max_send_wr, a->cap.max_send_sge, a->cap.max_inline_data,
                             HCA_MAX_WR, HCA_MAX_SGE, HCA_MAX_INLINE);
    if (!a->srq && !is_xrc(a->qp_type) &&
        (a->cap.max_recv_wr > HCA_MAX_WR || a->cap.max_recv_sge > HCA_MAX_SGE))
        return check_because(EINVAL, "%u receives of %u SGEs: the device allows %d of %d",
                             a->cap.max_recv_wr, a->cap.max_recv_sge, HCA_MAX_WR, HCA_MAX_SGE);
    return 0;
}

static struct hca_qp *create(struct ibv_context *context, struct ibv_pd *pd,
                             struct ibv_qp_init_attr *attr, struct ibv_xrcd *xrcd)
{
    struct ibv_qp_init_attr init = *attr;
    int err = ensure_attached();

    if (!err)
        err = check_init(attr, pd, xrcd);
    if (!err)
        err = check_call(VERB_CREATE_QP);
    if (err)
        return fail(err);
    if (init.qp_type == IBV_QPT_XRC_RECV) {
        init.send_cq = NULL;
        init.recv_cq = NULL;
        init.srq = NULL;
    } else if (init.qp_type == IBV_QPT_XRC_SEND) {
        init.recv_cq = NULL;
        init.srq = NULL;
    }
    if (init.srq || is_xrc(init.qp_type))
        init.cap.max_recv_wr = init.cap.max_recv_sge = 0;
    hca_charge(CALL_CREATE_QP, (uint64_t)init.cap.max_send_wr + init.cap.max_recv_wr);
    struct hca_qp *qp = qp_create(to_context(context), pd ? real_pd(pd) : NULL, &init,
                                  (struct hca_xrcd *)xrcd);
    if (!qp)
        return NULL;
    qp->ibv.qp_context = attr->qp_context;
    qp->ibv.pd = pd;
    qp->alone = qp->in_thread_domain = pd && ((struct hca_pd *)pd)->td;
    qp->ibv.handle = qp->ibv.qp_num;
    qp->mcast_loopback = true;
    pthread_mutex_init(&qp->ibv.mutex, NULL);
    pthread_cond_init(&qp->ibv.cond, NULL);
    attr->cap = qp->cap;
    return check_made(CHECK_QP, qp, qp->ibv.qp_num);
}

EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    struct hca_qp *qp = create(pd->context, pd, attr, NULL);

    return qp ? &qp->ibv : NULL;
}

struct ibv_qp *verbs_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *ex)
{
    const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD |
                           IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    uint32_t flags = ex->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS ? ex->create_flags : 0;
    struct ibv_qp_init_attr attr;

    if (ex->comp_mask & ~known || flags & ~(uint32_t)IBV_QP_CREATE_BLOCK_SELF_MCAST_LB)
        return fail(EOPNOTSUPP);
    if (flags && ex->qp_type != IBV_QPT_UD)
        return fail(EINVAL);
    memcpy(&attr, ex, sizeof(attr)); /* a prefix of ex */
    struct hca_qp *qp = create(context, ex->comp_mask & IBV_QP_INIT_ATTR_PD ? ex->pd : NULL, &attr,
                               ex->comp_mask & IBV_QP_INIT_ATTR_XRCD ? ex->xrcd : NULL);
    if (!qp)
        return NULL;
    ex->cap = attr.cap;
    qp->mcast_loopback = !(flags & IBV_QP_CREATE_BLOCK_SELF_MCAST_LB);
    if (ex->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) {
        int err = verbs_fill_qp_ex(qp, ex->send_ops_flags);
        if (err) {
            ibv_destroy_qp(&qp->ibv);
            return fail(err);
        }
    }
    return &qp->ibv;
}

EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
    return ((struct hca_qp *)qp)->builder ? (struct ibv_qp_ex *)qp : NULL;
}

/* Another handle to an XRC target QP of this fabric: gives its number and its events. */
struct ibv_qp *verbs_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
    const uint32_t need = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
    struct hca_qp *found;

    if (attr->comp_mask & ~(need | IBV_QP_OPEN_ATTR_CONTEXT))
        return fail(EOPNOTSUPP);
    if ((attr->comp_mask & need) != need || attr->qp_type != IBV_QPT_XRC_RECV)
        return fail(EINVAL);
    found = qp_by_number(attr->qp_num);
    if (!found || found->ibv.qp_type != IBV_QPT_XRC_RECV ||
        found->xrcd->id != ((struct hca_xrcd *)attr->xrcd)->id)
        return fail(EINVAL);
    atomic_fetch_add(&found->opened, 1);
    return &found->ibv;
}

EXPORT int ibv_destroy_qp(struct ibv_qp *ibv)
{
    struct hca_qp *qp = (struct hca_qp *)ibv;

    if (unlikely(check_on))
        check_destroys(CHECK_QP, qp, "ibv_destroy_qp()");
    if (load_relaxed(&qp->opened) > 0) {
        atomic_fetch_sub(&qp->opened, 1);
        return 0;
    }
    if (load_relaxed(&qp->groups) > 0 && qp->owner == proc_self)
        return check_because(EBUSY, "QP 0x%x is attached to a multicast group", ibv->qp_num);
    check_gone(CHECK_QP, qp);
    verbs_free_qp_ex(qp);
    if (qp->owner != proc_self) {
        free(qp); /* inherited through fork: the parent's object stays */
        return 0;
    }
    hca_charge(qp_state(qp) >= IBV_QPS_RTR ? CALL_DESTROY_CONNECTED_QP : CALL_DESTROY_QP, 0);
    qp_set_unreachable(qp); /* no new events from here on */
    verbs_await_acks(&ibv->mutex, &ibv->cond, &ibv->events_completed, qp->async_taken);
    qp_destroy(qp);
    return 0;
}

static bool prepares(const struct hca_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    enum ibv_qp_state from = qp_state(qp);

    return mask & IBV_QP_STATE && from < IBV_QPS_RTS && attr->qp_state == from + 1;
}

EXPORT int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask)
{
    enum ibv_qp_state from;
    int err = check_call(VERB_MODIFY_QP);

    if (unlikely(check_on))
        check_uses(CHECK_QP, qp, "ibv_modify_qp()");
    if (err)
        return err;
    hca_charge(prepares((struct hca_qp *)qp, attr, attr_mask) ? CALL_PREPARE_QP : CALL_MODIFY_QP, 0);
    from = qp_state((struct hca_qp *)qp);
    err = qp_modify((struct hca_qp *)qp, attr, attr_mask);
    if (unlikely(err && check_explains))
        check_explain_modify((struct hca_qp *)qp, attr, attr_mask, from, err);
    return err;
}

EXPORT int ibv_query_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int attr_mask,
                        struct ibv_qp_init_attr *init_attr)
{
    struct hca_qp *qp = (struct hca_qp *)ibv;

    *attr = qp->attr;
    attr->qp_state = qp_state(qp);
    attr->cur_qp_state = attr->qp_state;
    attr->sq_draining = attr->qp_state == IBV_QPS_SQD && qp->pending;
    attr->cap = qp->cap;
    ibv->state = attr->qp_state;
    if (init_attr) {
        *init_attr = qp->init;
        init_attr->qp_context = ibv->qp_context;
        init_attr->cap = qp->cap;
    }
    return 0;
}

EXPORT int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
    return 0; /* no ordering guarantees for the bytes of a message */
}
