/* SPDX-License-Identifier: BSD-2-Clause */
#include "side.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

const struct side_config side_usual = {
    .type = IBV_QPT_RC,
    .send_depth = 16,
    .recv_depth = 16,
    .cq_depth = 64,
    .qp_access = RIG_ACCESS_ALL,
    .mr_access = RIG_ACCESS_ALL,
    .bytes = 1 << 20,
};

static void open_cqs(struct side *side)
{
    if (side->config.with_channel) {
        side->channel = ibv_create_comp_channel(side->rig.ctx);
        CHECK(side->channel, "ibv_create_comp_channel: %s", strerror(errno));
    }
    side->send_cq = ibv_create_cq(side->rig.ctx, side->config.cq_depth, NULL, side->channel, 0);
    side->recv_cq = ibv_create_cq(side->rig.ctx, side->config.cq_depth, NULL, side->channel, 0);
    CHECK(side->send_cq && side->recv_cq, "ibv_create_cq: %s", strerror(errno));
}

static void open_qp(struct side *side)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = side->send_cq,
        .recv_cq = side->recv_cq,
        .cap = { .max_send_wr = side->config.send_depth,
                 .max_recv_wr = side->config.recv_depth,
                 .max_send_sge = 2,
                 .max_recv_sge = 2 },
        .qp_type = side->config.type,
    };

    if (side->config.use_srq) {
        struct ibv_srq_init_attr srq = {
            .attr = { .max_wr = side->config.recv_depth, .max_sge = 2 },
        };
        side->srq = ibv_create_srq(side->rig.pd, &srq);
        CHECK(side->srq, "ibv_create_srq: %s", strerror(errno));
        attr.srq = side->srq;
    }
    side->qp = ibv_create_qp(side->rig.pd, &attr);
    CHECK(side->qp, "ibv_create_qp: %s", strerror(errno));
    side->cap = attr.cap;
}

void side_open(struct side *side, const struct side_config *config)
{
    memset(side, 0, sizeof(*side));
    side->config = *config;
    int err = rig_open(&side->rig);
    CHECK(!err, "opening the device: %s", strerror(err));
    fcntl(side->rig.ctx->async_fd, F_SETFL, O_NONBLOCK);
    open_cqs(side);
    open_qp(side);
    side->buf =
        mmap(NULL, config->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(side->buf != MAP_FAILED, "mmap: %s", strerror(errno));
    side->mr = ibv_reg_mr(side->rig.pd, side->buf, config->bytes, config->mr_access);
    CHECK(side->mr, "ibv_reg_mr: %s", strerror(errno));
    side->other_pd = ibv_alloc_pd(side->rig.ctx);
    CHECK(side->other_pd, "ibv_alloc_pd: %s", strerror(errno));
    side->other_mr = ibv_reg_mr(side->other_pd, side->buf, config->bytes, RIG_ACCESS_ALL);
    CHECK(side->other_mr, "ibv_reg_mr: %s", strerror(errno));
}

void side_close(struct side *side)
{
    if (side->qp)
        CHECK_INT(ibv_destroy_qp(side->qp), 0);
    if (side->srq)
        CHECK_INT(ibv_destroy_srq(side->srq), 0);
    CHECK_INT(ibv_destroy_cq(side->send_cq), 0);
    CHECK_INT(ibv_destroy_cq(side->recv_cq), 0);
    if (side->channel)
        CHECK_INT(ibv_destroy_comp_channel(side->channel), 0);
    if (side->mr)
        CHECK_INT(ibv_dereg_mr(side->mr), 0);
    CHECK_INT(ibv_dereg_mr(side->other_mr), 0);
    CHECK_INT(ibv_dealloc_pd(side->other_pd), 0);
    CHECK_INT(rig_close(&side->rig), 0);
    munmap(side->buf, side->config.bytes);
}

/* Keep the range reserved, so that nothing else is mapped there. */
int side_unmap(struct side *side)
{
    void *none = mmap(side->buf, side->config.bytes, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);

    return none == MAP_FAILED ? errno : 0;
}

void side_info(const struct side *side, struct side_info *info)
{
    rig_addr_of(&side->rig, side->qp, 0, &info->addr);
    info->buf = (uintptr_t)side->buf;
    info->lkey = side->mr->lkey;
    info->rkey = side->mr->rkey;
    info->other_rkey = side->other_mr->rkey;
    info->cqe = side->recv_cq->cqe;
}

int side_post_recv(struct side *side, uint64_t wr_id, uint64_t offset, uint32_t len, uint32_t lkey)
{
    struct ibv_sge sge = { .addr = (uintptr_t)side->buf + offset, .length = len, .lkey = lkey };
    struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad = NULL;
    int err =
        side->srq ? ibv_post_srq_recv(side->srq, &wr, &bad) : ibv_post_recv(side->qp, &wr, &bad);

    if (err)
        CHECK(bad == &wr, "bad_wr does not point to the request that failed");
    return err;
}

int side_async(struct side *side, int timeout_ms)
{
    struct pollfd fd = { .fd = side->rig.ctx->async_fd, .events = POLLIN };
    struct ibv_async_event event;

    if (poll(&fd, 1, timeout_ms) <= 0 || ibv_get_async_event(side->rig.ctx, &event))
        return -1;
    ibv_ack_async_event(&event);
    return event.event_type;
}

void pair_open(struct pair *pair, bool remote, const struct side_config *config,
               const struct rig_timing *timing)
{
    struct side_info mine;

    /* Fork the far end before this process opens anything. */
    far_open(&pair->b, remote, config);
    side_open(&pair->a, config);
    side_info(&pair->a, &mine);
    far_info(&pair->b, &pair->at);
    int err = far_connect(&pair->b, &mine.addr, timing);
    CHECK(!err, "connecting the far end: %s", strerror(err));
    err = rig_qp_connect(pair->a.qp, 0, &pair->at.addr, config->qp_access, timing);
    CHECK(!err, "connecting: %s", strerror(err));
}

void pair_close(struct pair *pair)
{
    side_close(&pair->a);
    far_close(&pair->b);
}

int pair_post(struct pair *pair, const struct request *request)
{
    struct ibv_sge sge = { .addr = (uintptr_t)pair->a.buf + request->local_offset,
                           .length = request->len,
                           .lkey = request->lkey ? request->lkey : pair->a.mr->lkey };
    struct ibv_send_wr wr = { .wr_id = request->wr_id,
                              .sg_list = &sge,
                              .num_sge = 1,
                              .opcode = request->opcode,
                              .send_flags = IBV_SEND_SIGNALED | request->flags };
    struct ibv_send_wr *bad = NULL;

    if (request->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
        request->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = request->remote_addr;
        wr.wr.atomic.rkey = request->rkey;
        wr.wr.atomic.compare_add = request->compare_add;
        wr.wr.atomic.swap = request->swap;
    } else {
        wr.wr.rdma.remote_addr = request->remote_addr;
        wr.wr.rdma.rkey = request->rkey;
    }
    int err = ibv_post_send(pair->a.qp, &wr, &bad);
    if (err)
        CHECK(bad == &wr, "bad_wr does not point to the request that failed");
    return err;
}

enum ibv_wc_status pair_do(struct pair *pair, const struct request *request)
{
    struct ibv_wc wc;
    int err = pair_post(pair, request);

    CHECK(!err, "ibv_post_send: %s", strerror(err));
    if (rig_poll(pair->a.send_cq, &wc, 5000) != 1)
        return NO_COMPLETION;
    CHECK_INT(wc.wr_id, request->wr_id);
    return wc.status;
}
