/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/qp.h"

#include "hca/addr.h"
#include "hca/arena.h"
#include "hca/async.h"
#include "hca/bounce.h"
#include "hca/cq.h"
#include "hca/engine.h"
#include "hca/epoch.h"
#include "hca/idle.h"
#include "hca/notify.h"
#include "hca/proc.h"
#include "hca/rq.h"
#include "hca/srq.h"
#include "hca/table.h"
#include "hca/traffic.h"
#include "hca/observer.h"
#include "util/list.h"
#include "util/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QP_INDEX(qpn) ((qpn) & ((1u << QP_INDEX_BITS) - 1))
#define QPN_MULTICAST 0xffffffu

pthread_mutex_t qp_list_mutex = PTHREAD_MUTEX_INITIALIZER;
struct hca_qp *qp_list;

static struct hca_qp *own_qps[1u << QP_INDEX_BITS];
static _Atomic uint32_t attention_seen, reaps_seen; /* every poll reads them */

struct hca_qp *qp_by_number(uint32_t qpn)
{
    struct hca_qp *qp = own_qps[QP_INDEX(qpn)];

    return qp && qp->ibv.qp_num == qpn ? qp : NULL;
}

enum ibv_qp_state qp_state(const struct hca_qp *qp)
{
    return load_relaxed(&qp->shared->state);
}

void qp_forget(void)
{
    for (struct hca_qp *qp = qp_list; qp; qp = qp->next)
        own_qps[QP_INDEX(qp->ibv.qp_num)] = NULL;
    qp_list = NULL;
    srq_forget();
    cq_list = NULL;
    pthread_mutex_init(&qp_list_mutex, NULL);
}

/* ---- errors ---- */

void qp_set_error(struct shared_qp *qp)
{
    uint32_t state = load_acquire(&qp->state);

    while (state != IBV_QPS_RESET && state != IBV_QPS_ERR)
        if (atomic_compare_exchange_weak(&qp->state, &state, IBV_QPS_ERR)) {
            if (likely(qp->proc < MAX_PROCS))
                atomic_fetch_add(&proc_slot(qp->proc)->attention, 1);
            return;
        }
}

void qp_fail(struct shared_qp *qp, enum ibv_event_type event)
{
    struct shared_cq *cq = cq_open(qp->recv_cq);

    qp_set_error(qp);
    async_raise(qp->proc, &qp->events, event);
    if (cq && cq->has_channel) /* its receives are flushed when the owner wakes and polls */
        cq_fire(cq, CQE_SOLICITED, IBV_WC_WR_FLUSH_ERR);
}

void qp_complete_send(struct hca_qp *qp, const struct send_wqe *wqe, enum ibv_wc_status status,
                      uint32_t byte_len)
{
    static const uint8_t completion_of[] = {
        [IBV_WR_RDMA_WRITE] = IBV_WC_RDMA_WRITE,
        [IBV_WR_RDMA_WRITE_WITH_IMM] = IBV_WC_RDMA_WRITE,
        [IBV_WR_SEND] = IBV_WC_SEND,
        [IBV_WR_SEND_WITH_IMM] = IBV_WC_SEND,
        [IBV_WR_SEND_WITH_INV] = IBV_WC_SEND,
        [IBV_WR_RDMA_READ] = IBV_WC_RDMA_READ,
        [IBV_WR_ATOMIC_CMP_AND_SWP] = IBV_WC_COMP_SWAP,
        [IBV_WR_ATOMIC_FETCH_AND_ADD] = IBV_WC_FETCH_ADD,
        [IBV_WR_LOCAL_INV] = IBV_WC_LOCAL_INV,
        [IBV_WR_BIND_MW] = IBV_WC_BIND_MW,
        [IBV_WR_ATOMIC_WRITE] = IBV_WC_ATOMIC_WRITE,
    };

    if (unlikely(hca_observer != NULL))
        status = hca_observer->send_completes(qp, wqe, status);
    if (status == IBV_WC_SUCCESS && !(wqe->flags & IBV_SEND_SIGNALED))
        return;
    if (unlikely(status != IBV_WC_SUCCESS))
        qp_log_send(qp, wqe, status);
    cq_push_send((struct hca_cq *)qp->ibv.send_cq, qp, wqe->wr_id, wqe->sq_index, status,
                 completion_of[wqe->opcode], byte_len);
}

