/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares everything that arrives with the plan. */
#include "worker.h"

#include <stdlib.h>
#include <string.h>

#define POISON     0xa5
#define TAIL_BYTES 64u

static int64_t first_wrong(const struct endpoint *ep, int sender, uint64_t key, uint32_t seq,
                           const uint8_t *buf, uint32_t len)
{
    uint32_t header[2] = { seq, ep->link->index * 2 + sender };

    if (!link_carries_header(ep->link))
        return payload_check(key, seq, 0, buf, len);
    if (memcmp(buf, header, sizeof(header)))
        return 0;
    int64_t at = payload_check(key, seq, HEADER_BYTES, buf + HEADER_BYTES, len - HEADER_BYTES);
    return at < 0 ? at : at + HEADER_BYTES;
}

static bool is_poison(const uint8_t *buf, uint32_t len)
{
    for (uint32_t i = 0; i < len; i++)
        if (buf[i] != POISON)
            return false;
    return true;
}

/* Advances to the next message of the peer; keeps the plain writes before it for checking. */
static void next_message(struct endpoint *ep, struct op *op)
{
    ep->rx_unchecked_count = 0;
    while (walk_next(&ep->rx, op)) {
        if (op_consumes_receive(op))
            return;
        if (op->kind == OP_WRITE && !op->to_big)
            ep->rx_unchecked[ep->rx_unchecked_count++] = *op;
    }
    endpoint_fail(ep, "a message after the last one");
}

static void skip_to(struct endpoint *ep, uint32_t seq, struct op *op)
{
    next_message(ep, op);
    while (op->seq < seq) {
        if (!ep->link->lossy)
            endpoint_fail(ep, "message %u is missing, %u arrived", op->seq, seq);
        next_message(ep, op);
    }
    if (op->seq != seq)
        endpoint_fail(ep, "message %u arrived where %u or later was due", seq, op->seq);
}

static uint32_t carried_sequence(struct endpoint *ep, const struct ibv_wc *wc, const uint8_t *data)
{
    uint32_t seq;

    if (wc->wc_flags & IBV_WC_WITH_IMM)
        return be32toh(wc->imm_data);
    if (wc->byte_len < HEADER_BYTES)
        endpoint_fail(ep, "a message of %u bytes", wc->byte_len);
    memcpy(&seq, data, sizeof(seq));
    return seq;
}

static void check_envelope(struct endpoint *ep, const struct op *op, const struct ibv_wc *wc)
{
    bool write_imm = op->kind == OP_WRITE_IMM;
    uint32_t extra = ep->link->transport == TRANSPORT_UD ? sizeof(struct ibv_grh) : 0;

    if (wc->opcode != (write_imm ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV))
        endpoint_fail(ep, "%s %u received with opcode %d", op_name[op->kind], op->seq, wc->opcode);
    if (wc->byte_len != op->len + extra)
        endpoint_fail(ep, "%s %u of %u bytes received with length %u", op_name[op->kind], op->seq,
                      op->len, wc->byte_len);
    if (!!(wc->wc_flags & IBV_WC_WITH_IMM) != (op->kind != OP_SEND))
        endpoint_fail(ep, "%s %u received with flags %#x", op_name[op->kind], op->seq,
                      wc->wc_flags);
    if (op->kind != OP_SEND && be32toh(wc->imm_data) != op->imm)
        endpoint_fail(ep, "%s %u: immediate %#x, not %#x", op_name[op->kind], op->seq,
                      be32toh(wc->imm_data), op->imm);
    if (ep->link->transport == TRANSPORT_UD && wc->src_qp != ep->theirs.addr.qpn)
        endpoint_fail(ep, "message from QP %u, not %u", wc->src_qp, ep->theirs.addr.qpn);
}

static void check_slot(struct endpoint *ep, const struct op *op)
{
    const uint8_t *slot = ep->landing_area + (size_t)op->slot * LANDING_SLOT;
    int64_t at = first_wrong(ep, !ep->side, ep->rx.key, op->seq, slot, op->len);

    if (at >= 0)
        endpoint_fail(ep, "%s %u of %u bytes: byte %lld is wrong", op_name[op->kind], op->seq,
                      op->len, (long long)at);
}

