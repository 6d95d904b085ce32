/* SPDX-License-Identifier: BSD-2-Clause */
#include "check/sanitize.h"

#include "check/check.h"
#include "check/finding.h"
#include "check/objects.h"
#include "hca/mr.h"
#include "hca/qp.h"

#include <stdlib.h>
#include <string.h>

#define REPORTS_PER_RULE 10

enum rule { BUFFER_CHANGED, REGION_IN_USE, LEAK, RULES };

/* A program that breaks a rule in a loop is told a few times. */
static bool is_enough(enum rule rule)
{
    static atomic_uint reports[RULES];

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

/* An earlier RDMA read may fill the buffer of a fenced request after it was posted. */
void sanitize_post(const struct hca_qp *qp, struct post *post)
{
    post->is_summed = post->is_signaled && !post->is_inline && !post->is_fenced &&
                      reads_memory(post->opcode) && sum_of(qp, post, &post->sum);
}

static void verify(const struct hca_qp *qp, const struct post *post)
{
    struct stacktrace here;
    struct finding *finding;
    uint64_t sum;

    if (!post->is_summed || !sum_of(qp, post, &sum) || sum == post->sum ||
        is_enough(BUFFER_CHANGED))
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

void check_polled(const struct ibv_wc *wc)
{
    struct hca_qp *qp;
    struct post *post;

    if (!check_sanitizes || wc->opcode & IBV_WC_RECV || !(qp = qp_by_number(wc->qp_num)))
        return;
    spin_lock(&qp->sq_lock);
    post = post_completed(qp, wc->wr_id, wc->status != IBV_WC_SUCCESS);
    if (post && wc->status == IBV_WC_SUCCESS)
        verify(qp, post);
    spin_unlock(&qp->sq_lock);
}

/* ---- regions ---- */

/* A signalled send of a QP that still works, whose completion the program has not polled. */
static void find_use(struct hca_qp *qp, uint32_t lkey, struct finding **finding)
{
    spin_lock(&qp->sq_lock);
    for (uint32_t i = load_relaxed(&qp->sq_freed); i != qp->sq_posted && !*finding; i++) {
        const struct post *post = post_find(qp, i);
        bool uses = false;

        for (uint32_t s = 0; post && post->is_signaled && !post->is_inline && s < post->num_sge; s++)
            uses |= post->sge[s].lkey == lkey && post->sge[s].length;
        if (!uses || is_enough(REGION_IN_USE))
            continue;
        *finding = finding_begin("region-in-use",
                                 "the region with lkey 0x%x is deregistered, but QP 0x%x has not "
                                 "completed a %s that uses it, wr_id 0x%llx",
                                 lkey, qp->ibv.qp_num, qp_opcode_name(post->opcode),
                                 (unsigned long long)post->wr_id);
        finding_stack(*finding, "posted", &post->posted);
    }
    spin_unlock(&qp->sq_lock);
}

void check_deregisters(const struct ibv_mr *mr)
{
    struct finding *finding = NULL;
    struct stacktrace here;
    struct object region;

    if (!check_sanitizes)
        return;
    pthread_mutex_lock(&qp_list_mutex);
    for (struct hca_qp *qp = qp_list; qp && !finding; qp = qp->next) {
        if (qp_state(qp) == IBV_QPS_RTS)
            find_use(qp, mr->lkey, &finding);
    }
    pthread_mutex_unlock(&qp_list_mutex);
    if (!finding)
        return;
    stacktrace_take(&here);
    finding_stack(finding, "deregistered", &here);
    if (object_find(CHECK_MR, mr->lkey, &region))
        finding_stack(finding, "registered", &region.made);
    finding_end(finding);
}

/* ---- leaks ---- */

static void report_leak(const struct object *object, void *context)
{
    struct finding *finding;

    /* Each of these objects begins with its context. */
    if (*(struct ibv_context *const *)object->address != context || is_enough(LEAK))
        return;
    finding = finding_begin("leak", "the device is closed, but a %s still exists",
                            object_names[object->kind]);
    finding_stack(finding, "made", &object->made);
    finding_end(finding);
}

void check_closes(struct ibv_context *context)
{
    if (check_sanitizes)
        object_each(report_leak, context);
}

/* ---- use after destroy ---- */

void check_uses(enum check_kind kind, const void *object, const char *call)
{
    struct object gone;
    struct stacktrace here;
    struct finding *finding;

    if (!check_sanitizes || !object_is_gone(kind, object, &gone))
        return;
    stacktrace_take(&here);
    finding = finding_begin("use-after-destroy", "%s uses a %s that was destroyed", call,
                            object_names[kind]);
    finding_stack(finding, "used", &here);
    finding_stack(finding, "destroyed", &gone.destroyed);
    finding_stack(finding, "made", &gone.made);
    finding_end(finding);
    abort();
}