/* With the receive queue's lock held, when no sender can take from the queue. */
static void flush_receives(struct hca_qp *qp)
{
    struct shared_cq *cq = cq_open(qp->shared->recv_cq);
    struct rq_view view;

    if (!cq || !rq_open(qp->shared->rq, &view))
        return;
    epoch_enter();
    while (rq_peek(&view)) {
        uint64_t ticket;
        struct cqe *e = cq_reserve(cq, &ticket);
        if (!e)
            break;
        e->qpn = qp->ibv.qp_num;
        e->srqn = 0;
        e->slot = view.slot;
        e->length = 0;
        rq_advance(view.rq);
        cq_publish(cq, e, ticket, IBV_WC_WR_FLUSH_ERR, IBV_WC_RECV, 0);
    }
    epoch_exit();
}

/* Also flush receives that a sender had taken but not completed when it died. */
static void recover_lost_receives(struct hca_qp *qp)
{
    struct hca_cq *cq = (struct hca_cq *)qp->ibv.recv_cq;
    uint8_t *accounted = calloc(qp->rq.depth, 1);

    if (!accounted)
        return;
    spin_lock(&cq->lock);
    spin_lock(&qp->rq.lock);
    cq_mark_waiting(cq, qp, accounted);
    rq_put_back_lost(&qp->rq, accounted);
    spin_unlock(&qp->rq.lock);
    spin_unlock(&cq->lock);
    free(accounted);
}

static void flush(struct hca_qp *qp)
{
    qp->flushed = true;
    qp_log_responder(qp);
    epoch_grace();
    hca_engine->sq_flush(qp);
    if (qp->rq.shared) {
        recover_lost_receives(qp);
        spin_lock(&qp->rq.lock);
        flush_receives(qp);
        spin_unlock(&qp->rq.lock);
    } else if (qp->ibv.srq) {
        async_raise(proc_self, &qp->shared->events, IBV_EVENT_QP_LAST_WQE_REACHED);
    }
}

void qp_flush_late_receive(struct hca_qp *qp)
{
    if (qp_state(qp) == IBV_QPS_ERR && qp->flushed)
        flush_receives(qp);
}

void qp_recheck_receives(void)
{
    pthread_mutex_lock(&qp_list_mutex);
    for (struct hca_qp *qp = qp_list; qp; qp = qp->next)
        if (qp->rq.shared)
            rq_recheck(&qp->rq, qp->pd->id);
    srq_recheck_receives();
    pthread_mutex_unlock(&qp_list_mutex);
}

bool qp_needs_attention(void)
{
    return load_relaxed(&proc_slot(proc_self)->attention) != load_relaxed(&attention_seen) ||
           load_relaxed(&seg->reap_count) != load_relaxed(&reaps_seen);
}

static bool completion_waits(void *arg, uint32_t slot)
{
    struct hca_qp *qp = arg;

    return cq_ring_holds((struct hca_cq *)qp->ibv.recv_cq, qp->ibv.qp_num, 0, slot);
}

static bool has_overrun(struct ibv_cq *cq)
{
    return cq && load_relaxed(&((struct hca_cq *)cq)->shared->overrun);
}

