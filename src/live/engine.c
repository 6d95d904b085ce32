/* SPDX-License-Identifier: BSD-2-Clause */
#include "live/live.h"

#include "dma/agent.h"
#include "dma/mapped/share.h"
#include "hca/async.h"
#include "hca/epoch.h"
#include "hca/proc.h"
#include "hca/qp.h"
#include "hca/send_wqe.h"
#include "hca/traffic.h"
#include "transport/transport.h"
#include "util/log.h"

#include <stdlib.h>
#include <string.h>

#define RETRY_FOREVER 7

static struct spinlock stalled_lock;
static struct hca_qp *stalled;

static uint64_t ack_timeout_ns(const struct hca_qp *qp)
{
    if (!qp->attr.timeout)
        return UINT64_MAX / 4; /* wait forever */
    return (4096ull << qp->attr.timeout) * (qp->attr.retry_cnt + 1);
}

/* ---- waiting ---- */

static uint8_t peer_rnr_code(const struct hca_qp *qp)
{
    epoch_enter();
    struct shared_qp *peer = wqe_find_peer(qp);
    uint8_t code = peer ? peer->min_rnr_timer : 1;
    epoch_exit();
    return code;
}

static void begin_wait(struct hca_qp *qp, int why)
{
    enum stall_reason reason = why == WAIT_RNR    ? STALL_RNR
                               : why == WAIT_ROOM ? STALL_NO_ROOM
                                                  : STALL_NO_RESPONSE;

    if (qp->stall == reason)
        return;
    qp->stall = reason;
    qp->retries_left = qp->attr.rnr_retry;
    qp->retry_at =
        now_ns() + (reason == STALL_RNR ? transport_rnr_ns(peer_rnr_code(qp)) : ack_timeout_ns(qp));
}

/* Remembers the peer's process while it can be found: if that is dead, stop waiting. */
static bool peer_is_dead(struct hca_qp *qp)
{
    epoch_enter();
    struct shared_qp *peer = wqe_find_peer(qp);
    if (peer)
        qp->peer_word = proc_word(peer->proc);
    epoch_exit();
    return qp->peer_word && !proc_word_alive(qp->peer_word);
}

/* The status to fail with, or IBV_WC_SUCCESS to continue waiting. */
static enum ibv_wc_status check_timeout(struct hca_qp *qp)
{
    if (peer_is_dead(qp))
        return IBV_WC_RETRY_EXC_ERR;
    if (qp->stall == STALL_RNR && qp->attr.rnr_retry == 0)
        return IBV_WC_RNR_RETRY_EXC_ERR;
    if (qp->stall == STALL_NO_ROOM || now_ns() < qp->retry_at)
        return IBV_WC_SUCCESS;
    if (qp->stall == STALL_NO_RESPONSE)
        return IBV_WC_RETRY_EXC_ERR;
    if (qp->attr.rnr_retry != RETRY_FOREVER && --qp->retries_left == 0)
        return IBV_WC_RNR_RETRY_EXC_ERR;
    qp->retry_at = now_ns() + transport_rnr_ns(peer_rnr_code(qp));
    return IBV_WC_SUCCESS;
}

static void list_stalled(struct hca_qp *qp)
{
    spin_lock(&stalled_lock);
    qp->next_stalled = stalled;
    stalled = qp;
    spin_unlock(&stalled_lock);
    atomic_fetch_add(&hca_waiting, 1);
    agent_watch();
}

static void unlist_stalled(struct hca_qp *qp)
{
    spin_lock(&stalled_lock);
    for (struct hca_qp **link = &stalled; *link; link = &(*link)->next_stalled)
        if (*link == qp) {
            *link = qp->next_stalled;
            atomic_fetch_sub(&hca_waiting, 1);
            break;
        }
    spin_unlock(&stalled_lock);
}

/* ---- queued WQEs ---- */

static void append(struct hca_qp *qp, const struct send_wqe *w)
{
    struct send_wqe *copy = malloc(sizeof(*copy) + send_wqe_extra(w));

    if (!copy) {
        qp_complete_send(qp, w, IBV_WC_GENERAL_ERR, 0);
        qp_set_error(qp->shared);
        return;
    }
    send_wqe_copy(copy, w, (struct ibv_sge *)(copy + 1));
    bool first = !qp->pending;
    *qp->pending_end = copy;
    qp->pending_end = &copy->next;
    store_relaxed(&qp->alone, false);
    if (first)
        list_stalled(qp);
}

