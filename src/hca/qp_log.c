/* SPDX-License-Identifier: BSD-2-Clause */
/* Explains why a queue pair failed, for --log info. */

#include "hca/addr.h"
#include "hca/epoch.h"
#include "hca/observer.h"
#include "hca/proc.h"
#include "hca/qp.h"
#include "hca/table.h"
#include "util/log.h"

#include <stdio.h>

void qp_explain_silence(const struct hca_qp *qp, char *text, size_t size)
{
    uint32_t qpn = qp->attr.dest_qp_num;
    const struct shared_qp *peer = shared_qp_find(qpn);

    if (qp->peer_word && !proc_word_alive(qp->peer_word))
        snprintf(text, size, "the process of QP 0x%x has died", qpn);
    else if (!qp->dest_lid)
        snprintf(text, size, "LID 0x%x is no port of fabric '%s'", qp->attr.ah_attr.dlid,
                 segment_config()->name);
    else if (addr_port_is_down(qp->shared->lid) || addr_port_is_down(qp->dest_lid))
        snprintf(text, size, "a port on the way to LID 0x%x is down", qp->dest_lid);
    else if (!peer || peer->lid != qp->dest_lid)
        snprintf(text, size, "no QP 0x%x at LID 0x%x", qpn, qp->dest_lid);
    else if (peer->dest_qpn != qp->ibv.qp_num)
        snprintf(text, size, "QP 0x%x is connected to QP 0x%x", qpn, peer->dest_qpn);
    else
        snprintf(text, size, "QP 0x%x did not answer, its state is %u", qpn,
                 load_relaxed(&peer->state));
}

const char *qp_status_cause(enum ibv_wc_status status)
{
    switch (status) {
    case IBV_WC_LOC_LEN_ERR:
        return "the message is longer than the receive or the operation takes";
    case IBV_WC_LOC_PROT_ERR:
        return "a local key does not cover the bytes touched, or not for this";
    case IBV_WC_REM_ACCESS_ERR:
        return "the remote key does not grant this access to these bytes";
    case IBV_WC_REM_INV_REQ_ERR:
        return "the peer's QP does not allow the operation, or its receive is too short";
    case IBV_WC_REM_OP_ERR:
        return "the peer could not write to its own memory, or its CQ is full";
    case IBV_WC_RNR_RETRY_EXC_ERR:
        return "the peer has posted no receive";
    case IBV_WC_MW_BIND_ERR:
        return "the region does not allow the window";
    default:
        return "no further reason is known";
    }
}

const char *qp_opcode_name(uint8_t opcode)
{
    static const char *const names[] = {
        [IBV_WR_RDMA_WRITE] = "RDMA write",
        [IBV_WR_RDMA_WRITE_WITH_IMM] = "RDMA write with immediate",
        [IBV_WR_SEND] = "send",
        [IBV_WR_SEND_WITH_IMM] = "send with immediate",
        [IBV_WR_SEND_WITH_INV] = "send with invalidate",
        [IBV_WR_RDMA_READ] = "RDMA read",
        [IBV_WR_ATOMIC_CMP_AND_SWP] = "compare and swap",
        [IBV_WR_ATOMIC_FETCH_AND_ADD] = "fetch and add",
        [IBV_WR_LOCAL_INV] = "local invalidate",
        [IBV_WR_BIND_MW] = "bind window",
        [IBV_WR_ATOMIC_WRITE] = "atomic write",
    };

    return opcode < ARRAY_SIZE(names) && names[opcode] ? names[opcode] : "unknown";
}

static bool is_news(enum ibv_wc_status status)
{
    return status != IBV_WC_SUCCESS && status != IBV_WC_WR_FLUSH_ERR && log_level >= LOG_LEVEL_INFO;
}

void qp_log_send(const struct hca_qp *qp, const struct send_wqe *wqe, enum ibv_wc_status status)
{
    char silence[128] = "";

    if (!is_news(status))
        return;
    if (status == IBV_WC_RETRY_EXC_ERR) {
        epoch_enter();
        qp_explain_silence(qp, silence, sizeof(silence));
        epoch_exit();
    }
    log_info("QP 0x%x: work request 0x%llx (%s) failed with %s: %s", qp->ibv.qp_num,
             (unsigned long long)wqe->wr_id, qp_opcode_name(wqe->opcode), ibv_wc_status_str(status),
             *silence ? silence : qp_status_cause(status));
}

void qp_log_receive(uint32_t qpn, uint64_t wr_id, enum ibv_wc_status status)
{
    if (is_news(status))
        log_info("QP 0x%x: receive 0x%llx failed with %s: %s", qpn, (unsigned long long)wr_id,
                 ibv_wc_status_str(status), qp_status_cause(status));
}

/* A responder has no failed completion, but peers have raised an event. */
void qp_log_responder(const struct hca_qp *qp)
{
    uint32_t events = load_relaxed(&qp->shared->events.bits);

    if (unlikely(hca_observer != NULL))
        hca_observer->qp_failed(qp);
    if (events & 1u << IBV_EVENT_QP_ACCESS_ERR)
        log_info("QP 0x%x: error state: the peer's remote key does not allow the access",
                 qp->ibv.qp_num);
    else if (events & 1u << IBV_EVENT_QP_REQ_ERR)
        log_info("QP 0x%x: error state: its access flags do not allow the peer's request",
                 qp->ibv.qp_num);
    else if (events & 1u << IBV_EVENT_QP_FATAL)
        log_info("QP 0x%x: error state: its CQ has overrun", qp->ibv.qp_num);
}