void qp_handle_errors(void)
{
    pthread_mutex_lock(&qp_list_mutex);
    uint32_t reaps = load_acquire(&seg->reap_count);
    bool reaped = load_relaxed(&reaps_seen) != reaps;
    store_relaxed(&attention_seen, load_acquire(&proc_slot(proc_self)->attention));
    store_relaxed(&reaps_seen, reaps);
    for (struct hca_qp *qp = qp_list; qp; qp = qp->next) {
        if (unlikely(has_overrun(qp->ibv.send_cq) || has_overrun(qp->ibv.recv_cq)) &&
            qp_state(qp) > IBV_QPS_INIT && qp_state(qp) != IBV_QPS_ERR)
            qp_fail(qp->shared, IBV_EVENT_QP_FATAL);
        if (qp_state(qp) == IBV_QPS_ERR && !qp->flushed)
            flush(qp);
        if (reaped && qp->ibv.qp_type == IBV_QPT_UD && qp->rq.shared && !qp->flushed)
            rq_recover(&qp->rq, qp->pd->id, completion_waits, qp);
    }
    if (reaped)
        srq_recover_receives();
    pthread_mutex_unlock(&qp_list_mutex);
    if (reaped)
        bounce_free_abandoned();
}

/* ---- damage ---- */

#define DAMAGE_LOOK_NS 1000000000ull
#define DAMAGE_LOOKS   3 /* that agree, before a grace period tells for sure */

/* `counts` changes with each message that arrives. */
static bool is_overwritten(struct hca_qp *qp, uint64_t *counts)
{
    const struct shared_qp *shared = qp->shared;
    struct hca_cq *cq = (struct hca_cq *)qp->ibv.recv_cq;
    uint32_t state = qp_state(qp);
    uint64_t tail;
    bool idle, differs = cq_is_overwritten(cq, &tail, &idle);

    spin_lock(&qp->rq.lock);
    uint32_t out = qp->rq.max_wr - qp->rq.free_count;
    uint32_t posted = load_relaxed(&qp->rq.shared->posted);
    uint32_t head = load_relaxed(&qp->rq.shared->head);
    spin_unlock(&qp->rq.lock);
    *counts = tail << 32 ^ (uint64_t)posted << 16 ^ head;
    /* A receive that is not queued has a completion in the ring, unless a sender is about to write
     * it. */
    return differs || (idle && posted - head != out) ||
           load_relaxed(&shared->qpn) != qp->ibv.qp_num || shared->proc != proc_self ||
           (state != load_relaxed(&qp->own_state) && state != IBV_QPS_ERR) ||
           load_relaxed(&shared->dest_qpn) != load_relaxed(&qp->own_dest_qpn) ||
           shared->recv_cq != seg_offset(cq->shared) || shared->rq != seg_offset(qp->rq.shared) ||
           qp->rq.shared->depth != qp->rq.depth;
}

static bool may_be_looked_at(const struct hca_qp *qp)
{
    enum ibv_qp_state state = load_relaxed(&qp->own_state);

    return qp->owner == proc_self && qp->ibv.qp_type == IBV_QPT_RC && qp->rq.shared &&
           !qp->flushed && (state == IBV_QPS_RTR || state == IBV_QPS_RTS);
}

static bool is_damaged(struct hca_qp *qp)
{
    uint64_t counts, later;

    if (likely(!may_be_looked_at(qp) || !is_overwritten(qp, &counts))) {
        qp->odd_looks = 0;
        return false;
    }
    qp->odd_looks = counts == qp->odd_counts ? qp->odd_looks + 1 : 1;
    qp->odd_counts = counts;
    if (qp->odd_looks < DAMAGE_LOOKS)
        return false;
    qp->odd_looks = 0;
    if (cq_skip_if_stuck((struct hca_cq *)qp->ibv.recv_cq))
        return false;
    /* Without a grace period, a sender is stopped in the middle. */
    return epoch_grace() && is_overwritten(qp, &later) && later == counts;
}