static void finish(struct hca_qp *qp, const struct send_wqe *w, int status, uint32_t byte_len)
{
    uint32_t rts = IBV_QPS_RTS;

    if (unlikely(status != IBV_WC_SUCCESS)) {
        /* Before the completion: a program that sees it must find the QP in error. */
        if (qp->ibv.qp_type == IBV_QPT_UD || qp->ibv.qp_type == IBV_QPT_UC)
            atomic_compare_exchange_strong(&qp->shared->state, &rts, IBV_QPS_SQE);
        else
            qp_set_error(qp->shared);
    }
    qp_complete_send(qp, w, status, byte_len);
    store_release(&qp->publishing, 0);
}

static void sq_submit(struct hca_qp *qp, struct send_wqe *w)
{
    uint32_t byte_len;
    int status;

    if (unlikely(qp->pending || qp_state(qp) != IBV_QPS_RTS)) {
        if (qp->pending || qp_state(qp) == IBV_QPS_SQD)
            append(qp, w);
        else
            qp_complete_send(qp, w, IBV_WC_WR_FLUSH_ERR, 0);
        return;
    }
    status = wqe_execute(qp, w, &byte_len);
    if (likely(status >= 0)) {
        finish(qp, w, status, byte_len);
        return;
    }
    begin_wait(qp, status);
    append(qp, w);
}

static void pop(struct hca_qp *qp)
{
    struct send_wqe *w = qp->pending;

    qp->pending = w->next;
    if (!qp->pending) {
        qp->pending_end = &qp->pending;
        unlist_stalled(qp);
    }
    qp->stall = NOT_STALLED;
    store_release(&qp->alone, qp->in_thread_domain && !qp->pending);
    free(w);
}

static void flush_pending(struct hca_qp *qp)
{
    while (qp->pending) {
        qp_complete_send(qp, qp->pending, IBV_WC_WR_FLUSH_ERR, 0);
        pop(qp);
    }
}

/* With the send queue's lock held. */
static void resume(struct hca_qp *qp)
{
    while (qp->pending) {
        uint32_t byte_len = 0;
        enum ibv_qp_state state = qp_state(qp);
        if (state == IBV_QPS_SQD)
            return;
        if (state != IBV_QPS_RTS) {
            flush_pending(qp);
            return;
        }
        int status = wqe_execute(qp, qp->pending, &byte_len);
        if (status < 0) {
            begin_wait(qp, status);
            status = check_timeout(qp);
            if (status == IBV_WC_SUCCESS)
                return;
        }
        finish(qp, qp->pending, status, byte_len);
        pop(qp);
    }
}

static void sq_progress(void)
{
    struct hca_qp *batch[64];
    unsigned count = 0;

    /* Locked, so that none can be destroyed meanwhile. */
    spin_lock(&stalled_lock);
    for (struct hca_qp *qp = stalled; qp && count < ARRAY_SIZE(batch); qp = qp->next_stalled)
        if (spin_trylock(&qp->sq_lock))
            batch[count++] = qp;
    spin_unlock(&stalled_lock);
    for (unsigned i = 0; i < count; i++) {
        resume(batch[i]);
        spin_unlock(&batch[i]->sq_lock);
    }
}

/* In the error state queued WQEs complete as flushed; a reset discards them. */
static void sq_flush(struct hca_qp *qp)
{
    spin_lock(&qp->sq_lock);
    if (qp_state(qp) == IBV_QPS_ERR)
        flush_pending(qp);
    while (qp->pending)
        pop(qp);
    qp->stall = NOT_STALLED;
    spin_unlock(&qp->sq_lock);
}

static void live_stop(void)
{
    if (getenv("VERBENA_STATS") || log_level >= LOG_LEVEL_INFO) {
        share_report();
        wqe_report_drops();
    }
    agent_stop();
}

const struct hca_engine live_engine = {
    .name = "live",
    .multicast = true,
    .send = sq_submit,
    .send_fast = send_fast,
    .write_fast = write_fast,
    .progress = sq_progress,
    .sq_flush = sq_flush,
    .start = agent_init,
    .stop = live_stop,
    .start_copy_agent = agent_start,
    .attach_memory = share_attach,
    .detach_memory = share_detach,
    .share_memory = share_used,
    .program_sleeps = agent_serve, /* which looks for damage */
    .port_traffic = traffic_of_port,
};
