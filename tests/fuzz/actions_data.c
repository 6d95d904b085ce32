/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls that post and poll, in both interfaces. */
#include "world.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define CHAIN 4

static int take_sge_count(struct input *in)
{
    uint8_t shape = take8(in);

    if (shape < 200)
        return shape % 6;
    if (shape < 240)
        return shape % 40;
    return shape < 250 ? SGE_ROOM - shape % 8 : (int)take_edge(in);
}

/* A count beyond what a queue allows must be refused before the list is read. */
static int fill_pieces(struct world *world, struct input *in, struct ibv_sge *sge, bool in_arena)
{
    int count = take_sge_count(in);
    int used = count < 0 || count > 40 ? 40 : count;

    memset(sge, 0, SGE_ROOM * sizeof(*sge));
    for (int i = 0; i < used; i++) {
        sge[i].addr = in_arena ? (uintptr_t)world->arena : wild_address(world, in);
        sge[i].length = take8(in) < 230 ? take_edge(in) % ARENA_BYTES : take32(in);
        sge[i].lkey = wild_key(world, in, false);
    }
    return count;
}

static void aim(struct world *world, struct input *in, struct ibv_qp *qp, struct ibv_send_wr *wr)
{
    struct ibv_ah *ah = PICK(world, ah, in);
    struct ibv_qp *to = PICK(world, qp, in);

    if (qp->qp_type == IBV_QPT_UD) {
        wr->wr.ud.ah = ah ? ah : world->ah[0];
        wr->wr.ud.remote_qpn = to && take8(in) & 1 ? to->qp_num : take32(in);
        wr->wr.ud.remote_qkey = take8(in) & 1 ? RIG_QKEY : take32(in);
        return;
    }
    if (wr->opcode == IBV_WR_BIND_MW || wr->opcode == IBV_WR_LOCAL_INV)
        return;
    if (take8(in) & 1) {
        wr->wr.rdma.remote_addr = wild_address(world, in);
        wr->wr.rdma.rkey = wild_key(world, in, true);
    } else {
        wr->wr.atomic.remote_addr = wild_address(world, in);
        wr->wr.atomic.rkey = wild_key(world, in, true);
        wr->wr.atomic.compare_add = take64(in);
        wr->wr.atomic.swap = take64(in);
    }
    wr->qp_type.xrc.remote_srqn = take_edge(in);
}

static bool fill_bind(struct world *world, struct input *in, struct ibv_send_wr *wr)
{
    wr->bind_mw.mw = PICK(world, mw, in);
    wr->bind_mw.rkey = take32(in);
    wr->bind_mw.bind_info.mr = PICK(world, mr, in);
    wr->bind_mw.bind_info.addr = wild_address(world, in);
    wr->bind_mw.bind_info.length = wild_length(in);
    wr->bind_mw.bind_info.mw_access_flags = take_edge(in);
    return wr->bind_mw.mw && wr->bind_mw.bind_info.mr;
}

static enum ibv_wr_opcode take_opcode(struct input *in)
{
    uint8_t shape = take8(in);

    return shape < 230 ? shape % 12 : (enum ibv_wr_opcode)take_edge(in);
}

static void post_send(struct world *world, struct input *in)
{
    static struct ibv_sge sge[CHAIN][SGE_ROOM];
    struct ibv_send_wr wr[CHAIN], *bad = NULL;
    struct ibv_qp *qp = PICK(world, qp, in);
    int count = 1 + take8(in) % CHAIN;

    if (!qp)
        return;
    memset(wr, 0, sizeof(wr));
    for (int i = 0; i < count; i++) {
        wr[i].wr_id = take8(in);
        wr[i].opcode = take_opcode(in);
        wr[i].send_flags = take8(in) < 220 ? take8(in) & 15 : take32(in);
        wr[i].imm_data = take32(in);
        if (wr[i].opcode == IBV_WR_BIND_MW && !fill_bind(world, in, &wr[i]))
            wr[i].opcode = IBV_WR_SEND;
        wr[i].num_sge = fill_pieces(world, in, sge[i], wr[i].send_flags & IBV_SEND_INLINE);
        wr[i].sg_list = sge[i];
        aim(world, in, qp, &wr[i]);
        wr[i].next = i + 1 < count ? &wr[i + 1] : NULL;
    }
    int err = ibv_post_send(qp, wr, &bad);
    if (err && (bad < wr || bad >= wr + count))
        violated("ibv_post_send gave %d, but bad_wr is not in the list", err);
}

static void post_recv(struct world *world, struct input *in)
{
    static struct ibv_sge sge[CHAIN][SGE_ROOM];
    struct ibv_recv_wr wr[CHAIN], *bad = NULL;
    struct ibv_qp *qp = PICK(world, qp, in);
    struct ibv_srq *srq = PICK(world, srq, in);
    bool shared = take8(in) & 1;
    int count = 1 + take8(in) % CHAIN;

    if (shared ? !srq : !qp)
        return;
    memset(wr, 0, sizeof(wr));
    for (int i = 0; i < count; i++) {
        wr[i].wr_id = take8(in);
        wr[i].num_sge = fill_pieces(world, in, sge[i], false);
        wr[i].sg_list = sge[i];
        wr[i].next = i + 1 < count ? &wr[i + 1] : NULL;
    }
    int err = shared ? ibv_post_srq_recv(srq, wr, &bad) : ibv_post_recv(qp, wr, &bad);
    if (err && (bad < wr || bad >= wr + count))
        violated("posting receives gave %d, but bad_wr is not in the list", err);
}

