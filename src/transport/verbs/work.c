/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/verbs/work.h"

#include "hca/qp.h"

/* ---- the requester ---- */

static enum transport_service service_of(enum ibv_qp_type type)
{
    switch (type) {
    case IBV_QPT_UC:
        return SERVICE_UC;
    case IBV_QPT_UD:
        return SERVICE_UD;
    case IBV_QPT_XRC_SEND:
    case IBV_QPT_XRC_RECV:
        return SERVICE_XRC;
    default:
        return SERVICE_RC;
    }
}

static uint8_t outstanding(uint8_t wanted)
{
    return wanted < 1 ? 1 : wanted < RESPONDER_MAX_RESOURCES ? wanted : RESPONDER_MAX_RESOURCES;
}

struct transport_attributes work_attributes(const struct hca_qp *qp, uint32_t link_mtu)
{
    const struct ibv_qp_attr *attr = &qp->attr;
    uint32_t asked = attr->path_mtu ? 128u << attr->path_mtu : link_mtu;

    return (struct transport_attributes){
        .service = service_of(qp->ibv.qp_type),
        .local_qpn = qp->ibv.qp_num,
        .remote_qpn = attr->dest_qp_num,
        .pkey = HCA_PKEY,
        .qkey = attr->qkey,
        .path_mtu = asked < link_mtu ? asked : link_mtu,
        .send_psn = attr->sq_psn & 0xffffff,
        .receive_psn = attr->rq_psn & 0xffffff,
        .timeout = attr->timeout,
        .retry_count = attr->retry_cnt,
        .rnr_retry_count = attr->rnr_retry,
        .max_reads = outstanding(attr->max_rd_atomic),
        .responder_resources = outstanding(attr->max_dest_rd_atomic),
        .rnr_timer = attr->min_rnr_timer,
    };
}

static enum transport_operation operation_of(const struct send_wqe *wqe)
{
    switch (wqe->opcode) {
    case IBV_WR_SEND_WITH_IMM:
        return TRANSPORT_SEND_IMMEDIATE;
    case IBV_WR_SEND_WITH_INV:
        return TRANSPORT_SEND_INVALIDATE;
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_ATOMIC_WRITE:
        return TRANSPORT_WRITE;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
        return TRANSPORT_WRITE_IMMEDIATE;
    case IBV_WR_RDMA_READ:
        return TRANSPORT_READ;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
        return TRANSPORT_COMPARE_SWAP;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        return TRANSPORT_FETCH_ADD;
    default:
        return TRANSPORT_SEND;
    }
}

struct transport_wqe work_request(const struct send_wqe *wqe, uint32_t length)
{
    return (struct transport_wqe){
        .operation = operation_of(wqe),
        .fence = wqe->flags & IBV_SEND_FENCE,
        .solicited = wqe->flags & IBV_SEND_SOLICITED,
        .length = length,
        .remote_address = wqe->remote_addr,
        .remote_key = wqe->rkey,
        .immediate = wqe->imm,
        .swap_or_add = wqe->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? wqe->compare_add : wqe->swap,
        .compare = wqe->compare_add,
        .remote_srq = wqe->srqn,
        .remote_qpn = wqe->remote_qpn,
        .qkey = wqe->remote_qkey,
    };
}

bool work_reads_memory(const struct send_wqe *wqe)
{
    return operation_of(wqe) < TRANSPORT_READ;
}

enum ibv_wc_status work_status(enum transport_status status)
{
    static const uint8_t statuses[] = {
        [TRANSPORT_SUCCESS] = IBV_WC_SUCCESS,
        [TRANSPORT_NOT_READY] = IBV_WC_RNR_RETRY_EXC_ERR,
        [TRANSPORT_INVALID_REQUEST] = IBV_WC_REM_INV_REQ_ERR,
        [TRANSPORT_ACCESS_ERROR] = IBV_WC_REM_ACCESS_ERR,
        [TRANSPORT_OPERATIONAL_ERROR] = IBV_WC_REM_OP_ERR,
        [TRANSPORT_LOCAL_LENGTH] = IBV_WC_LOC_LEN_ERR,
        [TRANSPORT_LOCAL_PROTECTION] = IBV_WC_LOC_PROT_ERR,
        [TRANSPORT_BAD_RESPONSE] = IBV_WC_BAD_RESP_ERR,
        [TRANSPORT_RETRY_EXCEEDED] = IBV_WC_RETRY_EXC_ERR,
        [TRANSPORT_RNR_RETRY_EXCEEDED] = IBV_WC_RNR_RETRY_EXC_ERR,
        [TRANSPORT_FLUSHED] = IBV_WC_WR_FLUSH_ERR,
    };

    return statuses[status];
}

/* ---- the responder ---- */

static unsigned access_flag(enum transport_access access)
{
    static const unsigned flags[] = {
        [TRANSPORT_ACCESS_WRITE] = IBV_ACCESS_REMOTE_WRITE,
        [TRANSPORT_ACCESS_READ] = IBV_ACCESS_REMOTE_READ,
        [TRANSPORT_ACCESS_ATOMIC] = IBV_ACCESS_REMOTE_ATOMIC,
    };

    return flags[access];
}

enum transport_status work_check_remote(struct shared_qp *qp, uint32_t srqn,
                                        enum transport_access access, uint32_t rkey,
                                        uint64_t address, uint64_t length, struct mem_ref *ref)
{
    unsigned flag = access_flag(access);

    switch (access == TRANSPORT_ACCESS_ATOMIC
                ? responder_check_atomic(qp, srqn, rkey, address, flag, ref)
                : responder_check(qp, srqn, rkey, address, length, flag, ref)) {
    case RESPONDER_OK:
        return TRANSPORT_SUCCESS;
    case RESPONDER_ACCESS_ERROR:
        return TRANSPORT_ACCESS_ERROR;
    default:
        return TRANSPORT_INVALID_REQUEST;
    }
}

bool work_translate(const struct shared_qp *qp, uint32_t srqn, enum transport_access access,
                    uint32_t rkey, uint64_t address, uint64_t length, struct mem_ref *ref)
{
    return responder_translate(qp, srqn, rkey, address, length, access_flag(access), ref);
}

enum transport_status work_check_receive(struct rq_capacity receive, uint64_t length)
{
    switch (rq_capacity_check(receive, length)) {
    case IBV_WC_SUCCESS:
        return TRANSPORT_SUCCESS;
    case IBV_WC_LOC_LEN_ERR:
        return TRANSPORT_LOCAL_LENGTH;
    default:
        return TRANSPORT_LOCAL_PROTECTION;
    }
}

void work_fail_responder(struct shared_qp *qp, enum transport_status why)
{
    qp_fail(qp, why == TRANSPORT_ACCESS_ERROR ? IBV_EVENT_QP_ACCESS_ERR : IBV_EVENT_QP_REQ_ERR);
}
