/* SPDX-License-Identifier: BSD-2-Clause */
/* Posting, and processing completions. */
#include "worker.h"

#include <errno.h>
#include <string.h>

enum wr_kind { WR_SEND = 1, WR_RECV, WR_SRQ, WR_XRC_SRQ };

#define CHAIN 4

static uint64_t wr_id_make(enum wr_kind kind, uint32_t owner, uint32_t index)
{
    return (uint64_t)kind << 56 | (uint64_t)owner << 32 | index;
}

static enum wr_kind pool_kind(const struct worker *worker, const struct recv_pool *pool)
{
    if (pool == &worker->srq_pool)
        return WR_SRQ;
    return pool == &worker->xrc_pool ? WR_XRC_SRQ : WR_RECV;
}

static uint32_t pool_owner(const struct worker *worker, const struct recv_pool *pool)
{
    for (int i = 0; i < worker->endpoints; i++)
        if (pool == &worker->endpoint[i].recvs)
            return i;
    return 0;
}

static int split_receive(const struct recv_pool *pool, uint32_t index, struct ibv_sge *sge)
{
    uint64_t dice = rig_mix((uintptr_t)pool->mr->lkey + ((uint64_t)pool->posted << 20) + index);
    uint32_t left = pool->stride - 64;
    uint64_t addr = (uintptr_t)pool->base + (uint64_t)index * pool->stride;
    int count = 1 + dice % MAX_SGE;

    for (int i = 0; i < count; i++) {
        dice = rig_mix(dice);
        sge[i].addr = addr;
        sge[i].length = i + 1 == count ? left : dice % (left + 1ull);
        sge[i].lkey = pool->mr->lkey;
        addr += sge[i].length;
        left -= sge[i].length;
    }
    return count;
}

void pool_post(struct worker *worker, struct recv_pool *pool, uint32_t first, uint32_t count)
{
    struct ibv_recv_wr wr[CHAIN], *bad;
    struct ibv_sge sge[CHAIN][MAX_SGE];

    while (count) {
        uint32_t n = count < CHAIN ? count : CHAIN;
        for (uint32_t i = 0; i < n; i++) {
            wr[i].wr_id = wr_id_make(pool_kind(worker, pool), pool_owner(worker, pool), first + i);
            wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
            wr[i].sg_list = sge[i];
            wr[i].num_sge = split_receive(pool, first + i, sge[i]);
            pool->posted++;
            pool->outstanding++;
        }
        int err =
            pool->srq ? ibv_post_srq_recv(pool->srq, wr, &bad) : ibv_post_recv(pool->qp, wr, &bad);
        if (err)
            worker_fail(worker, "posting receive %u of %u: %s", first, pool->count, strerror(err));
        first += n;
        count -= n;
    }
}

static uint8_t *send_slot(const struct endpoint *ep, uint32_t position)
{
    return ep->send_area + (size_t)(position % ep->plan->sq_depth) * endpoint_stride(ep->link);
}

static void fill_payload(struct endpoint *ep, const struct op *op, uint8_t *buf)
{
    uint32_t header[2] = { op->seq, ep->link->index * 2 + ep->side };

    payload_fill(ep->tx.key, op->seq, 0, buf, op->len);
    if (link_carries_header(ep->link))
        memcpy(buf, header, sizeof(header));
}

static void build_pieces(struct endpoint *ep, struct pending *pending, uint8_t *buf,
                         struct ibv_send_wr *wr, struct ibv_sge *sge)
{
    const struct op *op = &pending->op;

    if (op->own_mr) {
        pending->own_mr = ibv_reg_mr(ep->worker->rig.pd, buf, op->len, IBV_ACCESS_LOCAL_WRITE);
        if (!pending->own_mr)
            endpoint_fail(ep, "ibv_reg_mr of %u bytes: %s", op->len, strerror(errno));
    }
    wr->sg_list = sge;
    wr->num_sge = op->num_sge;
    for (int i = 0; i < op->num_sge; i++) {
        sge[i].addr = (uintptr_t)buf;
        sge[i].length = op->cut[i];
        sge[i].lkey = pending->own_mr ? pending->own_mr->lkey : ep->send_mr[i & 1]->lkey;
        buf += op->cut[i];
    }
}

