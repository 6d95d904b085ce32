/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/cm.h"

#include "cm/device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_ACK_TIMEOUT  14 /* 67 ms */
#define ETHERNET_ACK_TIMEOUT 17 /* 0.5 s */

/* ---- attributes for each step ---- */

static enum ibv_qp_type type_of(const struct cm_id *cm, const struct ibv_qp *qp)
{
    return qp ? qp->qp_type : cm->id.qp_type;
}

static int attr_init(struct cm_id *cm, enum ibv_qp_type type, struct ibv_qp_attr *attr, int *mask)
{
    attr->pkey_index = 0;
    attr->port_num = cm->id.port_num;
    *mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    if (type == IBV_QPT_UD) {
        attr->qkey = cm_qkey(cm);
        *mask |= IBV_QP_QKEY;
        return 0;
    }
    attr->qp_access_flags = 0;
    if (cm->peer_known || cm->state == CM_REQ_SENT) {
        attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
        if (cm->responder_resources && type != IBV_QPT_UC)
            attr->qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    }
    *mask |= IBV_QP_ACCESS_FLAGS;
    return 0;
}

static int attr_rtr(struct cm_id *cm, enum ibv_qp_type type, struct ibv_qp_attr *attr, int *mask)
{
    *mask = IBV_QP_STATE;
    if (type == IBV_QPT_UD)
        return 0;
    if (!cm->peer_known)
        return EINVAL;
    id_fill_ah(cm, &attr->ah_attr);
    attr->path_mtu = cm->path_mtu ? cm->path_mtu : device_mtu(cm->id.verbs, cm->id.port_num);
    attr->dest_qp_num = cm->remote_qpn;
    attr->rq_psn = cm->psn;
    *mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    if (type == IBV_QPT_RC || type == IBV_QPT_XRC_RECV) {
        attr->max_dest_rd_atomic = cm->responder_resources;
        attr->min_rnr_timer = 0;
        *mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    }
    return 0;
}

uint8_t qp_ack_timeout(const struct cm_id *cm)
{
    if (cm->ack_timeout >= 0)
        return cm->ack_timeout;
    if (cm->peer_ack_timeout)
        return cm->peer_ack_timeout;
    return hca_is_ethernet() ? ETHERNET_ACK_TIMEOUT : DEFAULT_ACK_TIMEOUT;
}

static int attr_rts(struct cm_id *cm, enum ibv_qp_type type, struct ibv_qp_attr *attr, int *mask)
{
    *mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    attr->sq_psn = 0;
    if (type == IBV_QPT_UD)
        return 0;
    if (!cm->peer_known)
        return EINVAL;
    attr->sq_psn = cm->remote_psn;
    if (type == IBV_QPT_UC)
        return 0;
    attr->timeout = qp_ack_timeout(cm);
    *mask |= IBV_QP_TIMEOUT;
    if (type == IBV_QPT_XRC_RECV)
        return 0;
    attr->retry_cnt = cm->retry_count;
    attr->rnr_retry = cm->rnr_retry_count;
    attr->max_rd_atomic = cm->initiator_depth;
    *mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    return 0;
}

static int fill_attr(struct cm_id *cm, enum ibv_qp_type type, struct ibv_qp_attr *attr, int *mask)
{
    if (!cm->id.verbs)
        return EINVAL;
    switch (attr->qp_state) {
    case IBV_QPS_INIT:
        return attr_init(cm, type, attr, mask);
    case IBV_QPS_RTR:
        return attr_rtr(cm, type, attr, mask);
    case IBV_QPS_RTS:
        return attr_rts(cm, type, attr, mask);
    default:
        return EINVAL;
    }
}

int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *qp_attr, int *qp_attr_mask)
{
    struct cm_id *cm = to_cm(id);
    int err;

    if (!qp_attr || !qp_attr_mask)
        return cm_fail(EINVAL);
    cm_lock();
    err = fill_attr(cm, type_of(cm, id->qp), qp_attr, qp_attr_mask);
    cm_unlock();
    return cm_fail(err);
}