void check_receive(struct endpoint *ep, const struct ibv_wc *wc, uint8_t *buf, uint32_t size)
{
    uint32_t grh = ep->link->transport == TRANSPORT_UD ? sizeof(struct ibv_grh) : 0;
    struct op op;
    uint32_t used = 0;

    if (wc->byte_len > size - TAIL_BYTES)
        if (wc->opcode == IBV_WC_RECV)
            endpoint_fail(ep, "length %u in a receive of %u", wc->byte_len, size - TAIL_BYTES);
    if (link_carries_header(ep->link))
        skip_to(ep, carried_sequence(ep, wc, buf + grh), &op);
    else
        next_message(ep, &op);
    check_envelope(ep, &op, wc);
    if (op.kind != OP_WRITE_IMM) {
        used = op.len + grh;
        int64_t at = first_wrong(ep, !ep->side, ep->rx.key, op.seq, buf + grh, op.len);
        if (at >= 0)
            endpoint_fail(ep, "%s %u of %u bytes: byte %lld is wrong", op_name[op.kind], op.seq,
                          op.len, (long long)at);
    } else if (!ep->link->lossy && !op.to_big) {
        check_slot(ep, &op);
    }
    for (int i = 0; i < ep->rx_unchecked_count && !ep->link->lossy; i++)
        check_slot(ep, &ep->rx_unchecked[i]);
    /* A shared receive that a killed process was writing to is reused with its contents. */
    bool as_posted = !ep->worker->plan->with_kills || !ep->link->side[ep->side].use_srq;
    if (as_posted && !is_poison(buf + used, TAIL_BYTES))
        endpoint_fail(ep, "%s %u of %u bytes wrote beyond its end", op_name[op.kind], op.seq,
                      op.len);
    memset(buf, POISON, used);
}

void check_result(struct endpoint *ep, const struct op *op, const uint8_t *buf)
{
    uint64_t read_key = plan_read_key(ep->worker->plan, ep->link, !ep->side);
    int64_t at = -1;
    uint64_t value = 0;

    if (op->kind == OP_CAS || op->kind == OP_FADD)
        memcpy(&value, buf, sizeof(value));
    switch (op->kind) {
    case OP_READ:
        at = payload_check(read_key, 0, op->read_offset, buf, op->len);
        break;
    case OP_READ_BACK:
        at = first_wrong(ep, ep->side, ep->tx.key, op->payload_seq, buf, op->len);
        break;
    case OP_CAS:
        if (value != op->add)
            endpoint_fail(ep, "cas %u found %#llx, not %#llx", op->seq, (unsigned long long)value,
                          (unsigned long long)op->add);
        break;
    default:
        if (value < ep->cell_seen[op->cell])
            endpoint_fail(ep, "fadd %u found %llu after %llu", op->seq, (unsigned long long)value,
                          (unsigned long long)ep->cell_seen[op->cell]);
        ep->cell_seen[op->cell] = value + op->add;
    }
    if (at >= 0)
        endpoint_fail(ep, "%s %u of %u bytes: byte %lld is wrong", op_name[op->kind], op->seq,
                      op->len, (long long)at);
}

/* An unreliable write with immediate that found no receive may or may not have been placed. */
static bool is_certain(const struct endpoint *ep, const struct op *op)
{
    return !ep->link->lossy || op->kind == OP_WRITE;
}

void check_landing(struct endpoint *ep)
{
    const struct plan *plan = ep->worker->plan;
    uint32_t slots = plan_landing_slots(plan, ep->link, ep->side);
    struct op *last = calloc(slots + 1, sizeof(*last));
    struct op_walk walk;
    struct op op;

    walk_start(&walk, plan, ep->link, !ep->side);
    while (walk_next(&walk, &op)) {
        if (op.kind == OP_WRITE || op.kind == OP_WRITE_IMM)
            last[op.to_big ? slots : op.slot] = op;
    }
    for (uint32_t i = 0; i < slots; i++)
        if (last[i].kind && is_certain(ep, &last[i]))
            check_slot(ep, &last[i]);
    if (last[slots].kind && is_certain(ep, &last[slots])) {
        const uint8_t *big = ep->landing_area + (size_t)slots * LANDING_SLOT;
        int64_t at = first_wrong(ep, !ep->side, walk.key, last[slots].seq, big, last[slots].len);
        if (at >= 0)
            endpoint_fail(ep, "large write %u of %u bytes: byte %lld is wrong", last[slots].seq,
                          last[slots].len, (long long)at);
    }
    free(last);
    uint64_t cas = __atomic_load_n((uint64_t *)(uintptr_t)ep->mine.cas_cell, __ATOMIC_ACQUIRE);
    if (cas != walk.cas_value)
        endpoint_fail(ep, "compare-and-swap cell is %#llx, not %#llx", (unsigned long long)cas,
                      (unsigned long long)walk.cas_value);
}

void check_cells(struct worker *worker)
{
    uint64_t sum[FADD_CELLS] = { 0 };
    struct op_walk walk;
    struct op op;

    for (int i = 0; i < worker->endpoints; i++) {
        const struct endpoint *ep = &worker->endpoint[i];
        walk_start(&walk, worker->plan, ep->link, !ep->side);
        while (walk_next(&walk, &op))
            if (op.kind == OP_FADD)
                sum[op.cell] += op.add;
    }
    for (int c = 0; c < FADD_CELLS; c++) {
        uint64_t cell = __atomic_load_n(&worker->cells[c], __ATOMIC_ACQUIRE);
        if (cell != sum[c])
            worker_fail(worker, "fetch-and-add cell %d is %llu, not %llu", c,
                        (unsigned long long)cell, (unsigned long long)sum[c]);
    }
}
