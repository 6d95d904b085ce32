/* SPDX-License-Identifier: BSD-2-Clause */
/* Reliable connections: keys, access flags and bounds on both sides, lengths, atomics, missing
 * receives and peers, and order. */
#include "bed.h"

#include <string.h>
#include <unistd.h>

/* Both completions and both states, the usual outcome of a failing request. */
static void account(struct bed *bed, struct request *request)
{
    int error = bed_post(bed, request);

    if (error) {
        outcome_call(bed, "", error);
        return;
    }
    outcome_completion(bed, REQUESTER);
    outcome_state(bed, REQUESTER);
    outcome_state(bed, RESPONDER);
}

static void refused_key(struct bed *bed, enum ibv_wr_opcode opcode, uint32_t rkey)
{
    struct request request;

    bed_request(bed, opcode, &request);
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
        request.wr.wr.atomic.rkey = rkey;
    else
        request.wr.wr.rdma.rkey = rkey;
    account(bed, &request);
}

/* The responder's half, registered with fewer access flags. */
static void without_rights(struct bed *bed, enum ibv_wr_opcode opcode, int access)
{
    struct ibv_mr *mr = ibv_reg_mr(bed->rig.pd, bed->memory, BED_BYTES, access);

    if (!mr)
        return;
    refused_key(bed, opcode, mr->rkey);
    ibv_dereg_mr(mr);
}

static void write_unknown_key(struct bed *bed)
{
    refused_key(bed, IBV_WR_RDMA_WRITE, bed->mr->rkey ^ 0x5a5a00);
}

static void read_unknown_key(struct bed *bed)
{
    refused_key(bed, IBV_WR_RDMA_READ, bed->mr->rkey ^ 0x5a5a00);
}