static void aim_rdma(struct endpoint *ep, const struct op *op, struct ibv_send_wr *wr)
{
    const struct wire *to = &ep->theirs;

    wr->wr.rdma.rkey = to->remote_key;
    wr->wr.rdma.remote_addr =
        op->to_big ? to->big : to->landing + (uint64_t)op->slot * LANDING_SLOT;
    if (op->kind == OP_READ) {
        wr->wr.rdma.rkey = to->read_key;
        wr->wr.rdma.remote_addr = to->read_area + op->read_offset;
    }
}

static void build_request(struct endpoint *ep, const struct op *op, struct ibv_send_wr *wr)
{
    static const enum ibv_wr_opcode opcode[OP_KINDS] = {
        IBV_WR_SEND,
        IBV_WR_SEND_WITH_IMM,
        IBV_WR_RDMA_WRITE,
        IBV_WR_RDMA_WRITE_WITH_IMM,
        IBV_WR_RDMA_READ,
        IBV_WR_RDMA_READ,
        IBV_WR_ATOMIC_CMP_AND_SWP,
        IBV_WR_ATOMIC_FETCH_AND_ADD,
    };

    wr->opcode = opcode[op->kind];
    wr->imm_data = htobe32(op->imm);
    wr->send_flags = (op->signalled ? IBV_SEND_SIGNALED : 0) |
                     (op->inline_data ? IBV_SEND_INLINE : 0) | (op->fence ? IBV_SEND_FENCE : 0);
    if (op->kind == OP_CAS || op->kind == OP_FADD) {
        wr->wr.atomic.rkey = ep->theirs.cell_key;
        wr->wr.atomic.remote_addr = op->kind == OP_CAS
                                        ? ep->theirs.cas_cell
                                        : ep->theirs.cells + op->cell * sizeof(uint64_t);
        wr->wr.atomic.compare_add = op->kind == OP_CAS ? op->compare : op->add;
        wr->wr.atomic.swap = op->swap;
    } else if (op->kind >= OP_WRITE) {
        aim_rdma(ep, op, wr);
    }
    if (ep->link->transport == TRANSPORT_UD) {
        wr->wr.ud.ah = ep->ah;
        wr->wr.ud.remote_qpn = ep->theirs.addr.qpn;
        wr->wr.ud.remote_qkey = RIG_QKEY;
    }
    if (ep->link->transport == TRANSPORT_XRC)
        wr->qp_type.xrc.remote_srqn = ep->theirs.srqn;
}

static void build(struct endpoint *ep, const struct op *op, struct ibv_send_wr *wr,
                  struct ibv_sge *sge)
{
    struct pending *pending = &ep->ring[ep->head % ep->plan->sq_depth];
    uint8_t *buf = send_slot(ep, ep->head);

    memset(wr, 0, sizeof(*wr));
    pending->op = *op;
    pending->own_mr = NULL;
    if (op_consumes_receive(op))
        ep->receives_used++;
    pending->receives_through = ep->receives_used;
    if (op_moves_payload(op))
        fill_payload(ep, op, buf);
    else
        memset(buf, 0x5a, op->len);
    build_pieces(ep, pending, buf, wr, sge);
    build_request(ep, op, wr);
    wr->wr_id = wr_id_make(WR_SEND, ep->index, ep->head);
    ep->head++;
}

/* Without backpressure from the transport, the receiver's progress is the credit. */
static bool has_credit(struct endpoint *ep, const struct op *op)
{
    const struct side_board *theirs = &ep->worker->board->side[ep->link->index][!ep->side];

    if (!link_carries_header(ep->link) || ep->link->lossy || !op_consumes_receive(op))
        return true;
    return ep->receives_used - atomic_load(&theirs->received) < ep->link->side[!ep->side].rq_depth;
}

