#include "mtl/connection.h"

#include "mtl/log.h"
#include "mtl/mtl.h"

#include <errno.h>
#include <stdlib.h>

#define GREETINGS_IN  128
#define GREETINGS_OUT 32
#define QKEY          0x76657262
#define GRH_BYTES     40

struct greeter {
    struct ibv_qp *qp;
    struct ibv_mr *region;
    struct work in[GREETINGS_IN];
    struct work out[GREETINGS_OUT];
    bool busy[GREETINGS_OUT];
    struct {
        char grh[GRH_BYTES];
        struct greeting greeting;
    } arriving[GREETINGS_IN];
    struct greeting leaving[GREETINGS_OUT];
};

static struct greeter *greeter;

static int expect(uint32_t index)
{
    struct ibv_sge place = { .addr = (uintptr_t)&greeter->arriving[index],
                             .length = sizeof(greeter->arriving[index]),
                             .lkey = greeter->region->lkey };
    struct ibv_recv_wr request = { .wr_id = (uintptr_t)&greeter->in[index],
                                   .sg_list = &place,
                                   .num_sge = 1 },
                       *bad;

    return ibv_post_recv(greeter->qp, &request, &bad);
}

static int make_ready(void)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
                                .port_num = devices.path[0].port,
                                .qkey = QKEY };
    int err = ibv_modify_qp(greeter->qp, &attr,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);

    for (uint32_t i = 0; i < GREETINGS_IN && !err; i++) {
        greeter->in[i] = (struct work){ .kind = WORK_GREETING_IN, .index = i };
        err = expect(i);
    }
    for (uint32_t i = 0; i < GREETINGS_OUT; i++)
        greeter->out[i] = (struct work){ .kind = WORK_GREETING_OUT, .index = i };
    attr.qp_state = IBV_QPS_RTR;
    if (!err)
        err = ibv_modify_qp(greeter->qp, &attr, IBV_QP_STATE);
    attr.qp_state = IBV_QPS_RTS;
    attr.sq_psn = 0;
    if (!err)
        err = ibv_modify_qp(greeter->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
    return err;
}

int greeter_open(uint32_t *number)
{
    struct device *device = devices.path[0].device;
    struct ibv_qp_init_attr init = {
        .send_cq = device->cq,
        .recv_cq = device->cq,
        .cap = { .max_send_wr = GREETINGS_OUT,
                 .max_recv_wr = GREETINGS_IN,
                 .max_send_sge = 1,
                 .max_recv_sge = 1 },
        .qp_type = IBV_QPT_UD,
    };
    int err;

    /* At a page: where in its pages memory lies is seen in a model's time, and heaps differ from run to
     * run. */
    greeter = aligned_alloc(PAGE, round_up(sizeof(*greeter), PAGE));
    if (!greeter)
        return ENOMEM;
    memset(greeter, 0, sizeof(*greeter));
    err = device_reserve(device, GREETINGS_IN + GREETINGS_OUT);
    if (err)
        goto close;
    greeter->qp = ibv_create_qp(device->pd, &init);
    greeter->region = ibv_reg_mr(device->pd, greeter, sizeof(*greeter), IBV_ACCESS_LOCAL_WRITE);
    err = greeter->qp && greeter->region ? make_ready() : errno;
    if (err) {
        mtl_log("no datagram queue pair on %s: %s", ibv_get_device_name(device->context->device),
                strerror(err));
        goto close;
    }
    *number = greeter->qp->qp_num;
    return 0;
close:
    greeter_close();
    return err;
}

void greeter_close(void)
{
    if (!greeter)
        return;
    if (greeter->qp)
        ibv_destroy_qp(greeter->qp);
    if (greeter->region)
        ibv_dereg_mr(greeter->region);
    free(greeter);
    greeter = NULL;
}

bool greeter_send(struct connection *connection, const struct greeting *greeting)
{
    const struct address *to = &connection->endpoint->address;
    struct ibv_sge piece = { .length = sizeof(*greeting), .lkey = greeter->region->lkey };
    struct ibv_send_wr request = {
        .sg_list = &piece,
        .num_sge = 1,
        .opcode = IBV_WR_SEND,
        .send_flags = IBV_SEND_SIGNALED,
        .wr.ud = { .remote_qpn = to->greeter, .remote_qkey = QKEY },
    };
    struct ibv_send_wr *bad;
    struct ibv_ah_attr vector;
    uint32_t i = 0;

    if (!connection->greeter) {
        path_vector(&devices.path[0], &to->path[0], &vector);
        connection->greeter = ibv_create_ah(devices.path[0].device->pd, &vector);
    }
    while (i < GREETINGS_OUT && greeter->busy[i])
        i++;
    if (!connection->greeter || i == GREETINGS_OUT)
        return false;
    greeter->leaving[i] = *greeting;
    piece.addr = (uintptr_t)&greeter->leaving[i];
    request.wr_id = (uintptr_t)&greeter->out[i];
    request.wr.ud.ah = connection->greeter;
    greeter->busy[i] = !ibv_post_send(greeter->qp, &request, &bad);
    return greeter->busy[i];
}

void greeter_completed(const struct ibv_wc *completion, const struct work *work)
{
    if (work->kind == WORK_GREETING_OUT) {
        greeter->busy[work->index] = false;
        return;
    }
    if (completion->status != IBV_WC_SUCCESS)
        return;
    connection_greeted(&greeter->arriving[work->index].greeting);
    expect(work->index);
}