/* As flush(), by memory of this process alone. */
static void fail_overwritten(struct hca_qp *qp)
{
    struct hca_cq *cq = (struct hca_cq *)qp->ibv.recv_cq;
    uint32_t oldest = load_relaxed(&qp->rq.shared->posted);
    uint64_t wr_id;

    log_error("another process has overwritten QP 0x%06x in %s: it is in error now", qp->ibv.qp_num,
              segment_path());
    store_release(&qp->shared->state, IBV_QPS_ERR);
    qp->flushed = true;
    epoch_grace();
    cq_restore(cq);
    hca_engine->sq_flush(qp);
    for (uint32_t i = 0; i < qp->rq.depth; i++)
        if (rq_complete(&qp->rq, (oldest + i) & (qp->rq.depth - 1), &wr_id))
            cq_push_send(cq, qp, wr_id, qp->sq_posted - 1, IBV_WC_WR_FLUSH_ERR, IBV_WC_RECV, 0);
    async_raise(proc_self, &qp->shared->events, IBV_EVENT_QP_FATAL);
    cq_wake(cq);
}

void qp_look_for_damage(void)
{
    static _Atomic uint64_t next;
    uint64_t now = coarse_now_ns(), due = load_relaxed(&next);

    if (now < due || hca_engine->charge || hca_is_ethernet() ||
        !atomic_compare_exchange_strong(&next, &due, now + DAMAGE_LOOK_NS) ||
        pthread_mutex_trylock(&qp_list_mutex))
        return;
    epoch_repair_lines();
    for (struct hca_qp *qp = qp_list; qp; qp = qp->next)
        if (unlikely(is_damaged(qp)))
            fail_overwritten(qp);
    pthread_mutex_unlock(&qp_list_mutex);
}

/* ---- creating and destroying ---- */

static int publish_number(struct hca_qp *qp)
{
    uint32_t index;
    struct shared_qp *shared = table_alloc(&qp_table, &index);

    if (!shared)
        return errno;
    memset(shared, 0, sizeof(*shared));
    uint32_t generation = atomic_fetch_add(&seg->qp_generation, 1);
    uint32_t qpn = (index | generation << QP_INDEX_BITS) & 0xffffff;
    if (qpn == QPN_MULTICAST)
        qpn = index;
    qp->shared = shared;
    qp->ibv.qp_num = qpn;
    return 0;
}

static void fill_shared(struct hca_qp *qp, struct hca_context *context)
{
    struct shared_qp *shared = qp->shared;
    struct hca_cq *recv_cq = (struct hca_cq *)qp->ibv.recv_cq;

    qp->owner = proc_self;
    shared->proc = proc_self;
    shared->type = qp->ibv.qp_type;
    shared->pd = qp->pd ? qp->pd->id : 0;
    shared->rq = qp->rq.shared ? seg_offset(qp->rq.shared) : 0;
    shared->recv_cq = recv_cq ? seg_offset(recv_cq->shared) : 0;
    shared->srqn = qp->ibv.srq ? ((struct hca_srq *)qp->ibv.srq)->srqn : 0;
    shared->xrcd = qp->xrcd ? qp->xrcd->id : 0;
    shared->events.fd = context->verbs.context.async_fd;
    shared->events.id = context->async_id;
    store_release(&shared->qpn, qp->ibv.qp_num);
}

static void count_uses(struct hca_qp *qp, int change)
{
    if (qp->ibv.send_cq)
        atomic_fetch_add(&((struct hca_cq *)qp->ibv.send_cq)->users, change);
    if (qp->ibv.recv_cq)
        atomic_fetch_add(&((struct hca_cq *)qp->ibv.recv_cq)->users, change);
    if (qp->ibv.srq)
        atomic_fetch_add(&((struct hca_srq *)qp->ibv.srq)->users, change);
    if (qp->pd)
        atomic_fetch_add(&qp->pd->users, change);
    if (qp->xrcd)
        atomic_fetch_add(&qp->xrcd->users, change);
}

