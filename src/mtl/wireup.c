/* SPDX-License-Identifier: BSD-2-Clause */
#include "mtl/connection.h"

#include "mtl/log.h"
#include "mtl/mtl.h"

#include <errno.h>
#include <stdlib.h>

#define RECV_DEPTH 128
#define SEND_DEPTH 32
#define QKEY       0x76657262
#define GRH_BYTES  40

struct ud_endpoint {
    struct ibv_qp *qp;
    struct ibv_mr *region;
    struct work recv_work[RECV_DEPTH];
    struct work send_work[SEND_DEPTH];
    bool send_busy[SEND_DEPTH];
    struct {
        char grh[GRH_BYTES];
        struct wireup_message message;
    } recv[RECV_DEPTH];
    struct wireup_message send[SEND_DEPTH];
};

static struct ud_endpoint *ud;

static int post_recv(uint32_t index)
{
    struct ibv_sge sge = { .addr = (uintptr_t)&ud->recv[index],
                           .length = sizeof(ud->recv[index]),
                           .lkey = ud->region->lkey };
    struct ibv_recv_wr wr = { .wr_id = (uintptr_t)&ud->recv_work[index],
                              .sg_list = &sge,
                              .num_sge = 1 },
                       *bad;

    return ibv_post_recv(ud->qp, &wr, &bad);
}

static int modify_to_rts(void)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
                                .port_num = devices.path[0].port,
                                .qkey = QKEY };
    int err =
        ibv_modify_qp(ud->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);

    for (uint32_t i = 0; i < RECV_DEPTH && !err; i++) {
        ud->recv_work[i] = (struct work){ .kind = WORK_WIREUP_RECV, .index = i };
        err = post_recv(i);
    }
    for (uint32_t i = 0; i < SEND_DEPTH; i++)
        ud->send_work[i] = (struct work){ .kind = WORK_WIREUP_SEND, .index = i };
    attr.qp_state = IBV_QPS_RTR;
    if (!err)
        err = ibv_modify_qp(ud->qp, &attr, IBV_QP_STATE);
    attr.qp_state = IBV_QPS_RTS;
    attr.sq_psn = 0;
    if (!err)
        err = ibv_modify_qp(ud->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
    return err;
}

int wireup_open(uint32_t *qp_num)
{
    struct device *device = devices.path[0].device;
    struct ibv_qp_init_attr init = {
        .send_cq = device->cq,
        .recv_cq = device->cq,
        .cap = { .max_send_wr = SEND_DEPTH,
                 .max_recv_wr = RECV_DEPTH,
                 .max_send_sge = 1,
                 .max_recv_sge = 1 },
        .qp_type = IBV_QPT_UD,
    };
    int err;

    /* Page-aligned: the offset within a page affects modelled time, and the heap differs from run
     * to run. */
    ud = aligned_alloc(PAGE, round_up(sizeof(*ud), PAGE));
    if (!ud)
        return ENOMEM;
    memset(ud, 0, sizeof(*ud));
    err = device_reserve(device, RECV_DEPTH + SEND_DEPTH);
    if (err)
        goto close;
    ud->qp = ibv_create_qp(device->pd, &init);
    ud->region = ibv_reg_mr(device->pd, ud, sizeof(*ud), IBV_ACCESS_LOCAL_WRITE);
    err = ud->qp && ud->region ? modify_to_rts() : errno;
    if (err) {
        mtl_log("cannot set up a UD queue pair on %s: %s",
                ibv_get_device_name(device->context->device), strerror(err));
        goto close;
    }
    *qp_num = ud->qp->qp_num;
    return 0;
close:
    wireup_close();
    return err;
}

void wireup_close(void)
{
    if (!ud)
        return;
    if (ud->qp)
        ibv_destroy_qp(ud->qp);
    if (ud->region)
        ibv_dereg_mr(ud->region);
    free(ud);
    ud = NULL;
}

bool wireup_send(struct connection *connection, const struct wireup_message *message)
{
    const struct address *to = &connection->endpoint->address;
    struct ibv_sge sge = { .length = sizeof(*message), .lkey = ud->region->lkey };
    struct ibv_send_wr wr = {
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = IBV_WR_SEND,
        .send_flags = IBV_SEND_SIGNALED,
        .wr.ud = { .remote_qpn = to->ud_qpn, .remote_qkey = QKEY },
    };
    struct ibv_send_wr *bad;
    struct ibv_ah_attr ah_attr;
    uint32_t i = 0;

    if (!connection->ud_ah) {
        device_path_ah_attr(&devices.path[0], &to->path[0], &ah_attr);
        connection->ud_ah = ibv_create_ah(devices.path[0].device->pd, &ah_attr);
    }
    while (i < SEND_DEPTH && ud->send_busy[i])
        i++;
    if (!connection->ud_ah || i == SEND_DEPTH)
        return false;
    ud->send[i] = *message;
    sge.addr = (uintptr_t)&ud->send[i];
    wr.wr_id = (uintptr_t)&ud->send_work[i];
    wr.wr.ud.ah = connection->ud_ah;
    ud->send_busy[i] = !ibv_post_send(ud->qp, &wr, &bad);
    return ud->send_busy[i];
}

void wireup_completed(const struct ibv_wc *completion, const struct work *work)
{
    if (work->kind == WORK_WIREUP_SEND) {
        ud->send_busy[work->index] = false;
        return;
    }
    if (completion->status != IBV_WC_SUCCESS)
        return;
    connection_wireup_arrived(&ud->recv[work->index].message);
    post_recv(work->index);
}
