/* SPDX-License-Identifier: BSD-2-Clause */
/* Breaks one rule: errors CASE. Exits with 0 if the outcome is the documented one. */
#include "bed.h"

#include <errno.h>

static struct bed bed;

static void need_status(enum ibv_wc_status status)
{
    struct ibv_wc wc = bed_poll(&bed);

    while (wc.status == IBV_WC_WR_FLUSH_ERR)
        wc = bed_poll(&bed);
    BED_NEED(wc.status == status);
}

static struct ibv_mr *read_only;

static void register_read_only(void)
{
    read_only = ibv_reg_mr(bed.pd, bed.memory, 1024, IBV_ACCESS_REMOTE_READ);
    BED_NEED(read_only);
}

static void access_flag(void)
{
    register_read_only();
    BED_NEED(!bed_rdma(&bed, IBV_WR_RDMA_WRITE, (uintptr_t)bed.memory, read_only->rkey, 64));
    need_status(IBV_WC_REM_ACCESS_ERR);
}

static void range(void)
{
    BED_NEED(!bed_rdma(&bed, IBV_WR_RDMA_READ, (uintptr_t)bed.memory + BED_BYTES - 16,
                       bed.mr->rkey, 64));
    need_status(IBV_WC_REM_ACCESS_ERR);
}

static void deregistered(void)
{
    uint32_t rkey;

    register_read_only();
    rkey = read_only->rkey;
    BED_NEED(!ibv_dereg_mr(read_only));
    BED_NEED(!bed_rdma(&bed, IBV_WR_RDMA_READ, (uintptr_t)bed.memory, rkey, 64));
    need_status(IBV_WC_REM_ACCESS_ERR);
}

static void local_key(void)
{
    register_read_only();
    bed.mr->lkey = read_only->lkey; /* as a program that mixes up two regions */
    BED_NEED(!bed_rdma(&bed, IBV_WR_RDMA_READ, (uintptr_t)bed.memory, bed.mr->rkey, 64));
    need_status(IBV_WC_LOC_PROT_ERR);
}

static void short_receive(void)
{
    BED_NEED(!bed_receive(&bed, 1, 16, 3));
    BED_NEED(!bed_send(&bed, 0, 512, 4));
    for (int i = 0; i < 2; i++) {
        struct ibv_wc wc = bed_poll(&bed);

        BED_NEED(wc.status == (wc.wr_id == 3 ? IBV_WC_LOC_LEN_ERR : IBV_WC_REM_INV_REQ_ERR));
    }
}

static void rnr(void)
{
    BED_NEED(!bed_send(&bed, 0, 512, 4));
    need_status(IBV_WC_RNR_RETRY_EXC_ERR);
}

static void silence(void)
{
    BED_NEED(!ibv_destroy_qp(bed.qp[1]));
    BED_NEED(!bed_send(&bed, 0, 512, 4));
    need_status(IBV_WC_RETRY_EXC_ERR);
}

static void transition(void)
{
    struct ibv_qp *qp = bed_qp(&bed);
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };

    BED_NEED(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == EINVAL);
    attr.qp_state = IBV_QPS_INIT;
    BED_NEED(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT) == EINVAL);
}

static void full_queue(void)
{
    int err = 0;

    for (int i = 0; i < 1000 && !err; i++)
        err = bed_rdma(&bed, IBV_WR_RDMA_WRITE, (uintptr_t)bed.memory, bed.mr->rkey, 8);
    BED_NEED(err == ENOMEM);
}

static void busy(void)
{
    BED_NEED(ibv_destroy_cq(bed.cq) == EBUSY);
}

static void unmapped(void)
{
    BED_NEED(!ibv_reg_mr(bed.pd, (void *)16, 4096, 0) && errno == EFAULT);
}

