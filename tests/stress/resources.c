/* SPDX-License-Identifier: BSD-2-Clause */
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define POISON 0xa5

void *worker_memory(struct worker *worker, size_t bytes)
{
    void *mem;

    if (worker->proc->mapped_memory) {
        mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (mem == MAP_FAILED)
            mem = NULL;
    } else {
        mem = calloc(1, bytes);
    }
    if (!mem)
        worker_fail(worker, "no memory for %zu bytes", bytes);
    return mem;
}

void worker_memory_free(struct worker *worker, void *mem, size_t bytes)
{
    if (worker->proc->mapped_memory)
        munmap(mem, bytes);
    else
        free(mem);
}

static struct ibv_mr *must_register(struct worker *worker, void *mem, size_t bytes, int access)
{
    struct ibv_mr *mr = ibv_reg_mr(worker->rig.pd, mem, bytes, access);

    if (!mr)
        worker_fail(worker, "ibv_reg_mr of %zu bytes: %s", bytes, strerror(errno));
    return mr;
}

static void must(struct worker *worker, int err, const char *what)
{
    if (err)
        worker_fail(worker, "%s: %s", what, strerror(err));
}

static void pool_open(struct worker *worker, struct recv_pool *pool, uint32_t count,
                      uint32_t stride)
{
    pool->count = count;
    pool->stride = stride;
    pool->base = worker_memory(worker, (size_t)count * stride);
    memset(pool->base, POISON, (size_t)count * stride);
    pool->mr = must_register(worker, pool->base, (size_t)count * stride, IBV_ACCESS_LOCAL_WRITE);
}

static void pool_close(struct worker *worker, struct recv_pool *pool)
{
    if (!pool->base)
        return;
    if (pool->srq)
        must(worker, ibv_destroy_srq(pool->srq), "ibv_destroy_srq");
    must(worker, ibv_dereg_mr(pool->mr), "ibv_dereg_mr of a receive pool");
    worker_memory_free(worker, pool->base, (size_t)pool->count * pool->stride);
}

uint32_t endpoint_stride(const struct plan_link *link)
{
    return link->max_len + sizeof(struct ibv_grh) + 64;
}

static int cq_capacity(const struct worker *worker, int cq)
{
    const struct plan *plan = worker->plan;
    int need = 32 + worker->proc->srq_depth + worker->proc->xrc_srq_depth;

    for (int l = 0; l < plan->links; l++) {
        for (int s = 0; s < 2; s++) {
            const struct plan_side *side = &plan->link[l].side[s];
            if (side->proc != worker->me)
                continue;
            if (side->send_cq == cq)
                need += side->sq_depth;
            if (side->recv_cq == cq)
                need += side->rq_depth;
        }
    }
    return need;
}

static void open_shared_queue(struct worker *worker)
{
    struct ibv_srq_init_attr attr = {
        .attr = { .max_wr = worker->proc->srq_depth, .max_sge = MAX_SGE },
    };

    pool_open(worker, &worker->srq_pool, worker->proc->srq_depth,
              worker->proc->srq_len + sizeof(struct ibv_grh) + 64);
    worker->srq_pool.srq = ibv_create_srq(worker->rig.pd, &attr);
    if (!worker->srq_pool.srq)
        worker_fail(worker, "ibv_create_srq: %s", strerror(errno));
    pool_post(worker, &worker->srq_pool, 0, worker->srq_pool.count);
}

static void open_xrc_queue(struct worker *worker)
{
    struct ibv_xrcd_init_attr domain = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
        .fd = -1,
        .oflags = O_CREAT,
    };

    worker->xrcd = ibv_open_xrcd(worker->rig.ctx, &domain);
    if (!worker->xrcd)
        worker_fail(worker, "ibv_open_xrcd: %s", strerror(errno));
    struct ibv_srq_init_attr_ex attr = {
        .attr = { .max_wr = worker->proc->xrc_srq_depth, .max_sge = MAX_SGE },
        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD |
                     IBV_SRQ_INIT_ATTR_CQ,
        .srq_type = IBV_SRQT_XRC,
        .pd = worker->rig.pd,
        .xrcd = worker->xrcd,
        .cq = worker->cq[0],
    };
    pool_open(worker, &worker->xrc_pool, worker->proc->xrc_srq_depth,
              worker->proc->xrc_srq_len + sizeof(struct ibv_grh) + 64);
    worker->xrc_pool.srq = ibv_create_srq_ex(worker->rig.ctx, &attr);
    if (!worker->xrc_pool.srq)
        worker_fail(worker, "ibv_create_srq_ex (XRC): %s", strerror(errno));
    pool_post(worker, &worker->xrc_pool, 0, worker->xrc_pool.count);
}