static int step(struct cm_id *cm, struct ibv_qp *qp, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = { .qp_state = state };
    int mask = 0;

    cm_lock();
    int err = fill_attr(cm, type_of(cm, qp), &attr, &mask);
    cm_unlock();
    return err ? err : ibv_modify_qp(qp, &attr, mask);
}

int qp_to_rts(struct cm_id *cm, struct ibv_qp *qp)
{
    int err;

    if ((err = step(cm, qp, IBV_QPS_INIT)) || (err = step(cm, qp, IBV_QPS_RTR)))
        return err;
    return step(cm, qp, IBV_QPS_RTS);
}

void qp_to_error(struct cm_id *cm)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

    if (cm->id.qp)
        ibv_modify_qp(cm->id.qp, &attr, IBV_QP_STATE);
}

/* A connected QP waits in INIT, where receives can be posted; a UD QP goes to RTS at once. */
static int make_ready(struct cm_id *cm, struct ibv_qp *qp)
{
    if (qp->qp_type == IBV_QPT_UD)
        return qp_to_rts(cm, qp);
    return step(cm, qp, IBV_QPS_INIT);
}

/* ---- completion queues created for an id ---- */

static void destroy_cqs(struct rdma_cm_id *id)
{
    if (id->send_cq)
        ibv_destroy_cq(id->send_cq);
    if (id->send_cq_channel)
        ibv_destroy_comp_channel(id->send_cq_channel);
    if (id->recv_cq)
        ibv_destroy_cq(id->recv_cq);
    if (id->recv_cq_channel)
        ibv_destroy_comp_channel(id->recv_cq_channel);
    id->send_cq = id->recv_cq = NULL;
    id->send_cq_channel = id->recv_cq_channel = NULL;
}

static int create_cq(struct rdma_cm_id *id, uint32_t size, struct ibv_comp_channel **channel,
                     struct ibv_cq **cq)
{
    if (!size || *cq)
        return 0;
    *channel = ibv_create_comp_channel(id->verbs);
    if (!*channel)
        return errno;
    *cq = ibv_create_cq(id->verbs, size, id, *channel, 0);
    return *cq ? 0 : errno;
}

static int create_cqs(struct rdma_cm_id *id, uint32_t send_size, uint32_t recv_size)
{
    int err = create_cq(id, send_size, &id->send_cq_channel, &id->send_cq);

    return err ? err : create_cq(id, recv_size, &id->recv_cq_channel, &id->recv_cq);
}

/* The CQ of an SRQ lives as long as the SRQ. */
static void destroy_unused_cqs(struct rdma_cm_id *id)
{
    if (!id->qp && !id->srq)
        destroy_cqs(id);
}

/* ---- queue pairs ---- */

static int complete_attr(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
    int err;

    if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd) {
        attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
        attr->pd = id->pd;
    } else if (attr->pd->context != id->verbs) {
        return EINVAL;
    }
    if ((id->send_cq && attr->send_cq && id->send_cq != attr->send_cq) ||
        (id->recv_cq && attr->recv_cq && id->recv_cq != attr->recv_cq))
        return EINVAL;
    if (attr->qp_type == IBV_QPT_XRC_RECV && !(attr->comp_mask & IBV_QP_INIT_ATTR_XRCD)) {
        if (!(attr->xrcd = device_xrcd(id->verbs)))
            return errno;
        attr->comp_mask |= IBV_QP_INIT_ATTR_XRCD;
    }
    if ((err = create_cqs(id, attr->send_cq ? 0 : attr->cap.max_send_wr,
                          attr->recv_cq ? 0 : attr->cap.max_recv_wr)))
        return err;
    if (!attr->send_cq)
        attr->send_cq = id->send_cq;
    if (!attr->recv_cq)
        attr->recv_cq = id->recv_cq;
    if (id->srq && !attr->srq)
        attr->srq = id->srq;
    return 0;
}