struct hca_qp *qp_create(struct hca_context *context, struct hca_pd *pd,
                         const struct ibv_qp_init_attr *init, struct hca_xrcd *xrcd)
{
    struct hca_qp *qp = aligned_alloc(CACHE_LINE, sizeof(*qp));
    bool has_rq = !init->srq && init->qp_type != IBV_QPT_XRC_SEND &&
                  init->qp_type != IBV_QPT_XRC_RECV;
    int err;

    if (!qp)
        return NULL;
    memset(qp, 0, sizeof(*qp));
    qp->every_send_flags = init->sq_sig_all ? IBV_SEND_SIGNALED : 0;
    qp->pd = pd;
    qp->xrcd = xrcd;
    qp->init = *init;
    qp->cap = init->cap;
    qp->ibv.context = &context->verbs.context;
    if (qp->cap.max_inline_data < HCA_MIN_INLINE)
        qp->cap.max_inline_data = HCA_MIN_INLINE;
    qp->pending_end = &qp->pending;
    qp->ibv.qp_type = init->qp_type;
    qp->ibv.send_cq = init->send_cq;
    qp->ibv.recv_cq = init->recv_cq;
    qp->ibv.srq = init->srq;
    qp->attr.qp_state = IBV_QPS_RESET;
    if (has_rq && (err = rq_create(&qp->rq, qp->cap.max_recv_wr, qp->cap.max_recv_sge,
                                   init->qp_type == IBV_QPT_UD)))
        goto free_qp;
    if ((err = publish_number(qp)))
        goto free_rq;
    fill_shared(qp, context);
    count_uses(qp, 1);
    pthread_mutex_lock(&qp_list_mutex);
    own_qps[QP_INDEX(qp->ibv.qp_num)] = qp;
    list_push(qp_list, qp, next, link);
    pthread_mutex_unlock(&qp_list_mutex);
    return qp;

free_rq:
    rq_destroy(&qp->rq);
free_qp:
    free(qp);
    errno = err;
    return NULL;
}

static void purge_completions(struct hca_qp *qp)
{
    if (qp->ibv.send_cq)
        cq_purge((struct hca_cq *)qp->ibv.send_cq, qp);
    if (qp->ibv.recv_cq && qp->ibv.recv_cq != qp->ibv.send_cq)
        cq_purge((struct hca_cq *)qp->ibv.recv_cq, qp);
}

void qp_set_unreachable(struct hca_qp *qp)
{
    bool was_reachable = qp_state(qp) != IBV_QPS_RESET;

    store_release(&qp->shared->state, IBV_QPS_RESET);
    store_release(&qp->shared->qpn, 0);
    if (was_reachable)
        epoch_grace();
}

void qp_destroy(struct hca_qp *qp)
{
    idle_note_end(qp);
    pthread_mutex_lock(&qp_list_mutex);
    own_qps[QP_INDEX(qp->ibv.qp_num)] = NULL;
    list_remove(qp, next, link);
    pthread_mutex_unlock(&qp_list_mutex);
    async_withdraw(&qp->shared->events, qp->ibv.context->async_fd);
    hca_engine->sq_flush(qp);
    purge_completions(qp);
    count_uses(qp, -1);
    rq_destroy(&qp->rq);
    traffic_retire(qp->shared);
    table_free(&qp_table, QP_INDEX(qp->ibv.qp_num));
    free(qp->checked);
    qp->checked = NULL;
    hca_free_object(qp);
}

/* ---- state transitions ---- */

/* Over Ethernet, only a GID is an address. */
static bool leads_nowhere(const struct ibv_ah_attr *av)
{
    union ibv_gid own;

    return hca_is_ethernet() && (!av->is_global || !hca_engine->gid(av->grh.sgid_index, &own));
}