void worker_open(struct worker *worker)
{
    must(worker, rig_open(&worker->rig), "opening the device");
    if (worker->proc->events) {
        worker->channel = ibv_create_comp_channel(worker->rig.ctx);
        if (!worker->channel)
            worker_fail(worker, "ibv_create_comp_channel: %s", strerror(errno));
    }
    for (int i = 0; i < worker->proc->cqs; i++) {
        worker->cq[i] = ibv_create_cq(worker->rig.ctx, cq_capacity(worker, i), (void *)(intptr_t)i,
                                      worker->channel, 0);
        if (!worker->cq[i])
            worker_fail(worker, "ibv_create_cq: %s", strerror(errno));
    }
    worker->cells = worker_memory(worker, 4096);
    worker->cell_mr = must_register(worker, worker->cells, 4096,
                                    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
    if (worker->proc->srq_len)
        open_shared_queue(worker);
    if (worker->proc->xrc_srq_len)
        open_xrc_queue(worker);
}

void worker_close(struct worker *worker)
{
    pool_close(worker, &worker->srq_pool);
    pool_close(worker, &worker->xrc_pool);
    if (worker->xrcd)
        must(worker, ibv_close_xrcd(worker->xrcd), "ibv_close_xrcd");
    for (int i = 0; i < worker->proc->cqs; i++) {
        ibv_ack_cq_events(worker->cq[i], worker->unacked[i]);
        must(worker, ibv_destroy_cq(worker->cq[i]), "ibv_destroy_cq");
    }
    if (worker->channel)
        must(worker, ibv_destroy_comp_channel(worker->channel), "ibv_destroy_comp_channel");
    must(worker, ibv_dereg_mr(worker->cell_mr), "ibv_dereg_mr of the cells");
    worker_memory_free(worker, worker->cells, 4096);
    must(worker, rig_close(&worker->rig), "closing the device");
}

static struct ibv_qp *create_qp(struct endpoint *ep, enum ibv_qp_type type)
{
    struct worker *worker = ep->worker;
    struct ibv_qp_init_attr_ex attr = {
        .send_cq = worker->cq[ep->plan->send_cq],
        .recv_cq = worker->cq[ep->plan->recv_cq],
        .cap = { .max_send_wr = ep->plan->sq_depth,
                 .max_recv_wr = ep->plan->rq_depth,
                 .max_send_sge = MAX_SGE,
                 .max_recv_sge = MAX_SGE,
                 .max_inline_data = MAX_INLINE },
        .qp_type = type,
        .comp_mask = IBV_QP_INIT_ATTR_PD,
        .pd = worker->rig.pd,
    };

    if (type == IBV_QPT_XRC_RECV) {
        attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
        attr.xrcd = worker->xrcd;
        attr.pd = NULL;
        attr.send_cq = attr.recv_cq = NULL;
        memset(&attr.cap, 0, sizeof(attr.cap));
    } else if (type == IBV_QPT_XRC_SEND) {
        attr.recv_cq = NULL;
        attr.cap.max_recv_wr = attr.cap.max_recv_sge = 0;
    } else if (ep->plan->use_srq) {
        attr.srq = worker->srq_pool.srq;
        attr.cap.max_recv_wr = attr.cap.max_recv_sge = 0;
    }
    struct ibv_qp *qp = ibv_create_qp_ex(worker->rig.ctx, &attr);
    if (!qp)
        endpoint_fail(ep, "ibv_create_qp_ex type %d: %s", type, strerror(errno));
    return qp;
}

static void open_queue_pairs(struct endpoint *ep)
{
    static const enum ibv_qp_type type[TRANSPORT_COUNT] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD,
                                                            IBV_QPT_XRC_SEND };
    struct worker *worker = ep->worker;

    ep->qp = create_qp(ep, type[ep->link->transport]);
    rig_addr_of(&worker->rig, ep->qp, ep->psn, &ep->mine.addr);
    must(worker, rig_qp_init(ep->qp, RIG_ACCESS_ALL), "modify to INIT");
    if (ep->link->transport == TRANSPORT_XRC) {
        ep->xrc_recv = create_qp(ep, IBV_QPT_XRC_RECV);
        rig_addr_of(&worker->rig, ep->xrc_recv, ep->psn, &ep->mine.xrc_recv);
        must(worker, rig_qp_init(ep->xrc_recv, RIG_ACCESS_ALL), "modify XRC_RECV to INIT");
        if (ibv_get_srq_num(worker->xrc_pool.srq, &ep->mine.srqn))
            endpoint_fail(ep, "ibv_get_srq_num");
    } else if (!ep->plan->use_srq) {
        ep->recvs.qp = ep->qp;
        pool_open(worker, &ep->recvs, ep->plan->rq_depth, endpoint_stride(ep->link));
        pool_post(worker, &ep->recvs, 0, ep->recvs.count);
    }
}