static void post_chain(struct endpoint *ep, struct ibv_send_wr *wr, int count, uint32_t first)
{
    struct ibv_send_wr *bad = NULL;

    for (int i = 0; i < count; i++)
        wr[i].next = i + 1 < count ? &wr[i + 1] : NULL;
    int err = ibv_post_send(ep->qp, wr, &bad);
    if (err)
        endpoint_fail(ep, "ibv_post_send of operation %u: %s", first, strerror(err));
    for (int i = 0; i < count; i++) {
        const struct op *op = &ep->ring[(first + i) % ep->plan->sq_depth].op;
        if (op->inline_data) /* the caller may reuse inline data at once */
            memset(send_slot(ep, first + i), 0xee, op->len);
    }
    atomic_store(&ep->worker->board->side[ep->link->index][ep->side].posted, ep->head);
}

bool endpoint_send_more(struct endpoint *ep)
{
    struct ibv_send_wr wr[CHAIN];
    struct ibv_sge sge[CHAIN][MAX_SGE];
    uint32_t first = ep->head;
    int limit = 1 + rig_mix(ep->tx.key + ep->head) % CHAIN;
    int count = 0;

    while (count < limit && !ep->tx_exhausted && ep->head - ep->tail < ep->plan->sq_depth) {
        if (!ep->have_next) {
            ep->have_next = walk_next(&ep->tx, &ep->next_op);
            ep->tx_exhausted = !ep->have_next;
            continue;
        }
        if (!has_credit(ep, &ep->next_op)) {
            ep->worker->awaits_credit = true;
            break;
        }
        build(ep, &ep->next_op, &wr[count], sge[count]);
        ep->have_next = false;
        count++;
    }
    if (count)
        post_chain(ep, wr, count, first);
    return count > 0;
}

void endpoint_send_probe(struct endpoint *ep)
{
    struct op op = { .kind = OP_SEND, .seq = ep->head, .signalled = true };
    struct ibv_send_wr wr;
    struct ibv_sge sge[MAX_SGE];

    build(ep, &op, &wr, sge);
    post_chain(ep, &wr, 1, ep->head - 1);
}

static void retire(struct endpoint *ep, bool success)
{
    struct pending *pending = &ep->ring[ep->tail % ep->plan->sq_depth];
    struct side_board *board = &ep->worker->board->side[ep->link->index][ep->side];

    if (pending->own_mr) {
        int err = ibv_dereg_mr(pending->own_mr);
        if (err)
            endpoint_fail(ep, "ibv_dereg_mr: %s", strerror(err));
        pending->own_mr = NULL;
    }
    if (success) {
        if (!op_moves_payload(&pending->op))
            check_result(ep, &pending->op, send_slot(ep, ep->tail));
        atomic_store(&board->completed_receives, pending->receives_through);
    }
    ep->tail++;
    atomic_store(&board->retired, ep->tail);
}

static bool is_defined_loss(enum ibv_wc_status status)
{
    return status == IBV_WC_RETRY_EXC_ERR || status == IBV_WC_WR_FLUSH_ERR ||
           status == IBV_WC_REM_OP_ERR || status == IBV_WC_REM_ACCESS_ERR ||
           status == IBV_WC_REM_INV_REQ_ERR;
}

static void send_failed(struct endpoint *ep, const struct ibv_wc *wc)
{
    const struct op *op = &ep->ring[ep->tail % ep->plan->sq_depth].op;

    if (!is_defined_loss(wc->status))
        endpoint_fail(ep, "%s %u completed with %s", op_name[op->kind], ep->tail,
                      ibv_wc_status_str(wc->status));
    if (ep->tx_failed && wc->status != IBV_WC_WR_FLUSH_ERR)
        endpoint_fail(ep, "second error, %s, after the first", ibv_wc_status_str(wc->status));
    if (!ep->broken)
        ep->broken_since = rig_now_us();
    ep->broken = ep->tx_failed = true;
    retire(ep, false);
}