int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *qp_init_attr)
{
    int err;

    if (id->qp || !id->verbs || !qp_init_attr)
        return cm_fail(EINVAL);
    if ((err = complete_attr(id, qp_init_attr)))
        goto free_cqs;
    struct ibv_qp *qp = ibv_create_qp_ex(id->verbs, qp_init_attr);
    if (!qp) {
        err = errno;
        goto free_cqs;
    }
    if ((err = make_ready(to_cm(id), qp)))
        goto destroy_qp;
    if (qp->pd)
        id->pd = qp->pd;
    id->qp = qp;
    ((struct hca_qp *)qp)->connection = to_cm(id)->handle;
    ((struct hca_qp *)qp)->lose_connection = connect_lose_by_handle;
    return 0;

destroy_qp:
    ibv_destroy_qp(qp);
free_cqs:
    destroy_unused_cqs(id);
    return cm_fail(err);
}

int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr)
{
    struct ibv_qp_init_attr_ex attr = { 0 };

    if (!qp_init_attr)
        return cm_fail(EINVAL);
    memcpy(&attr, qp_init_attr, sizeof(*qp_init_attr)); /* a prefix of the extended form */
    attr.comp_mask = pd ? IBV_QP_INIT_ATTR_PD : 0;      /* padding in the plain form */
    attr.pd = pd;
    if (rdma_create_qp_ex(id, &attr))
        return -1;
    memcpy(qp_init_attr, &attr, sizeof(*qp_init_attr));
    return 0;
}

void rdma_destroy_qp(struct rdma_cm_id *id)
{
    if (id->qp)
        ibv_destroy_qp(id->qp);
    id->qp = NULL;
    destroy_unused_cqs(id);
}

/* ---- shared receive queues ---- */

static int complete_srq_attr(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
    int err;

    if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE)) {
        attr->comp_mask |= IBV_SRQ_INIT_ATTR_TYPE;
        attr->srq_type = IBV_SRQT_BASIC;
    }
    if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd) {
        attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
        attr->pd = id->pd;
    }
    if (attr->srq_type != IBV_SRQT_XRC)
        return 0;
    if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_XRCD) || !attr->xrcd) {
        attr->comp_mask |= IBV_SRQ_INIT_ATTR_XRCD;
        if (!(attr->xrcd = device_xrcd(id->verbs)))
            return errno;
    }
    if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ) || !attr->cq) {
        attr->comp_mask |= IBV_SRQ_INIT_ATTR_CQ;
        if ((err = create_cqs(id, 0, attr->attr.max_wr)))
            return err;
        attr->cq = id->recv_cq;
    }
    return 0;
}

int rdma_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
    int err;

    if (id->srq || !id->verbs || !attr)
        return cm_fail(EINVAL);
    err = complete_srq_attr(id, attr);
    struct ibv_srq *srq = err ? NULL : ibv_create_srq_ex(id->verbs, attr);
    if (!srq) {
        err = err ? err : errno;
        destroy_unused_cqs(id);
        return cm_fail(err);
    }
    id->srq = srq;
    return 0;
}

int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
    struct ibv_srq_init_attr_ex ex = { .comp_mask = IBV_SRQ_INIT_ATTR_TYPE, .pd = pd };

    ex.comp_mask |= pd ? IBV_SRQ_INIT_ATTR_PD : 0;
    ex.srq_type = id->qp_type == IBV_QPT_XRC_RECV ? IBV_SRQT_XRC : IBV_SRQT_BASIC;
    if (!attr)
        return cm_fail(EINVAL);
    ex.srq_context = attr->srq_context;
    ex.attr = attr->attr;
    int rc = rdma_create_srq_ex(id, &ex);
    attr->attr = ex.attr;
    return rc;
}

void rdma_destroy_srq(struct rdma_cm_id *id)
{
    if (id->srq)
        ibv_destroy_srq(id->srq);
    id->srq = NULL;
    destroy_unused_cqs(id);
}
