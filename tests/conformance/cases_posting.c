/* SPDX-License-Identifier: BSD-2-Clause */
/* Posting in each state, and flushing when the queue pair fails. */
#include "bed.h"

#include <errno.h>
#include <string.h>

#define MANY 3

/* These queue pairs are moved to a state, but not connected. */
static void post_in(struct bed *bed, enum ibv_qp_state state)
{
    struct request request;

    if (!bed_walk(bed, REQUESTER, state))
        return;
    bed_request(bed, IBV_WR_SEND, &request);
    outcome_call(bed, "", bed_post(bed, &request));
    if (state == IBV_QPS_ERR)
        outcome_completion(bed, REQUESTER);
}

static void receive_in(struct bed *bed, enum ibv_qp_state state)
{
    struct ibv_wc wc;

    if (!bed_walk(bed, RESPONDER, state))
        return;
    /* Wait until the transition has no more effects. */
    rig_poll(bed->cq[RESPONDER], &wc, 100);
    outcome_call(bed, "", bed_receive(bed, 1, 8, bed->mr->lkey));
    if (state == IBV_QPS_ERR)
        outcome_completion(bed, RESPONDER);
}

static void run_by_state(case_sink sink)
{
    static const struct {
        const char *name;
        void (*post)(struct bed *bed, enum ibv_qp_state state);
        enum ibv_qp_state state;
    } rows[] = {
        { "a send in RESET", post_in, IBV_QPS_RESET },
        { "a send in INIT", post_in, IBV_QPS_INIT },
        { "a send in RTR", post_in, IBV_QPS_RTR },
        { "a send in ERR", post_in, IBV_QPS_ERR },
        { "a receive in RESET", receive_in, IBV_QPS_RESET },
        { "a receive in INIT", receive_in, IBV_QPS_INIT },
        { "a receive in RTR", receive_in, IBV_QPS_RTR },
        { "a receive in ERR", receive_in, IBV_QPS_ERR },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct bed bed;

        if (bed_open(&bed, IBV_QPT_RC, false))
            rows[i].post(&bed, rows[i].state);
        sink("posting", rows[i].name, bed.text);
        bed_close(&bed);
    }
}

/* A chain whose second request cannot be posted. */
static void chain(struct bed *bed)
{
    struct request good, wrong, last;
    struct ibv_send_wr *bad = NULL;
    int error;

    bed_request(bed, IBV_WR_RDMA_WRITE, &good);
    wrong = last = good;
    good.wr.sg_list = &good.sge;
    wrong.wr.sg_list = &wrong.sge;
    last.wr.sg_list = &last.sge;
    wrong.wr.num_sge = bed->limits.max_sge + 1;
    good.wr.next = &wrong.wr;
    wrong.wr.next = &last.wr;
    error = ibv_post_send(bed->qp[REQUESTER], &good.wr, &bad);
    outcome_call(bed, "", error);
    outcome(bed, "bad_wr is the %s",
            bad == &wrong.wr  ? "second"
            : bad == &good.wr ? "first"
                              : "other");
    outcome_completion(bed, REQUESTER);
    outcome_nothing(bed, REQUESTER);
}

/* Refused at once, or on execution. */
static void post_opcode(struct bed *bed, enum ibv_wr_opcode opcode, int flags)
{
    struct request request;
    int error;

    bed_request(bed, opcode, &request);
    request.wr.send_flags |= flags;
    error = bed_post(bed, &request);
    outcome_call(bed, "", error);
    if (!error)
        outcome_completion(bed, REQUESTER);
}

static void opcode_unknown(struct bed *bed)
{
    post_opcode(bed, 77, 0);
}

static void read_on_uc(struct bed *bed)
{
    post_opcode(bed, IBV_WR_RDMA_READ, 0);
}

static void atomic_on_uc(struct bed *bed)
{
    post_opcode(bed, IBV_WR_ATOMIC_FETCH_AND_ADD, 0);
}

static void write_on_ud(struct bed *bed)
{
    post_opcode(bed, IBV_WR_RDMA_WRITE, 0);
}

static void inline_read(struct bed *bed)
{
    post_opcode(bed, IBV_WR_RDMA_READ, IBV_SEND_INLINE);
}

static void outcome_fit(struct bed *bed, uint32_t posted, uint32_t room, int error)
{
    outcome(bed, posted < room   ? "fewer fit than the queue holds"
                 : posted > room ? "more fit than the queue holds"
                                 : "as many fit as the queue holds");
    outcome_call(bed, "the next", error);
}

static void too_many_sends(struct bed *bed)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;
    struct request request;
    uint32_t posted = 0;
    int error = 0;

    /* In SQD nothing is sent. */
    ibv_query_qp(bed->qp[REQUESTER], &attr, IBV_QP_CAP, &init);
    if (!bed_walk(bed, REQUESTER, IBV_QPS_SQD))
        return;
    bed_request(bed, IBV_WR_RDMA_WRITE, &request);
    while (posted <= init.cap.max_send_wr && !(error = bed_post(bed, &request)))
        posted++;
    outcome_fit(bed, posted, init.cap.max_send_wr, error);
}

static void too_many_receives(struct bed *bed)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;
    uint32_t posted = 0;
    int error = 0;

    ibv_query_qp(bed->qp[RESPONDER], &attr, IBV_QP_CAP, &init);
    while (posted <= init.cap.max_recv_wr && !(error = bed_receive(bed, posted, 8, bed->mr->lkey)))
        posted++;
    outcome_fit(bed, posted, init.cap.max_recv_wr, error);
}

