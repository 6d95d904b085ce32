/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues and XRC domains. */

#include "hca/srq.h"
#include "verbs/verbs.h"

#include "check/check.h"
#include "hca/qp.h"
#include "hca/async.h"

#include <string.h>
#include <sys/stat.h>

static struct ibv_srq *create(struct ibv_context *context, struct ibv_pd *pd, void *srq_context,
                              struct ibv_srq_attr *attr, struct ibv_cq *cq, struct ibv_xrcd *xrcd,
                              bool is_xrc)
{
    int err = ensure_attached();

    if (!err)
        err = check_call(VERB_CREATE_SRQ);
    if (!err && (attr->max_wr < 1 || attr->max_wr > HCA_MAX_WR || attr->max_sge > HCA_MAX_SGE))
        err = check_because(EINVAL, "an SRQ of %u receives of %u SGEs: the device allows %d of %d",
                            attr->max_wr, attr->max_sge, HCA_MAX_WR, HCA_MAX_SGE);
    if (err)
        return fail(err);
    if (!attr->max_sge)
        attr->max_sge = 1;
    attr->srq_limit = 0;
    hca_charge(CALL_CREATE_SRQ, attr->max_wr);
    struct hca_srq *srq = srq_create(to_context(context), real_pd(pd), (struct hca_cq *)cq,
                                     (struct hca_xrcd *)xrcd, attr, is_xrc);
    if (!srq)
        return NULL;
    srq->ibv.srq_context = srq_context;
    srq->ibv.pd = pd;
    srq->ibv.handle = srq->srqn;
    pthread_mutex_init(&srq->ibv.mutex, NULL);
    pthread_cond_init(&srq->ibv.cond, NULL);
    return check_made(CHECK_SRQ, srq, srq->srqn);
}

EXPORT struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
    return create(pd->context, pd, attr->srq_context, &attr->attr, NULL, NULL, false);
}

struct ibv_srq *verbs_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
    const uint32_t known = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD |
                           IBV_SRQ_INIT_ATTR_CQ;
    const uint32_t xrc_needs = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
    bool xrc = attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE && attr->srq_type == IBV_SRQT_XRC;

    if (attr->comp_mask & ~known)
        return fail(EOPNOTSUPP);
    if (attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE && attr->srq_type != IBV_SRQT_XRC &&
        attr->srq_type != IBV_SRQT_BASIC)
        return fail(EOPNOTSUPP);
    if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd ||
        (xrc && ((attr->comp_mask & xrc_needs) != xrc_needs || !attr->xrcd || !attr->cq)))
        return fail(EINVAL);
    return create(context, attr->pd, attr->srq_context, &attr->attr, xrc ? attr->cq : NULL,
                  xrc ? attr->xrcd : NULL, xrc);
}

EXPORT int ibv_modify_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr, int attr_mask)
{
    struct hca_srq *srq = (struct hca_srq *)ibv;

    if (attr_mask & IBV_SRQ_MAX_WR)
        return EOPNOTSUPP; /* the device does not report IBV_DEVICE_SRQ_RESIZE */
    if (attr_mask & ~IBV_SRQ_LIMIT || attr->srq_limit > srq->rq.max_wr)
        return EINVAL;
    if (attr_mask & IBV_SRQ_LIMIT)
        srq_set_limit(srq, attr->srq_limit);
    return 0;
}

EXPORT int ibv_query_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr)
{
    struct hca_srq *srq = (struct hca_srq *)ibv;

    attr->max_wr = srq->rq.max_wr;
    attr->max_sge = srq->rq.max_sge;
    attr->srq_limit = load_relaxed(&srq->rq.shared->limit);
    return 0;
}

EXPORT int ibv_destroy_srq(struct ibv_srq *ibv)
{
    struct hca_srq *srq = (struct hca_srq *)ibv;

    if (unlikely(check_on))
        check_destroys(CHECK_SRQ, srq, "ibv_destroy_srq()");
    if (load_relaxed(&srq->users) > 0)
        return check_because(EBUSY, "%d QPs still use the SRQ", load_relaxed(&srq->users));
    check_gone(CHECK_SRQ, srq);
    if (srq->owner != proc_self) {
        free(srq); /* inherited through fork: the parent's object stays */
        return 0;
    }
    hca_charge(CALL_DESTROY_SRQ, 0);
    verbs_await_acks(&ibv->mutex, &ibv->cond, &ibv->events_completed, srq->async_taken);
    srq_destroy(srq);
    return 0;
}

int verbs_get_srq_num(struct ibv_srq *srq, uint32_t *srq_num)
{
    if (!((struct hca_srq *)srq)->is_xrc)
        return EINVAL;
    *srq_num = ((struct hca_srq *)srq)->srqn;
    return 0;
}

/* Processes that open the same file share the domain: the file identifies it. */
struct ibv_xrcd *verbs_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
    const uint32_t need = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
    struct stat st;
    int err = ensure_attached();

    if (err)
        return fail(err);
    if (attr->comp_mask & ~need)
        return fail(EOPNOTSUPP);
    if ((attr->comp_mask & need) != need)
        return fail(EINVAL);
    if (attr->fd != -1 && fstat(attr->fd, &st))
        return NULL;
    struct hca_xrcd *xrcd = calloc(1, sizeof(*xrcd));
    if (!xrcd)
        return fail(ENOMEM);
    xrcd->ibv.context = context;
    xrcd->id = attr->fd == -1 ? atomic_fetch_add(&seg->next_xrcd, 1)
                              : 1ull << 63 | (uint64_t)st.st_dev << 40 | st.st_ino;
    return &xrcd->ibv;
}

int verbs_close_xrcd(struct ibv_xrcd *xrcd)
{
    if (load_relaxed(&((struct hca_xrcd *)xrcd)->users) > 0)
        return EBUSY;
    free(xrcd);
    return 0;
}
