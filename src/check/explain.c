/* SPDX-License-Identifier: BSD-2-Clause */
#include "check/explain.h"

#include "check/check.h"
#include "check/finding.h"
#include "check/objects.h"
#include "check/posts.h"
#include "check/receives.h"
#include "hca/epoch.h"
#include "hca/mr.h"
#include "hca/proc.h"
#include "hca/qp.h"
#include "hca/table.h"

#include <stdio.h>
#include <string.h>

/* ---- regions ---- */

static void add_key_stack(struct finding *finding, uint32_t key)
{
    struct object region;

    if (!key || !object_find(CHECK_MR, key, &region))
        return;
    finding_stack(finding, "registered", &region.made);
    if (region.gone)
        finding_stack(finding, "deregistered", &region.destroyed);
}

/* ---- requests ---- */

static unsigned access_of(uint8_t opcode)
{
    switch (opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
    case IBV_WR_ATOMIC_WRITE:
        return IBV_ACCESS_REMOTE_WRITE;
    case IBV_WR_RDMA_READ:
        return IBV_ACCESS_REMOTE_READ;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        return IBV_ACCESS_REMOTE_ATOMIC;
    default:
        return 0;
    }
}

static bool writes_locally(uint8_t opcode)
{
    return opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
           opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* The SGE whose key does not allow what the request does with it. */
static uint32_t why_local(const struct hca_qp *qp, const struct post *post, char *text, size_t size)
{
    bool writes = writes_locally(post->opcode);

    for (uint32_t i = 0; i < post->num_sge; i++) {
        const struct ibv_sge *sge = &post->sge[i];
        struct mem_ref unused;
        char why[256];

        if (!sge->length ||
            mr_local(sge->lkey, qp->pd->id, sge->addr, sge->length, writes, &unused))
            continue;
        mr_why_local(sge->lkey, qp->pd->id, sge->addr, sge->length, writes, why, sizeof(why));
        snprintf(text, size, "SGE %u, %u bytes at 0x%llx with lkey 0x%x: %s", i, sge->length,
                 (unsigned long long)sge->addr, sge->lkey, why);
        return sge->lkey;
    }
    snprintf(text, size, "a local key did not allow the access when the request was executed");
    return 0;
}

static void why_remote(const struct shared_qp *peer, const struct post *post, char *text,
                       size_t size)
{
    unsigned access = access_of(post->opcode);

    if (!peer || peer->proc >= MAX_PROCS)
        snprintf(text, size, "the responder refused it, and is not on this host to ask why");
    else if (!access)
        snprintf(text, size, "the key to invalidate is not that of a window bound to the "
                             "responder's QP");
    else
        mr_why_remote(post->rkey, peer->proc, peer->pd, load_relaxed(&peer->qpn), post->remote_addr,
                      post->length, access, text, size);
}

static void why_invalid(const struct shared_qp *peer, const struct post *post, char *text,
                        size_t size)
{
    unsigned access = access_of(post->opcode);

    if (access && peer && !(load_relaxed(&peer->access) & access))
        snprintf(text, size,
                 "the access flags of the responder's QP 0x%x (0x%x) do not include 0x%x",
                 load_relaxed(&peer->qpn), load_relaxed(&peer->access), access);
    else if (access && post->remote_addr & 7)
        snprintf(text, size, "an atomic needs an address that is a multiple of 8");
    else if (access)
        snprintf(text, size, "the responder's QP does not allow the operation");
    else
        snprintf(text, size, "the message of %llu bytes is longer than the receive posted for it",
                 (unsigned long long)post->length);
}

static void why_not_ready(const struct hca_qp *qp, const struct shared_qp *peer, char *text,
                          size_t size)
{
    if (!peer || peer->proc >= MAX_PROCS)
        snprintf(text, size, "the responder has posted no receive");
    else
        snprintf(text, size,
                 "QP 0x%x of process %d has posted no receive for it, in %u retries of the "
                 "requester (rnr_retry) and as long as the responder asks (min_rnr_timer %u)",
                 load_relaxed(&peer->qpn), (int)proc_slot(peer->proc)->pid, qp->attr.rnr_retry,
                 load_relaxed(&peer->min_rnr_timer));
}

/* Returns the key at fault if it may be one of this process, else 0. */
static uint32_t explain_status(const struct hca_qp *qp, const struct post *post,
                               enum ibv_wc_status status, char *text, size_t size)
{
    const struct shared_qp *peer = shared_qp_find(qp->attr.dest_qp_num);

    switch (status) {
    case IBV_WC_LOC_PROT_ERR:
        return why_local(qp, post, text, size);
    case IBV_WC_REM_ACCESS_ERR:
        why_remote(peer, post, text, size);
        return peer && peer->proc == proc_self ? post->rkey : 0;
    case IBV_WC_REM_INV_REQ_ERR:
        why_invalid(peer, post, text, size);
        return 0;
    case IBV_WC_RNR_RETRY_EXC_ERR:
        why_not_ready(qp, peer, text, size);
        return 0;
    case IBV_WC_RETRY_EXC_ERR:
        qp_explain_silence(qp, text, size);
        return 0;
    default:
        snprintf(text, size, "%s", qp_status_cause(status));
        return 0;
    }
}

static void describe_request(const struct post *post, char *text, size_t size)
{
    int used = snprintf(text, size, "%s of %llu bytes", qp_opcode_name(post->opcode),
                        (unsigned long long)post->length);

    if (access_of(post->opcode) && used > 0 && (size_t)used < size)
        snprintf(text + used, size - used, " at 0x%llx, rkey 0x%x",
                 (unsigned long long)post->remote_addr, post->rkey);
}

static void explain_send(struct hca_qp *qp, const struct post *post, enum ibv_wc_status status)
{
    char request[160], why[400];
    struct finding *finding;
    uint32_t key;

    describe_request(post, request, sizeof(request));
    epoch_enter();
    key = explain_status(qp, post, status, why, sizeof(why));
    epoch_exit();
    finding = finding_begin("work-request", "QP 0x%x: %s, wr_id 0x%llx, failed with %s: %s",
                            qp->ibv.qp_num, request, (unsigned long long)post->wr_id,
                            ibv_wc_status_str(status), why);
    finding_stack(finding, "posted", &post->posted);
    add_key_stack(finding, key);
    finding_end(finding);
}

static enum ibv_wc_status send_completes(struct hca_qp *qp, const struct send_wqe *wqe,
                                         enum ibv_wc_status status)
{
    const struct post *post = post_find(qp, wqe->sq_index);

    if (post && post->inject_status && status == IBV_WC_SUCCESS) {
        qp_set_error(qp->shared);
        return post->inject_status;
    }
    if (check_explains && post && status != IBV_WC_SUCCESS && status != IBV_WC_WR_FLUSH_ERR)
        explain_send(qp, post, status);
    return status;
}

/* ---- receives ---- */

static void receive_failed(const struct hca_rq *rq, uint32_t slot, uint32_t qpn,
                           enum ibv_wc_status status)
{
    const struct stacktrace *posted = receives_stack(rq, slot);
    struct finding *finding;

    if (!check_explains || status == IBV_WC_WR_FLUSH_ERR)
        return;
    finding = finding_begin("work-request", "QP 0x%x: receive, wr_id 0x%llx, failed with %s: %s",
                            qpn, (unsigned long long)rq->receives[slot].wr_id,
                            ibv_wc_status_str(status), qp_status_cause(status));
    if (posted)
        finding_stack(finding, "posted", posted);
    finding_end(finding);
}

/* ---- responders ---- */

static void qp_failed(const struct hca_qp *qp)
{
    const struct refusal *refusal = &qp->shared->refusal;
    uint32_t events = load_relaxed(&qp->shared->events.bits);
    struct finding *finding;
    char why[256];

    if (!check_explains || !refusal->access)
        return;
    if (refusal->not_enabled)
        snprintf(why, sizeof(why), "the access flags of the QP (0x%x) do not include 0x%x",
                 load_relaxed(&qp->shared->access), refusal->access);
    else if (events & 1u << IBV_EVENT_QP_ACCESS_ERR)
        mr_why_remote(refusal->rkey, qp->shared->proc, qp->shared->pd, qp->ibv.qp_num,
                      refusal->addr, refusal->length, refusal->access, why, sizeof(why));
    else
        snprintf(why, sizeof(why), "an atomic needs an address that is a multiple of 8");
    finding = finding_begin("responder",
                            "QP 0x%x: refused its peer, QP 0x%x, %llu bytes at 0x%llx, rkey 0x%x, "
                            "and is in error since: %s",
                            qp->ibv.qp_num, qp->attr.dest_qp_num,
                            (unsigned long long)refusal->length, (unsigned long long)refusal->addr,
                            refusal->rkey, why);
    add_key_stack(finding, refusal->rkey);
    finding_end(finding);
}

const struct hca_observer explain_observer = {
    .send_completes = send_completes,
    .receive_posted = receives_posted,
    .receive_completes = receives_completes,
    .receive_failed = receive_failed,
    .receives_dropped = receives_dropped,
    .qp_failed = qp_failed,
};
