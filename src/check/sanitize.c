/* SPDX-License-Identifier: BSD-2-Clause */
#include "check/sanitize.h"

#include "check/check.h"
#include "check/finding.h"
#include "check/objects.h"
#include "check/receives.h"
#include "hca/mr.h"
#include "hca/qp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPORTS_PER_RULE 10

bool sanitize_strict;

bool sanitize_is_enough(enum sanitize_rule rule)
{
    static atomic_uint reports[RULE_COUNT];

    return atomic_fetch_add(&reports[rule], 1) >= REPORTS_PER_RULE;
}

/* ---- send buffers ---- */

static uint64_t mix(uint64_t sum, const char *bytes, uint64_t length)
{
    uint64_t word = 0;

    for (; length >= sizeof(word); bytes += sizeof(word), length -= sizeof(word)) {
        memcpy(&word, bytes, sizeof(word));
        sum = (sum ^ word) * 0x9e3779b97f4a7c15ull;
        sum ^= sum >> 29;
    }
    word = length;
    memcpy(&word, bytes, length);
    return (sum ^ word) * 0x9e3779b97f4a7c15ull;
}

static bool reads_memory(uint8_t opcode)
{
    return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM ||
           opcode == IBV_WR_SEND_WITH_INV || opcode == IBV_WR_RDMA_WRITE ||
           opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

/* The checksum of what a request sends. False: its memory is not known any more, or was never. */
static bool sum_of(const struct hca_qp *qp, const struct post *post, uint64_t *sum)
{
    uint64_t length = 0;

    *sum = 0;
    for (uint32_t i = 0; i < post->num_sge; i++) {
        const struct ibv_sge *sge = &post->sge[i];
        struct mem_ref ref;

        if (!mr_local(sge->lkey, qp->pd->id, sge->addr, sge->length, false, &ref) ||
            ref.kind != MEM_PROCESS || load_relaxed(&ref.mr->unmapped))
            return false;
        *sum = mix(*sum, (const char *)ref.addr, sge->length);
        length += sge->length;
    }
    return length == post->length;
}

/* An earlier RDMA read may fill the buffer of a fenced request after it was posted. A datagram is
 * sent once: UCX reuses its buffer when the peer has answered it, whatever the CQ says. */
void sanitize_post(const struct hca_qp *qp, const struct send_wqe *wqe, struct post *post)
{
    for (uint32_t i = 0; i < wqe->num_sge && sanitize_strict; i++)
        receives_not_here(wqe->sge[i].addr, wqe->sge[i].length);
    post->is_summed = post->is_signaled && !post->is_inline && !post->is_fenced &&
                      qp->ibv.qp_type != IBV_QPT_UD && reads_memory(post->opcode) &&
                      sum_of(qp, post, &post->sum);
}

static void verify(const struct hca_qp *qp, const struct post *post)
{
    struct stacktrace here;
    struct finding *finding;
    uint64_t sum;

    if (!post->is_summed || !sum_of(qp, post, &sum) || sum == post->sum ||
        sanitize_is_enough(RULE_SEND_BUFFER))
        return;
    stacktrace_take(&here);
    finding = finding_begin("send-buffer-changed",
                            "QP 0x%x: the %llu bytes of a %s, wr_id 0x%llx, first at 0x%llx, were "
                            "changed between post and completion",
                            qp->ibv.qp_num, (unsigned long long)post->length,
                            qp_opcode_name(post->opcode), (unsigned long long)post->wr_id,
                            (unsigned long long)post->sge[0].addr);
    finding_stack(finding, "posted", &post->posted);
    finding_stack(finding, "completion polled", &here);
    finding_end(finding);
}

static void send_polled(const struct ibv_wc *wc)
{
    struct hca_qp *qp = qp_by_number(wc->qp_num);
    struct post *post;

    if (!qp)
        return;
    spin_lock(&qp->sq_lock);
    post = post_completed(qp, wc->wr_id, wc->status != IBV_WC_SUCCESS);
    if (post && wc->status == IBV_WC_SUCCESS)
        verify(qp, post);
    spin_unlock(&qp->sq_lock);
}

/* Of a failed completion, wr_id, status, qp_num and vendor_err mean something, and nothing else. */
static void scramble(struct ibv_wc *wc)
{
    struct ibv_wc useless;

    memset(&useless, 0xa5, sizeof(useless));
    useless.wr_id = wc->wr_id;
    useless.status = wc->status;
    useless.vendor_err = wc->vendor_err;
    useless.qp_num = wc->qp_num;
    *wc = useless;
}

void check_polled(struct ibv_wc *wc)
{
    if (!check_sanitizes)
        return;
    if (!(wc->opcode & IBV_WC_RECV))
        send_polled(wc);
    if (wc->status != IBV_WC_SUCCESS)
        scramble(wc);
}

/* ---- completions that nobody takes ---- */

void check_queue_full(struct hca_qp *qp)
{
    const struct post *oldest = NULL;
    bool ends = false;
    struct stacktrace posted = { 0 }, here;
    struct finding *finding;
    uint32_t count;

    spin_lock(&qp->sq_lock);
    count = qp->sq_posted - load_relaxed(&qp->sq_freed);
    for (uint32_t i = qp->sq_posted - count; i != qp->sq_posted && !ends; i++) {
        const struct post *post = post_find(qp, i);

        oldest = oldest ? oldest : post;
        ends = !post || post->is_signaled;
    }
    if (oldest)
        posted = oldest->posted;
    spin_unlock(&qp->sq_lock);
    if (ends || !oldest || qp_state(qp) != IBV_QPS_RTS || sanitize_is_enough(RULE_NEVER_REAPED))
        return;
    stacktrace_take(&here);
    finding = finding_begin("never-reaped",
                            "the send queue of QP 0x%x is full, and stays full: none of its %u "
                            "requests is signalled",
                            qp->ibv.qp_num, count);
    finding_stack(finding, "posted", &here);
    finding_stack(finding, "the oldest was posted", &posted);
    finding_end(finding);
}

void sanitize_overrun(const struct hca_cq *cq)
{
    struct stacktrace here;
    struct finding *finding;
    struct object made;

    if (!check_sanitizes || sanitize_is_enough(RULE_OVERRUN))
        return;
    stacktrace_take(&here);
    finding = finding_begin("cq-overrun",
                            "a CQ of %u entries is full of completions that the program has not "
                            "polled; the next one is lost",
                            load_relaxed(&cq->shared->capacity));
    finding_stack(finding, "found", &here);
    if (object_at(CHECK_CQ, cq, &made))
        finding_stack(finding, "made", &made.made);
    finding_end(finding);
}

/* ---- regions ---- */

/* What the program takes away: a region, or memory. */
struct loss {
    const char *what, *how;
    uint32_t lkey; /* 0: the memory */
    uint64_t first, end;
};

static bool loses(const struct post *post, const struct loss *loss)
{
    for (uint32_t i = 0; post->is_signaled && !post->is_inline && i < post->num_sge; i++) {
        const struct ibv_sge *sge = &post->sge[i];

        if (sge->length && (loss->lkey ? sge->lkey == loss->lkey
                                       : sge->addr < loss->end &&
                                             sge->addr + sge->length > loss->first))
            return true;
    }
    return false;
}

/* A signalled send of a QP that still works, whose completion the program has not polled. With the
 * send queue's lock held. */
static void find_use(struct hca_qp *qp, const struct loss *loss, struct finding **finding)
{
    for (uint32_t i = load_relaxed(&qp->sq_freed); i != qp->sq_posted && !*finding; i++) {
        struct post *post = post_find(qp, i);

        if (!post || !loses(post, loss))
            continue;
        post->is_summed = false;
        if (sanitize_is_enough(RULE_REGION_IN_USE))
            continue;
        *finding = finding_begin("region-in-use",
                                 "%s, but QP 0x%x has not completed a %s that uses it, wr_id 0x%llx",
                                 loss->what, qp->ibv.qp_num, qp_opcode_name(post->opcode),
                                 (unsigned long long)post->wr_id);
        finding_stack(*finding, "posted", &post->posted);
    }
}

/* Tells of a request that uses what is about to be lost. Without `waits`, queues whose locks are
 * held are left out. The caller ends the finding; NULL: no request does. */
static struct finding *report_loss(const struct loss *loss, bool waits)
{
    struct finding *finding = NULL;
    struct stacktrace here;

    if (waits)
        pthread_mutex_lock(&qp_list_mutex);
    else if (pthread_mutex_trylock(&qp_list_mutex))
        return NULL;
    for (struct hca_qp *qp = qp_list; qp && !finding; qp = qp->next) {
        if (qp_state(qp) != IBV_QPS_RTS)
            continue;
        if (waits)
            spin_lock(&qp->sq_lock);
        else if (!spin_trylock(&qp->sq_lock))
            continue;
        find_use(qp, loss, &finding);
        spin_unlock(&qp->sq_lock);
    }
    pthread_mutex_unlock(&qp_list_mutex);
    if (finding) {
        stacktrace_take(&here);
        finding_stack(finding, loss->how, &here);
    }
    return finding;
}

/* A report may unmap memory itself, with any of the locks held. */
void sanitize_unmaps(const void *addr, size_t length)
{
    struct loss loss = { "memory is unmapped", "unmapped", 0, (uintptr_t)addr,
                         (uintptr_t)addr + length };

    if (sanitize_strict)
        receives_unmapped(addr, length);
    finding_end(report_loss(&loss, false));
}

void check_pins(const void *addr, size_t length)
{
    if (sanitize_strict)
        receives_accessible(addr, length);
}

void check_deregisters(const struct ibv_mr *mr)
{
    char what[64];
    struct loss loss = { what, "deregistered", .lkey = mr->lkey };
    struct finding *finding;
    struct object region;

    if (!check_sanitizes)
        return;
    snprintf(what, sizeof(what), "the region with lkey 0x%x is deregistered", mr->lkey);
    check_pins(mr->addr, mr->length); /* what follows is the program's */
    finding = report_loss(&loss, true);
    if (finding && object_find(CHECK_MR, mr->lkey, &region))
        finding_stack(finding, "registered", &region.made);
    finding_end(finding);
}

/* ---- leaks ---- */

static void report_leak(const struct object *object, void *context)
{
    struct finding *finding;

    /* Each of these objects begins with its context. */
    if (*(struct ibv_context *const *)object->address != context || object->inherited ||
        sanitize_is_enough(RULE_LEAK))
        return;
    finding = finding_begin("leak", "the device is closed, but %s still exists",
                            object_names[object->kind]);
    finding_stack(finding, "made", &object->made);
    finding_end(finding);
}

void check_closes(struct ibv_context *context)
{
    if (check_sanitizes)
        object_each(report_leak, context);
}

/* ---- objects that a call must not use ---- */

static void refuse_destroyed(const struct object *gone, const char *call)
{
    struct stacktrace here;
    struct finding *finding;

    stacktrace_take(&here);
    finding = finding_begin("use-after-destroy", "%s uses %s that was destroyed", call,
                            object_names[gone->kind]);
    finding_stack(finding, "used", &here);
    finding_stack(finding, "destroyed", &gone->destroyed);
    finding_stack(finding, "made", &gone->made);
    finding_end(finding);
    abort();
}

static void report_use(enum sanitize_rule rule, const char *name, const char *why,
                       const struct object *used, const char *call)
{
    struct stacktrace here, other = { 1, { (void *)used->inside_from } };
    struct finding *finding;

    if (sanitize_is_enough(rule))
        return;
    stacktrace_take(&here);
    finding = finding_begin(name, "%s uses %s %s", call, object_names[used->kind], why);
    finding_stack(finding, "used", &here);
    if (rule == RULE_THREADS)
        finding_stack(finding, "the other thread's call", &other);
    finding_stack(finding, "made", &used->made);
    finding_end(finding);
}

void check_destroys(enum check_kind kind, const void *object, const char *call)
{
    struct object used;

    if (check_sanitizes && object_at(kind, object, &used) && used.gone)
        refuse_destroyed(&used, call);
}

void check_uses(enum check_kind kind, const void *object, const char *call)
{
    struct object used;

    if (!check_sanitizes || !object_may_be_bad(kind) || !object_at(kind, object, &used))
        return;
    if (used.gone)
        refuse_destroyed(&used, call);
    if (used.inherited)
        report_use(RULE_FORK, "after-fork", "of the process that this one was forked from", &used,
                   call);
}

void check_enters(enum check_kind kind, const void *object, const char *call)
{
    struct object used;

    if (check_sanitizes && !object_enter(kind, object, &used))
        report_use(RULE_THREADS, "threads",
                   "that one thread at a time may use, and another thread uses it", &used, call);
}

void check_leaves(enum check_kind kind, const void *object)
{
    if (check_sanitizes)
        object_leave(kind, object);
}