static bool values_are_valid(const struct hca_qp *qp, const struct ibv_qp_attr *a, int mask)
{
    const struct ibv_ah_attr *av = &a->ah_attr;

    return !((mask & IBV_QP_PORT && (a->port_num < 1 || a->port_num > seg->ports)) ||
             (mask & IBV_QP_PKEY_INDEX && a->pkey_index != 0) ||
             (mask & IBV_QP_PATH_MTU &&
              (a->path_mtu < IBV_MTU_256 || a->path_mtu > hca_link_mtu())) ||
             (mask & IBV_QP_DEST_QPN && a->dest_qp_num > 0xffffff) ||
             (mask & IBV_QP_MIN_RNR_TIMER && a->min_rnr_timer > 31) ||
             (mask & IBV_QP_TIMEOUT && a->timeout > 31) ||
             (mask & IBV_QP_RETRY_CNT && a->retry_cnt > 7) ||
             (mask & IBV_QP_RNR_RETRY && a->rnr_retry > 7) ||
             (mask & IBV_QP_MAX_QP_RD_ATOMIC && a->max_rd_atomic > HCA_MAX_RD_ATOMIC) ||
             (mask & IBV_QP_MAX_DEST_RD_ATOMIC && a->max_dest_rd_atomic > HCA_MAX_RD_ATOMIC) ||
             (mask & IBV_QP_AV && (av->port_num < 1 || av->port_num > seg->ports || av->sl > 15)) ||
             (mask & IBV_QP_AV && av->is_global && av->grh.sgid_index >= HCA_GIDS) ||
             (mask & IBV_QP_AV && leads_nowhere(av)));
}

