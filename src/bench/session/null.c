/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/session/null.h"
#include "bench/measure/pingpong.h"

#define ROUNDS 20000

static struct {
    struct ibv_context context;
    struct ibv_qp qp;
    struct ibv_cq cq;
} null;

static int null_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    return 0;
}

static int null_post_receive(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    return 0;
}

static int null_poll(struct ibv_cq *cq, int count, struct ibv_wc *wc)
{
    wc->status = IBV_WC_SUCCESS;
    wc->wr_id = 0;
    return 1;
}

/* Runs the ping-pong on a flow with null queues, where every request completes at once. */
double null_pingpong_ns(void)
{
    static const struct settings settings;
    struct control control = { .ranks = 1 };
    struct bench bench = { .settings = &settings, .control = &control, .ranks = 1 };
    struct pingpong_plan plan = { .iterations = ROUNDS, .warmup = ROUNDS / 10 };
    struct endpoint endpoint = { .qp = &null.qp };
    struct slot slot = { .endpoint = &endpoint, .receiver = &endpoint };
    struct flow flow = {
        .bench = &bench,
        .spec = { .operation = OPERATION_SEND, .depth = 64, .signal = 1, .qps = 1 },
        .sends = { .bench = &bench, .cq = &null.cq },
        .receives = { .bench = &bench, .cq = &null.cq },
        .endpoints = &endpoint,
        .slots = &slot,
        .slot_count = 1,
        .send_capacity = 32,
    };
    struct histogram *samples = histogram_new();
    struct summary summary;

    null.context.ops.post_send = null_post_send;
    null.context.ops.post_recv = null_post_receive;
    null.context.ops.poll_cq = null_poll;
    null.qp.context = null.cq.context = &null.context;
    pingpong_run(&flow, &plan, samples);
    histogram_summary(samples, bench_clock.ns_per_tick, &summary);
    histogram_free(samples);
    return summary.median;
}
