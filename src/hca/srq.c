/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/observer.h"
#include "hca/srq.h"

#include "hca/async.h"
#include "hca/cq.h"
#include "hca/epoch.h"
#include "hca/proc.h"
#include "hca/qp.h"
#include "hca/rq.h"
#include "hca/table.h"
#include "util/list.h"

#include <errno.h>
#include <stdlib.h>

#define SRQ_INDEX(srqn) ((srqn) & ((1u << SRQ_INDEX_BITS) - 1))

struct hca_srq *srq_list;

static struct hca_srq *own_srqs[1u << SRQ_INDEX_BITS];

struct hca_srq *srq_by_number(uint32_t srqn)
{
    struct hca_srq *srq = own_srqs[SRQ_INDEX(srqn)];

    return srq && srq->srqn == srqn ? srq : NULL;
}

void srq_forget(void)
{
    for (struct hca_srq *srq = srq_list; srq; srq = srq->next)
        own_srqs[SRQ_INDEX(srq->srqn)] = NULL;
    srq_list = NULL;
}

struct hca_srq *srq_create(struct hca_context *context, struct hca_pd *pd, struct hca_cq *cq,
                           struct hca_xrcd *xrcd, const struct ibv_srq_attr *attr, bool is_xrc)
{
    struct hca_srq *srq = calloc(1, sizeof(*srq));
    uint32_t index;
    int err;

    if (!srq)
        return NULL;
    if ((err = rq_create(&srq->rq, attr->max_wr, attr->max_sge, true)))
        goto free_srq;
    srq->shared = table_alloc(&srq_table, &index);
    if (!srq->shared) {
        err = errno;
        goto free_rq;
    }
    srq->ibv.context = &context->verbs.context;
    srq->srqn = index;
    srq->is_xrc = is_xrc;
    srq->cq = cq;
    srq->xrcd = xrcd;
    srq->pd = pd;
    srq->owner = proc_self;
    srq->shared->proc = proc_self;
    srq->shared->is_xrc = is_xrc;
    srq->shared->pd = pd->id;
    srq->shared->rq = seg_offset(srq->rq.shared);
    srq->shared->xrcd = xrcd ? xrcd->id : 0;
    srq->shared->cq = cq ? seg_offset(cq->shared) : 0;
    srq->shared->events.fd = context->verbs.context.async_fd;
    srq->shared->events.id = context->async_id;
    store_relaxed(&srq->shared->events.bits, 0);
    store_relaxed(&srq->rq.shared->limit, attr->srq_limit);
    pthread_mutex_lock(&qp_list_mutex);
    own_srqs[index] = srq;
    list_push(srq_list, srq, next, link);
    pthread_mutex_unlock(&qp_list_mutex);
    atomic_fetch_add(&pd->users, 1);
    if (cq)
        atomic_fetch_add(&cq->users, 1);
    if (xrcd)
        atomic_fetch_add(&xrcd->users, 1);
    store_release(&srq->shared->srqn, index);
    return srq;

free_rq:
    rq_destroy(&srq->rq);
free_srq:
    free(srq);
    errno = err;
    return NULL;
}

void srq_destroy(struct hca_srq *srq)
{
    store_release(&srq->shared->srqn, 0);
    epoch_grace();
    pthread_mutex_lock(&qp_list_mutex);
    own_srqs[SRQ_INDEX(srq->srqn)] = NULL;
    list_remove(srq, next, link);
    pthread_mutex_unlock(&qp_list_mutex);
    async_withdraw(&srq->shared->events, srq->ibv.context->async_fd);
    if (srq->cq) { /* wait for a poll that may be using the SRQ */
        spin_lock(&srq->cq->lock);
        spin_unlock(&srq->cq->lock);
        atomic_fetch_sub(&srq->cq->users, 1);
    }
    if (srq->xrcd)
        atomic_fetch_sub(&srq->xrcd->users, 1);
    atomic_fetch_sub(&srq->pd->users, 1);
    table_free(&srq_table, SRQ_INDEX(srq->srqn));
    rq_destroy(&srq->rq);
    hca_free_object(srq);
}

/* Senders check the limit only when they take a receive; the limit may be reached already. */
void srq_set_limit(struct hca_srq *srq, uint32_t limit)
{
    struct shared_rq *rq = srq->rq.shared;
    uint32_t armed = limit;

    atomic_store(&rq->limit, limit);
    if (limit && load_relaxed(&rq->posted) - load_relaxed(&rq->head) < limit &&
        atomic_compare_exchange_strong(&rq->limit, &armed, 0))
        async_raise(proc_self, &srq->shared->events, IBV_EVENT_SRQ_LIMIT_REACHED);
}

void srq_recheck_receives(void)
{
    for (struct hca_srq *srq = srq_list; srq; srq = srq->next)
        rq_recheck(&srq->rq, srq->pd->id);
}

static bool completion_waits(void *arg, uint32_t slot)
{
    struct hca_srq *srq = arg;
    bool waits = false;

    if (srq->cq)
        return cq_ring_holds(srq->cq, 0, srq->srqn, slot);
    spin_lock(&cq_list_lock);
    for (struct hca_cq *cq = cq_list; cq && !waits; cq = cq->next)
        waits = cq_ring_holds(cq, 0, srq->srqn, slot);
    spin_unlock(&cq_list_lock);
    return waits;
}

void srq_recover_receives(void)
{
    for (struct hca_srq *srq = srq_list; srq; srq = srq->next)
        rq_recover(&srq->rq, srq->pd->id, completion_waits, srq);
}
