/* SPDX-License-Identifier: BSD-2-Clause */
/* What fetching contexts costs under load: requests for all queue pairs are posted back to back,
 * each with a buffer of its own, so that contexts are fetched while other transfers are in flight.
 */
#include "runs.h"
#include "bench/measure/count_sweep.h"
#include "bench/measure/sampling.h"

#define BATCH     16
#define IMM_READY 1

/* Receives all messages of a scatter and tells the peer. */
static int receive_scatter(struct flow *flow)
{
    unsigned int missing = flow->spec.qps;
    struct ibv_wc wc[BATCH];

    while (missing) {
        int count = completions_wait(&flow->receives, wc, missing < BATCH ? missing : BATCH);

        if (count < 0)
            return BENCH_FAILED;
        for (int i = 0; i < count; i++) {
            if (flow_post_receive_again(flow, &wc[i]))
                return BENCH_FAILED;
        }
        missing -= count;
    }
    return flow_send_imm(flow, IMM_READY) || flow_settle(flow) ? BENCH_FAILED : BENCH_OK;
}

/* The next scatter must find receives posted: wait untimed until the peer says so. */
static int wait_until_ready(struct flow *flow)
{
    struct ibv_wc wc;

    if (completions_wait(&flow->receives, &wc, 1) < 0)
        return BENCH_FAILED;
    return flow_post_receive_again(flow, &wc);
}

static int send_scatter(struct flow *flow, uint64_t *ticks)
{
    uint64_t start = clock_ticks();

    for (unsigned int i = 0; i < flow->spec.qps; i++) {
        if (flow_send(flow))
            return BENCH_FAILED;
    }
    if (flow_settle(flow))
        return BENCH_FAILED;
    *ticks = clock_ticks() - start;
    return wait_until_ready(flow);
}

static int run_batch(void *context, uint64_t warmup, struct histogram *samples)
{
    struct flow *flow = context;
    uint64_t total = warmup + flow->bench->settings->iterations, ticks;

    if (flow_post_receives(flow, 2ull * flow->spec.qps) || bench_barrier(flow->bench))
        return BENCH_FAILED;
    for (uint64_t i = 0; i < total; i++) {
        if (flow->bench->rank) {
            if (receive_scatter(flow))
                return BENCH_FAILED;
            continue;
        }
        if (send_scatter(flow, &ticks))
            return BENCH_FAILED;
        if (i >= warmup)
            histogram_add(samples, ticks);
    }
    return bench_barrier(flow->bench);
}

static int measure(struct bench *bench, void *context, size_t size, unsigned int qps,
                   struct summary *out)
{
    struct flow_spec spec;
    struct flow flow;
    int status;

    flow_defaults(bench, 1 - bench->rank, &spec);
    spec.size = size;
    spec.qps = qps;
    spec.signal = 1;
    spec.buffers = qps;
    spec.mr_per_buffer = true;
    if (flow_open(bench, &spec, &flow))
        return BENCH_FAILED;
    status = sampling_iterations(bench, run_batch, &flow, bench_clock.ns_per_tick / 1000, out);
    flow_close(&flow);
    return status;
}

int icm_scatter_run(struct bench *bench)
{
    static const struct count_sweep_curve curve = { "scatter", measure };

    return count_sweep_time_by_qps(bench, "time", &curve);
}