/* A request that was built with ibv_wr_start() and its kin. */
static void extended(void)
{
    struct ibv_qp_init_attr_ex init = { .send_cq = bed.cq,
                                        .recv_cq = bed.cq,
                                        .cap = { 4, 4, 1, 1, 0 },
                                        .qp_type = IBV_QPT_RC,
                                        .pd = bed.pd,
                                        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                        .send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE };
    struct ibv_qp *qp = ibv_create_qp_ex(bed.context, &init), *peer = bed_qp(&bed);
    struct ibv_qp_ex *ex = qp ? ibv_qp_to_qp_ex(qp) : NULL;

    BED_NEED(ex);
    bed_connect(qp, peer->qp_num, bed_lid(bed.context));
    bed_connect(peer, qp->qp_num, bed_lid(bed.context));
    register_read_only();
    ibv_wr_start(ex);
    ex->wr_id = 7;
    ex->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_write(ex, read_only->rkey, (uintptr_t)bed.memory);
    ibv_wr_set_sge(ex, bed.mr->lkey, (uintptr_t)bed.memory, 64);
    BED_NEED(!ibv_wr_complete(ex));
    need_status(IBV_WC_REM_ACCESS_ERR);
}

/* With the plan 'limit regions 3; limit bytes 64K': the bed has one region. */
static void limits(void)
{
    static char memory[65536] __attribute__((aligned(4096)));
    struct ibv_mr *first = ibv_reg_mr(bed.pd, memory, 4096, 0), *second;

    second = ibv_reg_mr(bed.pd, memory, 4096, 0);
    BED_NEED(first && second && !ibv_reg_mr(bed.pd, memory, 1, 0) && errno == ENOMEM);
    BED_NEED(!ibv_dereg_mr(second));
    BED_NEED(!ibv_reg_mr(bed.pd, memory, sizeof(memory), 0) && errno == ENOMEM);
    second = ibv_reg_mr(bed.pd, memory, 4096, 0);
    BED_NEED(second && ibv_rereg_mr(second, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, memory,
                                    sizeof(memory), 0) == IBV_REREG_MR_ERR_CMD &&
             errno == ENOMEM);
    BED_NEED(!ibv_rereg_mr(second, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, memory, 32768, 0));
    BED_NEED(!ibv_rereg_mr(first, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, memory, 16384, 0));
    BED_NEED(!ibv_dereg_mr(first) && !ibv_dereg_mr(second));
    second = ibv_reg_mr(bed.pd, memory, 49152, 0);
    BED_NEED(second && !ibv_dereg_mr(second));
}

/* With the plan 'port_down nth=1; port_up nth=2; device_fatal nth=3'. */
static void events(void)
{
    static const enum ibv_event_type expected[] = { IBV_EVENT_PORT_ERR, IBV_EVENT_PORT_ACTIVE,
                                                    IBV_EVENT_DEVICE_FATAL };
    struct ibv_async_event event;

    for (int i = 0; i < 3; i++) {
        BED_NEED(!bed_rdma(&bed, IBV_WR_RDMA_WRITE, (uintptr_t)bed.memory, bed.mr->rkey, 64));
        do {
            BED_NEED(!ibv_get_async_event(bed.context, &event));
            ibv_ack_async_event(&event);
        } while (event.event_type == IBV_EVENT_QP_FATAL);
        BED_NEED(event.event_type == expected[i]);
    }
    BED_NEED(!ibv_reg_mr(bed.pd, bed.memory, 64, 0) && errno == EIO);
}

static void good(void)
{
    BED_NEED(!bed_receive(&bed, 1, 512, 3));
    BED_NEED(!bed_send(&bed, 0, 512, 4));
    for (int i = 0; i < 2; i++)
        BED_NEED(bed_poll(&bed).status == IBV_WC_SUCCESS);
    bed_free(&bed);
}

static const struct bed_case cases[] = {
    { "access-flag", access_flag }, { "range", range },
    { "deregistered", deregistered }, { "local-key", local_key },
    { "short-receive", short_receive }, { "rnr", rnr },
    { "silence", silence }, { "transition", transition },
    { "full-queue", full_queue }, { "busy", busy },
    { "unmapped", unmapped }, { "good", good },
    { "extended", extended }, { "limits", limits },
    { "events", events },
    { NULL, NULL },
};

int main(int count, char **words)
{
    const struct bed_case *chosen = bed_choose(cases, count, words);

    bed_make(&bed);
    chosen->run();
    return 0;
}
