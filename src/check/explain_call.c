/* SPDX-License-Identifier: BSD-2-Clause */
/* Says why calls fail. */
#include "check/check.h"
#include "check/finding.h"
#include "hca/qp.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int check_refuse(int err, const char *format, ...)
{
    struct stacktrace here;
    char why[512];
    va_list args;

    va_start(args, format);
    vsnprintf(why, sizeof(why), format, args);
    va_end(args);
    stacktrace_take(&here);
    struct finding *finding = finding_begin("call", "%s: %s", strerror(err), why);
    finding_stack(finding, "called", &here);
    finding_end(finding);
    return err;
}

/* ---- ibv_modify_qp() ---- */

static void name_attributes(int mask, char *text, size_t size)
{
    static const struct {
        int bit;
        const char *name;
    } names[] = {
        { IBV_QP_STATE, "STATE" },
        { IBV_QP_CUR_STATE, "CUR_STATE" },
        { IBV_QP_ACCESS_FLAGS, "ACCESS_FLAGS" },
        { IBV_QP_PKEY_INDEX, "PKEY_INDEX" },
        { IBV_QP_PORT, "PORT" },
        { IBV_QP_QKEY, "QKEY" },
        { IBV_QP_AV, "AV" },
        { IBV_QP_PATH_MTU, "PATH_MTU" },
        { IBV_QP_TIMEOUT, "TIMEOUT" },
        { IBV_QP_RETRY_CNT, "RETRY_CNT" },
        { IBV_QP_RNR_RETRY, "RNR_RETRY" },
        { IBV_QP_RQ_PSN, "RQ_PSN" },
        { IBV_QP_MAX_QP_RD_ATOMIC, "MAX_QP_RD_ATOMIC" },
        { IBV_QP_ALT_PATH, "ALT_PATH" },
        { IBV_QP_MIN_RNR_TIMER, "MIN_RNR_TIMER" },
        { IBV_QP_SQ_PSN, "SQ_PSN" },
        { IBV_QP_MAX_DEST_RD_ATOMIC, "MAX_DEST_RD_ATOMIC" },
        { IBV_QP_PATH_MIG_STATE, "PATH_MIG_STATE" },
        { IBV_QP_CAP, "CAP" },
        { IBV_QP_DEST_QPN, "DEST_QPN" },
    };
    size_t used = 0;

    *text = '\0';
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (mask & names[i].bit && used < size)
            used += snprintf(text + used, size - used, "%sIBV_QP_%s", used ? ", " : "",
                             names[i].name);
    }
}

void check_explain_modify(const struct hca_qp *qp, const struct ibv_qp_attr *attr, int mask,
                          enum ibv_qp_state from, int err)
{
    enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->qp_state : from;
    uint32_t number = qp->ibv.qp_num;
    char missing[256], excess[256];
    int required, allowed;

    if (mask & IBV_QP_CUR_STATE && attr->cur_qp_state != from) {
        check_refuse(err, "QP 0x%x is in %s, cur_qp_state says otherwise", number,
                     qp_state_name(from));
        return;
    }
    if (!qp_transition(qp->ibv.qp_type, from, to, &required, &allowed)) {
        check_refuse(err, "QP 0x%x is in %s, from where no transition leads to %s", number,
                     qp_state_name(from), qp_state_name(to));
        return;
    }
    name_attributes(required & ~mask, missing, sizeof(missing));
    name_attributes(mask & ~allowed, excess, sizeof(excess));
    if (*missing)
        check_refuse(err, "QP 0x%x, %s to %s: required attributes are missing: %s", number,
                     qp_state_name(from), qp_state_name(to), missing);
    else if (*excess)
        check_refuse(err, "QP 0x%x, %s to %s: attributes that this transition does not take: %s",
                     number, qp_state_name(from), qp_state_name(to), excess);
    else
        check_refuse(err, "QP 0x%x, %s to %s: the value of an attribute is out of range", number,
                     qp_state_name(from), qp_state_name(to));
}

/* ---- posting ---- */

void check_explain_post(const struct hca_qp *qp, const struct ibv_send_wr *wr, int err)
{
    uint32_t outstanding = qp->sq_posted - load_relaxed(&qp->sq_freed), number = qp->ibv.qp_num;
    enum ibv_qp_state state = qp_state(qp);
    unsigned long long length = 0;

    for (int i = 0; i < wr->num_sge && wr->sg_list; i++)
        length += wr->sg_list[i].length;
    if (state < IBV_QPS_RTS)
        check_refuse(err, "QP 0x%x is in %s: sends need RTS", number, qp_state_name(state));
    else if (err == ENOMEM)
        check_refuse(err,
                     "the send queue of QP 0x%x is full: %u of %u requests have not been reaped by "
                     "a signalled completion",
                     number, outstanding, qp->cap.max_send_wr);
    else if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->cap.max_send_sge)
        check_refuse(err, "QP 0x%x takes %u SGEs, the request has %d", number, qp->cap.max_send_sge,
                     wr->num_sge);
    else if (wr->send_flags & IBV_SEND_INLINE && length > qp->cap.max_inline_data)
        check_refuse(err, "QP 0x%x takes %u bytes inline, the request has %llu", number,
                     qp->cap.max_inline_data, length);
    else
        check_refuse(err, "QP 0x%x does not take this operation (%s) with these values", number,
                     qp_opcode_name(wr->opcode));
}

void check_explain_post_receive(const struct hca_rq *rq, const struct ibv_recv_wr *wr,
                                bool in_reset, int err)
{
    if (!rq->shared)
        check_refuse(err, "the QP has no receive queue of its own: it uses an SRQ, or only sends");
    else if (in_reset)
        check_refuse(err, "the QP is in RESET: receives need INIT");
    else if (err == ENOMEM)
        check_refuse(err, "the receive queue is full: %u receives are posted", rq->max_wr);
    else
        check_refuse(err, "the queue takes %u SGEs, the receive has %d", rq->max_sge, wr->num_sge);
}