static void remember(struct ibv_qp_attr *have, const struct ibv_qp_attr *a, int mask)
{
#define KEEP(bit, field)                                                                           \
    if (mask & (bit))                                                                              \
    have->field = a->field
    KEEP(IBV_QP_EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify);
    KEEP(IBV_QP_ACCESS_FLAGS, qp_access_flags);
    KEEP(IBV_QP_PKEY_INDEX, pkey_index);
    KEEP(IBV_QP_PORT, port_num);
    KEEP(IBV_QP_QKEY, qkey);
    KEEP(IBV_QP_AV, ah_attr);
    KEEP(IBV_QP_PATH_MTU, path_mtu);
    KEEP(IBV_QP_TIMEOUT, timeout);
    KEEP(IBV_QP_RETRY_CNT, retry_cnt);
    KEEP(IBV_QP_RNR_RETRY, rnr_retry);
    KEEP(IBV_QP_RQ_PSN, rq_psn);
    KEEP(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
    KEEP(IBV_QP_ALT_PATH, alt_ah_attr);
    KEEP(IBV_QP_ALT_PATH, alt_pkey_index);
    KEEP(IBV_QP_ALT_PATH, alt_port_num);
    KEEP(IBV_QP_ALT_PATH, alt_timeout);
    KEEP(IBV_QP_MIN_RNR_TIMER, min_rnr_timer);
    KEEP(IBV_QP_SQ_PSN, sq_psn);
    KEEP(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
    KEEP(IBV_QP_PATH_MIG_STATE, path_mig_state);
    KEEP(IBV_QP_DEST_QPN, dest_qp_num);
#undef KEEP
}

static void note_destination(struct hca_qp *qp)
{
    char user[24];

    if (hca_is_ethernet())
        return;
    qp->dest_lid = addr_lid_of(&qp->attr.ah_attr);
    snprintf(user, sizeof(user), "QP 0x%x", qp->ibv.qp_num);
    addr_warn_if_foreign(&qp->attr.ah_attr, user);
}

static void publish_attributes(struct hca_qp *qp, const struct hca_context *context)
{
    struct shared_qp *shared = qp->shared;

    store_relaxed(&shared->access, qp->attr.qp_access_flags);
    store_relaxed(&shared->qkey, qp->attr.qkey);
    store_relaxed(&shared->dest_qpn, qp->attr.dest_qp_num);
    qp->sl = qp->attr.ah_attr.sl;
    store_relaxed(&shared->min_rnr_timer, qp->attr.min_rnr_timer);
    shared->port = qp->attr.port_num;
    if (qp->attr.port_num)
        store_relaxed(&shared->lid,
                      addr_lid(context->node, context->device->index, qp->attr.port_num));
}

/* EBUSY: a stopped thread may still deliver to the QP, which is moved to error. */
static int reset(struct hca_qp *qp, enum ibv_qp_state from)
{
    struct ibv_qp_attr blank = { .qp_state = IBV_QPS_RESET };

    store_release(&qp->shared->state, IBV_QPS_RESET);
    if (from == IBV_QPS_RESET)
        return 0;
    if (!epoch_grace()) {
        store_release(&qp->shared->state, IBV_QPS_ERR);
        atomic_fetch_add(&proc_slot(proc_self)->attention, 1);
        return EBUSY;
    }
    hca_engine->sq_flush(qp);
    purge_completions(qp);
    if (qp->rq.shared)
        rq_reset(&qp->rq);
    traffic_retire(qp->shared);
    store_relaxed(&qp->shared->comm_est, 0);
    qp->shared->refusal = (struct refusal){ 0 };
    store_relaxed(&qp->sq_freed, qp->sq_posted);
    qp->attr = blank;
    qp->route.peer = NULL;
    qp->write_route.peer = NULL;
    qp->flushed = false;
    return 0;
}

static int enter_state(struct hca_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to)
{
    uint32_t expected = from;
    int err = 0;

    if (to == IBV_QPS_RESET) {
        /* Another thread may be flushing the QP: that must not hit what comes after the reset. */
        pthread_mutex_lock(&qp_list_mutex);
        err = reset(qp, from);
        pthread_mutex_unlock(&qp_list_mutex);
    } else if (to == IBV_QPS_ERR) {
        store_release(&qp->shared->state, IBV_QPS_ERR);
        atomic_fetch_add(&proc_slot(proc_self)->attention, 1);
        qp_handle_errors();
    } else if (from != to) {
        /* If a peer has moved the QP to error, it stays there. */
        atomic_compare_exchange_strong(&qp->shared->state, &expected, to);
    }
    if (hca_engine->qp_modified && from != to && (to == IBV_QPS_RTR || to == IBV_QPS_RTS))
        hca_engine->qp_modified(qp, from, to);
    if (to == IBV_QPS_SQD && qp->attr.en_sqd_async_notify && !qp->pending)
        async_raise(proc_self, &qp->shared->events, IBV_EVENT_SQ_DRAINED);
    qp->was_ready |= to == IBV_QPS_RTS;
    if (to == IBV_QPS_RTS && qp->pending)
        hca_engine->progress();
    return err;
}

int qp_modify(struct hca_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    enum ibv_qp_state from = qp_state(qp);
    enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : from;
    int err;

    if (mask & IBV_QP_CUR_STATE) {
        if ((unsigned)attr->cur_qp_state > IBV_QPS_ERR)
            return EINVAL;
        if (attr->cur_qp_state != from)
            return EINVAL;
    }
    if ((err = qp_check_transition(qp->ibv.qp_type, from, to, mask)))
        return err;
    if (!values_are_valid(qp, attr, mask))
        return EINVAL;
    notify_serve_if_wanted();
    remember(&qp->attr, attr, mask);
    if (mask & IBV_QP_AV)
        note_destination(qp);
    publish_attributes(qp, to_context(qp->ibv.context));
    err = enter_state(qp, from, to);
    qp->attr.qp_state = qp_state(qp);
    qp->attr.cur_qp_state = qp->attr.qp_state;
    qp->ibv.state = qp->attr.qp_state;
    store_relaxed(&qp->own_state, qp->attr.qp_state);
    store_relaxed(&qp->own_dest_qpn, qp->attr.dest_qp_num);
    return err;
}

void qp_make_grh(struct ibv_grh *grh, uint16_t slid, uint32_t length, const union ibv_gid *dgid)
{
    unsigned node, device, port;

    memset(grh, 0, sizeof(*grh));
    grh->version_tclass_flow = htobe32(6u << 28);
    grh->paylen = htobe16(length);
    grh->next_hdr = 0x1b;
    grh->hop_limit = 1;
    if (addr_from_lid(slid, &node, &device, &port))
        addr_gid(node, device, port, &grh->sgid);
    grh->dgid = *dgid;
}
