/* SPDX-License-Identifier: BSD-2-Clause */
/* Asynchronous events: getting and acknowledging. */

#include "hca/srq.h"
#include "verbs/verbs.h"

#include "hca/async.h"
#include "hca/cq.h"
#include "hca/notify.h"
#include "hca/qp.h"
#include "util/list.h"

#include <poll.h>
#include <unistd.h>

static bool take_cq_event(struct ibv_context *context, struct ibv_async_event *event)
{
    bool found = false;

    spin_lock(&cq_list_lock);
    for (struct hca_cq *cq = cq_list; cq && !found; cq = cq->next) {
        found = cq->ibv.context == context && async_take(&cq->shared->events, &event->event_type);
        if (found) {
            event->element.cq = &cq->ibv;
            cq->async_taken++;
        }
    }
    spin_unlock(&cq_list_lock);
    return found;
}

static bool take_port_event(struct ibv_context *context, struct ibv_async_event *event)
{
    struct open_device *listed = to_context(context)->listed;

    for (unsigned port = 1; listed && port <= seg->ports; port++)
        if (async_take(&listed->events[port - 1], &event->event_type)) {
            event->element.port_num = port;
            return true;
        }
    return false;
}

static bool take_event(struct ibv_context *context, struct ibv_async_event *event)
{
    bool found = take_port_event(context, event) || take_cq_event(context, event);

    pthread_mutex_lock(&qp_list_mutex);
    for (struct hca_qp *qp = qp_list; qp && !found; qp = qp->next) {
        found = qp->ibv.context == context && async_take(&qp->shared->events, &event->event_type);
        if (found) {
            event->element.qp = &qp->ibv;
            qp->async_taken++;
        }
    }
    for (struct hca_srq *srq = srq_list; srq && !found; srq = srq->next) {
        found = srq->ibv.context == context && async_take(&srq->shared->events, &event->event_type);
        if (found) {
            event->element.srq = &srq->ibv;
            srq->async_taken++;
        }
    }
    pthread_mutex_unlock(&qp_list_mutex);
    return found;
}

static bool has_event(const struct ibv_context *context)
{
    struct open_device *listed = to_context((struct ibv_context *)context)->listed;
    bool found = false;

    for (unsigned port = 0; listed && port < seg->ports; port++)
        found |= load_relaxed(&listed->events[port].bits) != 0;
    spin_lock(&cq_list_lock);
    for (struct hca_cq *cq = cq_list; cq && !found; cq = cq->next)
        found = cq->ibv.context == context && load_relaxed(&cq->shared->events.bits);
    spin_unlock(&cq_list_lock);
    pthread_mutex_lock(&qp_list_mutex);
    for (struct hca_qp *qp = qp_list; qp && !found; qp = qp->next)
        found = qp->ibv.context == context && load_relaxed(&qp->shared->events.bits);
    for (struct hca_srq *srq = srq_list; srq && !found; srq = srq->next)
        found = srq->ibv.context == context && load_relaxed(&srq->shared->events.bits);
    pthread_mutex_unlock(&qp_list_mutex);
    return found;
}

static struct hca_context *contexts;
static pthread_mutex_t contexts_mutex = PTHREAD_MUTEX_INITIALIZER;

static void raise_missed_events(void)
{
    pthread_mutex_lock(&contexts_mutex);
    for (struct hca_context *c = contexts; c; c = c->next) {
        struct pollfd p = { .fd = c->verbs.context.async_fd, .events = POLLIN };
        if (has_event(&c->verbs.context) && poll(&p, 1, 0) == 0)
            notify_raise(proc_self, p.fd, c->async_id);
    }
    pthread_mutex_unlock(&contexts_mutex);
}

void verbs_watch_context(struct hca_context *c)
{
    pthread_mutex_lock(&contexts_mutex);
    list_push(contexts, c, next, link);
    pthread_mutex_unlock(&contexts_mutex);
    notify_add_service_hook(raise_missed_events);
}

void verbs_unwatch_context(struct hca_context *c)
{
    pthread_mutex_lock(&contexts_mutex);
    list_remove(c, next, link);
    pthread_mutex_unlock(&contexts_mutex);
}

EXPORT int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    uint64_t one;

    do {
        if (read(context->async_fd, &one, sizeof(one)) != sizeof(one))
            return -1;
    } while (!take_event(context, event));
    return 0;
}

static void acknowledge(pthread_mutex_t *mutex, pthread_cond_t *cond, uint32_t *completed)
{
    pthread_mutex_lock(mutex);
    ++*completed;
    pthread_cond_signal(cond);
    pthread_mutex_unlock(mutex);
}

EXPORT void ibv_ack_async_event(struct ibv_async_event *event)
{
    struct ibv_cq *cq = event->element.cq;
    struct ibv_qp *qp = event->element.qp;
    struct ibv_srq *srq = event->element.srq;

    switch (event->event_type) {
    case IBV_EVENT_CQ_ERR:
        acknowledge(&cq->mutex, &cq->cond, &cq->async_events_completed);
        break;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        acknowledge(&qp->mutex, &qp->cond, &qp->events_completed);
        break;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        acknowledge(&srq->mutex, &srq->cond, &srq->events_completed);
        break;
    default:
        break;
    }
}