static void check_send_opcode(struct endpoint *ep, const struct op *op, const struct ibv_wc *wc)
{
    static const enum ibv_wc_opcode opcode[OP_KINDS] = {
        IBV_WC_SEND,      IBV_WC_SEND,      IBV_WC_RDMA_WRITE, IBV_WC_RDMA_WRITE,
        IBV_WC_RDMA_READ, IBV_WC_RDMA_READ, IBV_WC_COMP_SWAP,  IBV_WC_FETCH_ADD,
    };

    if (wc->opcode != opcode[op->kind])
        endpoint_fail(ep, "%s %u completed with opcode %d", op_name[op->kind], op->seq, wc->opcode);
}

static void send_completed(struct worker *worker, const struct ibv_wc *wc)
{
    uint32_t owner = wc->wr_id >> 32 & 0xffffff;
    uint32_t position = (uint32_t)wc->wr_id;

    if (owner >= (uint32_t)worker->endpoints)
        worker_fail(worker, "completion of unknown endpoint %u", owner);
    struct endpoint *ep = &worker->endpoint[owner];
    if (wc->qp_num != ep->qp->qp_num)
        endpoint_fail(ep, "completion of QP %u carries number %u", ep->qp->qp_num, wc->qp_num);
    if (position - ep->tail >= ep->head - ep->tail)
        endpoint_fail(ep, "completion of %u, but %u..%u are outstanding", position, ep->tail,
                      ep->head);
    while (ep->tail != position) {
        const struct op *op = &ep->ring[ep->tail % ep->plan->sq_depth].op;
        if (op->signalled || ep->tx_failed)
            endpoint_fail(ep, "%s %u has no completion, but %u has", op_name[op->kind], ep->tail,
                          position);
        retire(ep, true);
    }
    if (wc->status != IBV_WC_SUCCESS) {
        send_failed(ep, wc);
        return;
    }
    const struct op *op = &ep->ring[position % ep->plan->sq_depth].op;
    if (ep->tx_failed)
        endpoint_fail(ep, "%s %u succeeded after an error", op_name[op->kind], position);
    if (!op->signalled)
        endpoint_fail(ep, "unsignalled %s %u completed", op_name[op->kind], position);
    check_send_opcode(ep, op, wc);
    retire(ep, true);
}

static struct endpoint *receiver_of(struct worker *worker, uint32_t qp_num)
{
    for (int i = 0; i < worker->endpoints; i++) {
        struct endpoint *ep = &worker->endpoint[i];
        if (ep->qp->qp_num == qp_num || (ep->xrc_recv && ep->xrc_recv->qp_num == qp_num))
            return ep;
    }
    worker_fail(worker, "receive for unknown QP %u", qp_num);
}

static void receive_completed(struct worker *worker, const struct ibv_wc *wc)
{
    uint32_t owner = wc->wr_id >> 32 & 0xffffff;
    uint32_t index = (uint32_t)wc->wr_id;
    struct endpoint *ep = receiver_of(worker, wc->qp_num);
    struct recv_pool *pool = endpoint_pool(ep);

    if (wc->wr_id >> 56 != pool_kind(worker, pool) || owner != pool_owner(worker, pool) ||
        index >= pool->count)
        endpoint_fail(ep, "receive %#llx does not belong to it", (unsigned long long)wc->wr_id);
    pool->outstanding--;
    if (wc->status == IBV_WC_WR_FLUSH_ERR) {
        ep->flushed++;
        if (!ep->broken)
            ep->broken_since = rig_now_us();
        ep->broken = true;
        if (pool->srq)
            pool_post(worker, pool, index, 1);
        return;
    }
    if (wc->status != IBV_WC_SUCCESS)
        endpoint_fail(ep, "receive completed with %s", ibv_wc_status_str(wc->status));
    if (ep->flushed)
        endpoint_fail(ep, "a receive succeeded after another was flushed");
    check_receive(ep, wc, pool->base + (size_t)index * pool->stride, pool->stride);
    ep->rx_count++;
    if (ep->state < LINK_FLUSH || pool->srq)
        pool_post(worker, pool, index, 1);
    atomic_fetch_add(&worker->board->side[ep->link->index][ep->side].received, 1);
}

void worker_completion(struct worker *worker, const struct ibv_wc *wc)
{
    if (wc->wr_id >> 56 == WR_SEND)
        send_completed(worker, wc);
    else
        receive_completed(worker, wc);
}