static void bind_mw(struct world *world, struct input *in)
{
    struct ibv_qp *qp = PICK(world, qp, in);
    struct ibv_mw *mw = PICK(world, mw, in);
    struct ibv_mw_bind bind = {
        .wr_id = take8(in),
        .send_flags = take_edge(in),
        .bind_info = { .mr = PICK(world, mr, in),
                       .addr = wild_address(world, in),
                       .length = wild_length(in),
                       .mw_access_flags = take_edge(in) },
    };

    if (qp && mw)
        ibv_bind_mw(qp, mw, &bind);
}

/* Calls of the extended interface in any order, some of them twice. */
static void build_one(struct world *world, struct input *in, struct ibv_qp_ex *qp,
                      const struct ibv_sge *sge, int count)
{
    uint32_t rkey = wild_key(world, in, true);
    uint64_t addr = wild_address(world, in);

    qp->wr_id = take8(in);
    qp->wr_flags = take_edge(in) & ~IBV_SEND_INLINE;
    switch (take8(in) % 8) {
    case 0:
        ibv_wr_send(qp);
        break;
    case 1:
        ibv_wr_send_imm(qp, take32(in));
        break;
    case 2:
        ibv_wr_rdma_write(qp, rkey, addr);
        break;
    case 3:
        ibv_wr_rdma_write_imm(qp, rkey, addr, take32(in));
        break;
    case 4:
        ibv_wr_rdma_read(qp, rkey, addr);
        break;
    default:
        ibv_wr_atomic_fetch_add(qp, rkey, addr, take64(in));
    }
    if (qp->qp_base.qp_type == IBV_QPT_UD)
        ibv_wr_set_ud_addr(qp, world->ah[0], take32(in), take32(in));
    switch (take8(in) % 5) {
    case 0:
        ibv_wr_set_sge(qp, sge[0].lkey, sge[0].addr, sge[0].length);
        break;
    case 1:
        if (count >= 0)
            ibv_wr_set_sge_list(qp, count, sge);
        break;
    case 2:
        ibv_wr_set_inline_data(qp, world->arena, take_edge(in));
        break;
    case 3:
        ibv_wr_set_inline_data(qp, world->arena, take8(in));
        break;
    default:
        break;
    }
}

static void build_requests(struct world *world, struct input *in)
{
    static struct ibv_sge sge[SGE_ROOM];
    int i = take8(in) % POOL;
    struct ibv_qp_ex *qp = world->qp_ex[i];

    if (!qp)
        return;
    ibv_wr_start(qp);
    for (int n = take8(in) % 6; n > 0; n--) {
        int count = fill_pieces(world, in, sge, false);
        build_one(world, in, qp, sge, count > SGE_ROOM ? SGE_ROOM : count);
    }
    if (take8(in) & 1)
        ibv_wr_complete(qp);
    else
        ibv_wr_abort(qp);
}

static void poll_cq(struct world *world, struct input *in)
{
    struct ibv_cq *cq = PICK(world, cq, in);
    struct ibv_wc wc[32];
    uint8_t shape = take8(in);
    int count = shape < 240 ? shape % 33 : shape < 248 ? 0 : -1;

    if (!cq)
        return;
    int n = ibv_poll_cq(cq, count, wc);
    if (count >= 0 && n > count)
        violated("ibv_poll_cq of %d gave %d", count, n);
    for (int i = 0; i < n; i++)
        if (wc[i].status > IBV_WC_TM_RNDV_INCOMPLETE)
            violated("status %d", wc[i].status);
}

static void read_completion(struct ibv_cq_ex *cq)
{
    if (cq->status > IBV_WC_TM_RNDV_INCOMPLETE)
        violated("status %d", cq->status);
    ibv_wc_read_opcode(cq);
    ibv_wc_read_vendor_err(cq);
    ibv_wc_read_qp_num(cq);
    ibv_wc_read_wc_flags(cq);
}

static void poll_cq_ex(struct world *world, struct input *in)
{
    int i = take8(in) % POOL;
    struct ibv_cq_ex *cq = world->cq_ex[i];
    struct ibv_poll_cq_attr attr = { .comp_mask = take8(in) & 1 ? take32(in) : 0 };

    if (!cq || ibv_start_poll(cq, &attr))
        return;
    int n = take8(in) % 16;
    do {
        read_completion(cq);
    } while (n-- && !ibv_next_poll(cq));
    ibv_end_poll(cq);
}

static void notify(struct world *world, struct input *in)
{
    struct ibv_cq *cq = PICK(world, cq, in);
    struct pollfd fd = { .fd = world->channel->fd, .events = POLLIN };
    void *context;

    if (cq)
        ibv_req_notify_cq(cq, (int)take_edge(in));
    while (poll(&fd, 1, 0) == 1) {
        struct ibv_cq *of;
        if (ibv_get_cq_event(world->channel, &of, &context))
            violated("ibv_get_cq_event: %s", strerror(errno));
        ibv_ack_cq_events(of, 1);
    }
}

const struct action data_actions[] = {
    { "post_send", post_send },           { "post_send", post_send }, { "post_send", post_send },
    { "post_recv", post_recv },           { "post_recv", post_recv }, { "bind_mw", bind_mw },
    { "build_requests", build_requests }, { "poll_cq", poll_cq },     { "poll_cq", poll_cq },
    { "poll_cq_ex", poll_cq_ex },         { "notify", notify },
};
const size_t data_action_count = sizeof(data_actions) / sizeof(data_actions[0]);
