/* SPDX-License-Identifier: BSD-2-Clause */
#include "bed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALL_ACCESS                                                                                 \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |                   \
     IBV_ACCESS_REMOTE_ATOMIC)

void bed_need(bool condition, const char *text)
{
    if (condition)
        return;
    fprintf(stderr, "failed: %s (%s)\n", text, strerror(errno));
    exit(9);
}

const struct bed_case *bed_choose(const struct bed_case *cases, int count, char **words)
{
    for (; count == 2 && cases->name; cases++) {
        if (!strcmp(cases->name, words[1]))
            return cases;
    }
    fprintf(stderr, "usage: %s CASE\n", words[0]);
    exit(2);
}

uint16_t bed_lid(struct ibv_context *context)
{
    struct ibv_port_attr port;

    BED_NEED(!ibv_query_port(context, 1, &port));
    return port.lid;
}

struct ibv_qp *bed_qp(struct bed *bed)
{
    struct ibv_qp_init_attr init = { .send_cq = bed->cq,
                                     .recv_cq = bed->cq,
                                     .cap = { 64, 64, 2, 2, 64 },
                                     .qp_type = IBV_QPT_RC };
    struct ibv_qp *qp = ibv_create_qp(bed->pd, &init);

    BED_NEED(qp);
    return qp;
}

void bed_connect(struct ibv_qp *qp, uint32_t dest_qpn, uint16_t dlid)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
                                .port_num = 1,
                                .qp_access_flags = ALL_ACCESS & ~IBV_ACCESS_LOCAL_WRITE };

    BED_NEED(!ibv_modify_qp(qp, &attr,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
    attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR,
                                 .path_mtu = IBV_MTU_1024,
                                 .dest_qp_num = dest_qpn,
                                 .max_dest_rd_atomic = 1,
                                 .min_rnr_timer = 1,
                                 .ah_attr = { .dlid = dlid, .port_num = 1 } };
    BED_NEED(!ibv_modify_qp(qp, &attr,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
    attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
                                 .timeout = 8,
                                 .retry_cnt = 1,
                                 .rnr_retry = 1,
                                 .max_rd_atomic = 1 };
    BED_NEED(!ibv_modify_qp(qp, &attr,
                            IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
}

void bed_make(struct bed *bed)
{
    struct ibv_device **list = ibv_get_device_list(NULL);

    BED_NEED(list && list[0]);
    bed->context = ibv_open_device(list[0]);
    BED_NEED(bed->context);
    ibv_free_device_list(list);
    bed->pd = ibv_alloc_pd(bed->context);
    BED_NEED(bed->pd);
    bed->cq = ibv_create_cq(bed->context, 256, NULL, NULL, 0);
    BED_NEED(bed->cq);
    bed->memory = calloc(1, BED_BYTES);
    BED_NEED(bed->memory);
    bed->mr = ibv_reg_mr(bed->pd, bed->memory, BED_BYTES, ALL_ACCESS);
    BED_NEED(bed->mr);
    for (int i = 0; i < 2; i++)
        bed->qp[i] = bed_qp(bed);
    for (int i = 0; i < 2; i++)
        bed_connect(bed->qp[i], bed->qp[!i]->qp_num, bed_lid(bed->context));
}

void bed_free(struct bed *bed)
{
    for (int i = 0; i < 2; i++)
        BED_NEED(!ibv_destroy_qp(bed->qp[i]));
    BED_NEED(!ibv_dereg_mr(bed->mr));
    BED_NEED(!ibv_destroy_cq(bed->cq));
    BED_NEED(!ibv_dealloc_pd(bed->pd));
    BED_NEED(!ibv_close_device(bed->context));
    free(bed->memory);
}

int bed_rdma(struct bed *bed, enum ibv_wr_opcode opcode, uint64_t remote, uint32_t rkey,
             uint32_t bytes)
{
    struct ibv_sge sge = { (uintptr_t)bed->memory, bytes, bed->mr->lkey };
    struct ibv_send_wr *bad, wr = { .wr_id = 7,
                                    .sg_list = &sge,
                                    .num_sge = 1,
                                    .opcode = opcode,
                                    .send_flags = IBV_SEND_SIGNALED,
                                    .wr.rdma = { remote, rkey } };

    return ibv_post_send(bed->qp[0], &wr, &bad);
}

int bed_send(struct bed *bed, int from, uint32_t bytes, uint64_t wr_id)
{
    struct ibv_sge sge = { (uintptr_t)bed->memory, bytes, bed->mr->lkey };
    struct ibv_send_wr *bad, wr = { .wr_id = wr_id,
                                    .sg_list = &sge,
                                    .num_sge = 1,
                                    .opcode = IBV_WR_SEND,
                                    .send_flags = IBV_SEND_SIGNALED };

    return ibv_post_send(bed->qp[from], &wr, &bad);
}

int bed_receive(struct bed *bed, int at, uint32_t bytes, uint64_t wr_id)
{
    struct ibv_sge sge = { (uintptr_t)bed->memory + BED_BYTES / 2, bytes, bed->mr->lkey };
    struct ibv_recv_wr *bad, wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };

    return ibv_post_recv(bed->qp[at], &wr, &bad);
}

struct ibv_wc bed_poll(struct bed *bed)
{
    struct ibv_wc wc;
    int count;

    while (!(count = ibv_poll_cq(bed->cq, 1, &wc)))
        ;
    BED_NEED(count == 1);
    return wc;
}