static void many_segments(struct bed *bed)
{
    struct request request;

    bed_request(bed, IBV_WR_RDMA_WRITE, &request);
    request.wr.num_sge = bed->limits.max_sge + 1;
    outcome_call(bed, "", bed_post(bed, &request));
}

static void no_segments(struct bed *bed)
{
    struct request request;

    bed_receive(bed, 1, 8, bed->mr->lkey);
    bed_request(bed, IBV_WR_SEND, &request);
    request.wr.num_sge = 0;
    outcome_call(bed, "", bed_post(bed, &request));
    outcome_completion(bed, REQUESTER);
    outcome_completion(bed, RESPONDER);
}

static void inline_unregistered(struct bed *bed)
{
    struct request request;
    uint64_t value = 0x1122334455667788ull;

    bed_request(bed, IBV_WR_RDMA_WRITE, &request);
    request.sge = (struct ibv_sge){ (uintptr_t)&value, sizeof(value), 0xdead };
    request.wr.send_flags |= IBV_SEND_INLINE;
    outcome_call(bed, "", bed_post(bed, &request));
    value = 0;
    outcome_completion(bed, REQUESTER);
    memcpy(&value, bed->memory + HALF, sizeof(value));
    outcome(bed,
            value == 0x1122334455667788ull ? "the value as it was when posted" : "another value");
}

static void inline_too_long(struct bed *bed)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;
    struct request request;

    ibv_query_qp(bed->qp[REQUESTER], &attr, IBV_QP_CAP, &init);
    bed_request(bed, IBV_WR_RDMA_WRITE, &request);
    request.sge.length = init.cap.max_inline_data + 1;
    request.wr.send_flags |= IBV_SEND_INLINE;
    outcome_call(bed, "", bed_post(bed, &request));
}

static void flush_by_modify(struct bed *bed)
{
    struct ibv_wc wc;
    uint64_t order = 0;

    for (int i = 1; i <= MANY; i++)
        bed_receive(bed, i, 8, bed->mr->lkey);
    rig_qp_error(bed->qp[RESPONDER]);
    for (int i = 1; i <= MANY; i++) {
        if (rig_poll(bed->cq[RESPONDER], &wc, 2000) != 1)
            break;
        order = order * 10 + wc.wr_id;
        if (i == 1)
            outcome(bed, "%s", status_name(wc.status));
    }
    outcome(bed, "in the order %llu", (unsigned long long)order);
}

static void flush_after_error(struct bed *bed)
{
    struct request wrong, after;
    struct ibv_wc wc;

    bed_receive(bed, 1, 8, bed->mr->lkey);
    bed_request(bed, IBV_WR_RDMA_WRITE, &wrong);
    wrong.wr.wr.rdma.rkey ^= 0x5a5a00;
    bed_request(bed, IBV_WR_RDMA_WRITE, &after);
    after.wr.send_flags = 0;
    after.wr.wr_id = 2;
    bed_post(bed, &wrong);
    bed_post(bed, &after);
    outcome_completion(bed, REQUESTER);
    if (rig_poll(bed->cq[REQUESTER], &wc, 2000) == 1)
        outcome(bed, "the unsignalled one after it %s", status_name(wc.status));
    else
        outcome(bed, "the unsignalled one after it nothing");
    outcome_completion(bed, RESPONDER);
}

static void discard_by_reset(struct bed *bed)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

    bed_receive(bed, 1, 8, bed->mr->lkey);
    outcome_call(bed, "", ibv_modify_qp(bed->qp[RESPONDER], &attr, IBV_QP_STATE));
    outcome_nothing(bed, RESPONDER);
}

/* Requests posted in SQD wait for RTS. */
static void drained(struct bed *bed)
{
    struct request request;

    if (!bed_walk(bed, REQUESTER, IBV_QPS_SQD))
        return;
    bed_request(bed, IBV_WR_RDMA_WRITE, &request);
    outcome_call(bed, "", bed_post(bed, &request));
    outcome_nothing(bed, REQUESTER);
    ibv_modify_qp(bed->qp[REQUESTER], &(struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS },
                  IBV_QP_STATE);
    outcome_completion(bed, REQUESTER);
}

void run_posting(case_sink sink)
{
    static const struct bed_case cases[] = {
        { "a chain, its second request with too many segments", IBV_QPT_RC, chain },
        { "an opcode that does not exist", IBV_QPT_RC, opcode_unknown },
        { "a read on UC", IBV_QPT_UC, read_on_uc },
        { "an atomic on UC", IBV_QPT_UC, atomic_on_uc },
        { "a write on UD", IBV_QPT_UD, write_on_ud },
        { "more sends than the queue holds, in SQD", IBV_QPT_RC, too_many_sends },
        { "more receives than the queue holds", IBV_QPT_RC, too_many_receives },
        { "more segments than the device takes", IBV_QPT_RC, many_segments },
        { "a send of no segments", IBV_QPT_RC, no_segments },
        { "inline, from memory that is not registered", IBV_QPT_RC, inline_unregistered },
        { "inline, one byte too long", IBV_QPT_RC, inline_too_long },
        { "a read inline", IBV_QPT_RC, inline_read },
        { "three receives, then ERR", IBV_QPT_RC, flush_by_modify },
        { "a write that fails, another after it", IBV_QPT_RC, flush_after_error },
        { "a receive, then RESET", IBV_QPT_RC, discard_by_reset },
        { "a write in SQD, then RTS", IBV_QPT_RC, drained },
    };

    run_by_state(sink);
    run_cases("posting", cases, sizeof(cases) / sizeof(*cases), sink);
}