static void open_memory(struct endpoint *ep)
{
    struct worker *worker = ep->worker;
    const struct plan *plan = worker->plan;
    size_t send_bytes = (size_t)ep->plan->sq_depth * endpoint_stride(ep->link);
    size_t slots = (size_t)plan_landing_slots(plan, ep->link, ep->side) * LANDING_SLOT;
    uint32_t read_bytes = plan_read_bytes(ep->link);

    ep->send_area = worker_memory(worker, send_bytes);
    for (int i = 0; i < 2; i++)
        ep->send_mr[i] = must_register(worker, ep->send_area, send_bytes, IBV_ACCESS_LOCAL_WRITE);
    ep->landing_bytes = slots + ep->link->max_len;
    ep->landing_area = worker_memory(worker, ep->landing_bytes);
    ep->landing_mr =
        must_register(worker, ep->landing_area, ep->landing_bytes,
                      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
    ep->read_area = worker_memory(worker, read_bytes);
    payload_fill(plan_read_key(plan, ep->link, ep->side), 0, 0, ep->read_area, read_bytes);
    ep->read_mr = must_register(worker, ep->read_area, read_bytes, IBV_ACCESS_REMOTE_READ);

    ep->mine.remote_key = ep->landing_mr->rkey;
    ep->mine.landing = (uintptr_t)ep->landing_area;
    ep->mine.big = (uintptr_t)ep->landing_area + slots;
    ep->mine.read_key = ep->read_mr->rkey;
    ep->mine.read_area = (uintptr_t)ep->read_area;
    ep->mine.cell_key = worker->cell_mr->rkey;
    ep->mine.cells = (uintptr_t)worker->cells;
    ep->mine.cas_cell = (uintptr_t)&worker->cells[FADD_CELLS + ep->link->index * 2 + ep->side];
}

static uint32_t count_messages(const struct op_walk *start)
{
    struct op_walk walk = *start;
    struct op op;

    while (walk_next(&walk, &op))
        ;
    return walk.recv_seq;
}

void endpoint_open(struct endpoint *ep)
{
    ep->psn = rig_mix(ep->link->index * 2 + ep->side) & 0xffffff;
    ep->ring = calloc(ep->plan->sq_depth, sizeof(*ep->ring));
    if (!ep->ring)
        endpoint_fail(ep, "no memory");
    walk_start(&ep->tx, ep->worker->plan, ep->link, ep->side);
    walk_start(&ep->rx, ep->worker->plan, ep->link, !ep->side);
    ep->rx_total = count_messages(&ep->rx);
    open_queue_pairs(ep);
    open_memory(ep);
}

void endpoint_connect(struct endpoint *ep)
{
    struct worker *worker = ep->worker;
    const struct rig_addr *remote = &ep->theirs.addr;

    if (ep->link->transport == TRANSPORT_UD) {
        struct ibv_ah_attr attr;
        rig_fill_ah(remote, &attr);
        ep->ah = ibv_create_ah(worker->rig.pd, &attr);
        if (!ep->ah)
            endpoint_fail(ep, "ibv_create_ah: %s", strerror(errno));
    }
    if (ep->xrc_recv) {
        must(worker, rig_qp_rtr(ep->xrc_recv, remote, &rig_patient), "XRC_RECV to RTR");
        must(worker, rig_qp_rts(ep->xrc_recv, ep->psn, &rig_patient), "XRC_RECV to RTS");
        remote = &ep->theirs.xrc_recv;
    }
    must(worker, rig_qp_rtr(ep->qp, remote, &rig_patient), "modify to RTR");
    must(worker, rig_qp_rts(ep->qp, ep->psn, &rig_patient), "modify to RTS");
}

struct recv_pool *endpoint_pool(struct endpoint *ep)
{
    if (ep->link->transport == TRANSPORT_XRC)
        return &ep->worker->xrc_pool;
    return ep->plan->use_srq ? &ep->worker->srq_pool : &ep->recvs;
}

void endpoint_close(struct endpoint *ep)
{
    struct worker *worker = ep->worker;

    for (uint32_t i = 0; i < ep->plan->sq_depth; i++)
        if (ep->ring[i].own_mr)
            must(worker, ibv_dereg_mr(ep->ring[i].own_mr), "ibv_dereg_mr");
    must(worker, ibv_destroy_qp(ep->qp), "ibv_destroy_qp");
    if (ep->xrc_recv)
        must(worker, ibv_destroy_qp(ep->xrc_recv), "ibv_destroy_qp (XRC_RECV)");
    if (ep->ah)
        must(worker, ibv_destroy_ah(ep->ah), "ibv_destroy_ah");
    pool_close(worker, &ep->recvs);
    for (int i = 0; i < 2; i++)
        must(worker, ibv_dereg_mr(ep->send_mr[i]), "ibv_dereg_mr of the send area");
    must(worker, ibv_dereg_mr(ep->landing_mr), "ibv_dereg_mr of the landing area");
    must(worker, ibv_dereg_mr(ep->read_mr), "ibv_dereg_mr of the read area");
    worker_memory_free(worker, ep->send_area,
                       (size_t)ep->plan->sq_depth * endpoint_stride(ep->link));
    worker_memory_free(worker, ep->landing_area, ep->landing_bytes);
    worker_memory_free(worker, ep->read_area, plan_read_bytes(ep->link));
    free(ep->ring);
}