static void write_without_right(struct bed *bed)
{
    without_rights(bed, IBV_WR_RDMA_WRITE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
}

static void read_without_right(struct bed *bed)
{
    without_rights(bed, IBV_WR_RDMA_READ, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
}

static void atomic_without_right(struct bed *bed)
{
    without_rights(bed, IBV_WR_ATOMIC_FETCH_AND_ADD,
                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
}

static void write_past_end(struct bed *bed)
{
    struct request request;

    bed_request(bed, IBV_WR_RDMA_WRITE, &request);
    request.wr.wr.rdma.remote_addr = (uintptr_t)bed->memory + BED_BYTES - 7;
    account(bed, &request);
}

static void write_deregistered(struct bed *bed)
{
    struct ibv_mr *mr = ibv_reg_mr(bed->rig.pd, bed->memory, BED_BYTES, RIG_ACCESS_ALL);
    uint32_t rkey = mr->rkey;

    ibv_dereg_mr(mr);
    refused_key(bed, IBV_WR_RDMA_WRITE, rkey);
}

static void write_other_domain(struct bed *bed)
{
    struct ibv_pd *pd = ibv_alloc_pd(bed->rig.ctx);
    struct ibv_mr *mr = ibv_reg_mr(pd, bed->memory, BED_BYTES, RIG_ACCESS_ALL);

    refused_key(bed, IBV_WR_RDMA_WRITE, mr->rkey);
    ibv_dereg_mr(mr);
    ibv_dealloc_pd(pd);
}

static void write_refused_by_qp(struct bed *bed)
{
    struct ibv_qp_attr attr = { .qp_access_flags = IBV_ACCESS_REMOTE_READ };
    struct request request;

    ibv_modify_qp(bed->qp[RESPONDER], &attr, IBV_QP_ACCESS_FLAGS);
    bed_request(bed, IBV_WR_RDMA_WRITE, &request);
    account(bed, &request);
}

static void empty_write_unknown_key(struct bed *bed)
{
    struct request request;

    bed_request(bed, IBV_WR_RDMA_WRITE, &request);
    request.wr.num_sge = 0;
    request.wr.wr.rdma.rkey = 0xdead00;
    account(bed, &request);
}

static void send_unknown_lkey(struct bed *bed)
{
    struct request request;

    bed_receive(bed, 1, 8, bed->mr->lkey);
    bed_request(bed, IBV_WR_SEND, &request);
    request.sge.lkey ^= 0x5a5a00;
    account(bed, &request);
}

static void send_past_end(struct bed *bed)
{
    struct request request;

    bed_receive(bed, 1, 8, bed->mr->lkey);
    bed_request(bed, IBV_WR_SEND, &request);
    request.sge.addr = (uintptr_t)bed->memory + BED_BYTES - 7;
    account(bed, &request);
}

static void read_into_read_only(struct bed *bed)
{
    struct ibv_mr *mr = ibv_reg_mr(bed->rig.pd, bed->memory, BED_BYTES, 0);
    struct request request;

    bed_request(bed, IBV_WR_RDMA_READ, &request);
    request.sge.lkey = mr->lkey;
    account(bed, &request);
    ibv_dereg_mr(mr);
}

static void receive_unknown_lkey(struct bed *bed)
{
    struct request request;

    bed_receive(bed, 1, 8, bed->mr->lkey ^ 0x5a5a00);
    bed_request(bed, IBV_WR_SEND, &request);
    account(bed, &request);
    outcome_completion(bed, RESPONDER);
}

static void receive_read_only(struct bed *bed)
{
    struct ibv_mr *mr = ibv_reg_mr(bed->rig.pd, bed->memory, BED_BYTES, 0);
    struct request request;

    bed_receive(bed, 1, 8, mr->lkey);
    bed_request(bed, IBV_WR_SEND, &request);
    account(bed, &request);
    outcome_completion(bed, RESPONDER);
    ibv_dereg_mr(mr);
}

static void receive_too_short(struct bed *bed)
{
    struct request request;

    bed_receive(bed, 1, 4, bed->mr->lkey);
    bed_request(bed, IBV_WR_SEND, &request);
    account(bed, &request);
    outcome_completion(bed, RESPONDER);
}

/* A receive of 64 bytes whose region has only 16. */
static void receive_past_region(struct bed *bed, uint32_t sent)
{
    struct ibv_mr *mr = ibv_reg_mr(bed->rig.pd, bed->memory + HALF, 16, IBV_ACCESS_LOCAL_WRITE);
    struct request request;

    bed->memory[HALF + 16] = 0x77;
    bed_receive(bed, 1, 64, mr->lkey);
    bed_request(bed, IBV_WR_SEND, &request);
    request.sge.length = sent;
    account(bed, &request);
    outcome_completion(bed, RESPONDER);
    if (bed->memory[HALF + 16] != 0x77)
        outcome(bed, "written past the region");
    ibv_dereg_mr(mr);
}

static void receive_past_region_untouched(struct bed *bed)
{
    receive_past_region(bed, 16);
}

static void receive_past_region_touched(struct bed *bed)
{
    receive_past_region(bed, 17);
}

static void receive_unknown_lkey_untouched(struct bed *bed)
{
    struct request request;

    bed_receive(bed, 1, 8, bed->mr->lkey ^ 0x5a5a00);
    bed_request(bed, IBV_WR_SEND, &request);
    request.sge.length = 0;
    account(bed, &request);
    outcome_completion(bed, RESPONDER);
}

static void message_too_long(struct bed *bed)
{
    struct request request;

    if (bed->rig.port.max_msg_sz == UINT32_MAX) {
        outcome(bed, "any length is allowed");
        return;
    }
    bed_request(bed, IBV_WR_RDMA_WRITE, &request);
    request.sge.length = bed->rig.port.max_msg_sz + 1;
    account(bed, &request);
}

static void atomic_at(struct bed *bed, unsigned int offset, uint32_t length)
{
    struct request request;

    bed_request(bed, IBV_WR_ATOMIC_FETCH_AND_ADD, &request);
    request.wr.wr.atomic.remote_addr += offset;
    request.sge.length = length;
    account(bed, &request);
}

static void atomic_misaligned(struct bed *bed)
{
    atomic_at(bed, 4, 8);
}

static void atomic_short_result(struct bed *bed)
{
    atomic_at(bed, 0, 4);
}

/* Returns the old value; stores the result of the operation. */
static void atomic_values(struct bed *bed, enum ibv_wr_opcode opcode, uint64_t compare_add,
                          uint64_t swap)
{
    uint64_t *result = (uint64_t *)bed->memory, *target = (uint64_t *)(bed->memory + HALF);
    struct request request;

    *target = 40;
    bed_request(bed, opcode, &request);
    request.wr.wr.atomic.compare_add = compare_add;
    request.wr.wr.atomic.swap = swap;
    bed_post(bed, &request);
    outcome_completion(bed, REQUESTER);
    outcome(bed, "was %llu", (unsigned long long)*(volatile uint64_t *)result);
    outcome(bed, "is %llu", (unsigned long long)*(volatile uint64_t *)target);
}

static void fetch_add(struct bed *bed)
{
    atomic_values(bed, IBV_WR_ATOMIC_FETCH_AND_ADD, 2, 0);
}

static void swap_equal(struct bed *bed)
{
    atomic_values(bed, IBV_WR_ATOMIC_CMP_AND_SWP, 40, 7);
}

static void swap_unequal(struct bed *bed)
{
    atomic_values(bed, IBV_WR_ATOMIC_CMP_AND_SWP, 41, 7);
}

/* Changes the retry counts of the requester. */
static bool impatient(struct bed *bed, uint8_t retry_cnt, uint8_t rnr_retry)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

    if (ibv_modify_qp(bed->qp[REQUESTER], &attr, IBV_QP_STATE))
        return false;
    bed->timing.retry_cnt = retry_cnt;
    bed->timing.rnr_retry = rnr_retry;
    return bed_walk(bed, REQUESTER, IBV_QPS_RTS);
}

static void nobody_receives(struct bed *bed, enum ibv_wr_opcode opcode)
{
    struct request request;

    if (!impatient(bed, 7, 0))
        return;
    bed_request(bed, opcode, &request);
    account(bed, &request);
}

static void rnr_send(struct bed *bed)
{
    nobody_receives(bed, IBV_WR_SEND);
}

static void rnr_write_imm(struct bed *bed)
{
    nobody_receives(bed, IBV_WR_RDMA_WRITE_WITH_IMM);
}

static void rnr_late_receive(struct bed *bed)
{
    struct request request;

    bed_request(bed, IBV_WR_SEND, &request);
    bed_post(bed, &request);
    outcome_nothing(bed, REQUESTER);
    bed_receive(bed, 1, 8, bed->mr->lkey);
    outcome_completion(bed, REQUESTER);
    outcome_completion(bed, RESPONDER);
}

static void peer_in(struct bed *bed, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = { .qp_state = state };
    struct request request;

    if (!impatient(bed, 1, 0))
        return;
    ibv_modify_qp(bed->qp[RESPONDER], &attr, IBV_QP_STATE);
    bed_request(bed, IBV_WR_RDMA_WRITE, &request);
    bed_post(bed, &request);
    outcome_completion(bed, REQUESTER);
    outcome_state(bed, REQUESTER);
}

static void peer_in_reset(struct bed *bed)
{
    peer_in(bed, IBV_QPS_RESET);
}

static void peer_in_error(struct bed *bed)
{
    peer_in(bed, IBV_QPS_ERR);
}

static void peer_gone(struct bed *bed)
{
    struct request request;

    if (!impatient(bed, 1, 0))
        return;
    ibv_destroy_qp(bed->qp[RESPONDER]);
    bed->qp[RESPONDER] = NULL;
    bed_request(bed, IBV_WR_RDMA_WRITE, &request);
    bed_post(bed, &request);
    outcome_completion(bed, REQUESTER);
    outcome_state(bed, REQUESTER);
}

/* Ten writes of increasing numbers, then a send: which number is visible when it is received? */
static void order_of_data(struct bed *bed)
{
    volatile uint64_t *target = (uint64_t *)(bed->memory + HALF + 64);
    uint64_t *source = (uint64_t *)bed->memory;
    struct request request;
    struct ibv_wc wc;

    bed_receive(bed, 1, 8, bed->mr->lkey);
    for (uint64_t i = 1; i <= 10; i++) {
        source[i] = i;
        bed_request(bed, IBV_WR_RDMA_WRITE, &request);
        request.sge.addr = (uintptr_t)&source[i];
        request.wr.wr.rdma.remote_addr = (uintptr_t)target;
        request.wr.send_flags = 0;
        bed_post(bed, &request);
    }
    bed_request(bed, IBV_WR_SEND, &request);
    bed_post(bed, &request);
    if (rig_poll(bed->cq[RESPONDER], &wc, 5000) == 1)
        outcome(bed, "the receive sees number %llu", (unsigned long long)*target);
}

static void order_of_completions(struct bed *bed)
{
    static const enum ibv_wr_opcode opcodes[] = { IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, IBV_WR_SEND,
                                                  IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_RDMA_WRITE };
    struct request request;
    uint64_t order = 0;
    struct ibv_wc wc;

    bed_receive(bed, 1, 8, bed->mr->lkey);
    for (int i = 0; i < 5; i++) {
        bed_request(bed, opcodes[i], &request);
        request.wr.wr_id = i + 1;
        bed_post(bed, &request);
    }
    for (int i = 0; i < 5 && rig_poll(bed->cq[REQUESTER], &wc, 5000) == 1; i++)
        order = order * 10 + wc.wr_id;
    outcome(bed, "in the order %llu", (unsigned long long)order);
}

static void write_then_read(struct bed *bed)
{
    uint64_t *source = (uint64_t *)bed->memory;
    struct request request;

    source[0] = 7;
    source[1] = 0;
    bed_request(bed, IBV_WR_RDMA_WRITE, &request);
    request.wr.send_flags = 0;
    bed_post(bed, &request);
    bed_request(bed, IBV_WR_RDMA_READ, &request);
    request.sge.addr = (uintptr_t)&source[1];
    bed_post(bed, &request);
    outcome_completion(bed, REQUESTER);
    outcome(bed, "the read sees %llu", (unsigned long long)*(volatile uint64_t *)&source[1]);
}

/* A bound type 2 window, which a peer may invalidate with a send. */
static void invalidated_window(struct bed *bed)
{
    struct ibv_mr *mr = ibv_reg_mr(bed->rig.pd, bed->memory, BED_BYTES,
                                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    struct ibv_mw *mw = mr ? ibv_alloc_mw(bed->rig.pd, IBV_MW_TYPE_2) : NULL;
    struct request request;
    struct ibv_wc wc;

    if (!mw) {
        outcome(bed, "no windows of type 2");
        goto out;
    }
    bed_request(bed, IBV_WR_BIND_MW, &request);
    request.wr.num_sge = 0;
    request.wr.bind_mw.mw = mw;
    request.wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
    request.wr.bind_mw.bind_info =
        (struct ibv_mw_bind_info){ .mr = mr,
                                   .addr = (uintptr_t)bed->memory,
                                   .length = BED_BYTES,
                                   .mw_access_flags = IBV_ACCESS_REMOTE_WRITE };
    outcome_call(bed, "bind", bed_post(bed, &request));
    if (rig_poll(bed->cq[REQUESTER], &wc, 5000) == 1)
        outcome(bed, "%s", status_name(wc.status));
    mw->rkey = request.wr.bind_mw.rkey;
    bed_request(bed, IBV_WR_LOCAL_INV, &request);
    request.wr.num_sge = 0;
    request.wr.invalidate_rkey = mw->rkey;
    outcome_call(bed, "invalidate", bed_post(bed, &request));
    if (rig_poll(bed->cq[REQUESTER], &wc, 5000) == 1)
        outcome(bed, "%s", status_name(wc.status));
    refused_key(bed, IBV_WR_RDMA_WRITE, mw->rkey);
    ibv_dealloc_mw(mw);
out:
    if (mr)
        ibv_dereg_mr(mr);
}

void run_remote(case_sink sink)
{
    static const struct bed_case cases[] = {
        { "a write with an unknown key", IBV_QPT_RC, write_unknown_key },
        { "a read with an unknown key", IBV_QPT_RC, read_unknown_key },
        { "a write without the right", IBV_QPT_RC, write_without_right },
        { "a read without the right", IBV_QPT_RC, read_without_right },
        { "an atomic without the right", IBV_QPT_RC, atomic_without_right },
        { "a write past the region's end", IBV_QPT_RC, write_past_end },
        { "a write to a region that was deregistered", IBV_QPT_RC, write_deregistered },
        { "a write to a region of another domain", IBV_QPT_RC, write_other_domain },
        { "a write that the queue pair does not allow", IBV_QPT_RC, write_refused_by_qp },
        { "a write of no bytes with an unknown key", IBV_QPT_RC, empty_write_unknown_key },
        { "a write to a window that was invalidated", IBV_QPT_RC, invalidated_window },
        { "a send from an unknown key", IBV_QPT_RC, send_unknown_lkey },
        { "a send from past the region's end", IBV_QPT_RC, send_past_end },
        { "a read into a region that may not be written", IBV_QPT_RC, read_into_read_only },
        { "a receive with an unknown key", IBV_QPT_RC, receive_unknown_lkey },
        { "a receive into a region that may not be written", IBV_QPT_RC, receive_read_only },
        { "a receive that is too short", IBV_QPT_RC, receive_too_short },
        { "a receive longer than its region, a message that fits", IBV_QPT_RC,
          receive_past_region_untouched },
        { "a receive longer than its region, a message one byte too long", IBV_QPT_RC,
          receive_past_region_touched },
        { "a receive with an unknown key, an empty message", IBV_QPT_RC,
          receive_unknown_lkey_untouched },
        { "a message longer than the port allows", IBV_QPT_RC, message_too_long },
        { "an atomic that is not aligned", IBV_QPT_RC, atomic_misaligned },
        { "an atomic whose result does not fit", IBV_QPT_RC, atomic_short_result },
        { "fetch and add", IBV_QPT_RC, fetch_add },
        { "compare and swap, equal", IBV_QPT_RC, swap_equal },
        { "compare and swap, unequal", IBV_QPT_RC, swap_unequal },
        { "a send, no receive, no RNR retries", IBV_QPT_RC, rnr_send },
        { "a write with immediate, no receive, no RNR retries", IBV_QPT_RC, rnr_write_imm },
        { "a send, its receive comes late, endless RNR retries", IBV_QPT_RC, rnr_late_receive },
        { "a write to a peer in RESET, one retry", IBV_QPT_RC, peer_in_reset },
        { "a write to a peer in ERR, one retry", IBV_QPT_RC, peer_in_error },
        { "a write to a peer that does not exist, one retry", IBV_QPT_RC, peer_gone },
        { "ten writes, then a send", IBV_QPT_RC, order_of_data },
        { "read, write, send, atomic, write: completions", IBV_QPT_RC, order_of_completions },
        { "a write, then a read of the same", IBV_QPT_RC, write_then_read },
    };

    run_cases("remote", cases, sizeof(cases) / sizeof(*cases), sink);
}
