/* The same under load: requests for all queue pairs are posted back to back, each with a buffer of
 * its own, so that contexts are fetched while other transfers are under way. */
#include "bench/repeat.h"
#include "scaling.h"

#define BATCH      16
#define WORD_READY 1

/* Takes all messages of a scatter, and says so. */
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
    return flow_signal_peer(flow, WORD_READY) || flow_settle(flow) ? BENCH_FAILED : BENCH_OK;
}

/* The next scatter must find receives: the peer's word is waited for, off the clock. */
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
    status = repeat_samples(bench, run_batch, &flow, bench_clock.ns_per_tick / 1000, out);
    flow_close(&flow);
    return status;
}

static int run(struct bench *bench)
{
    static const struct scaling_curve curve = { "scatter", measure };

    return scaling_by_qps(bench, "time", &curve);
}

const struct experiment experiment_icm_scatter = {
    .name = "icm-scatter",
    .group = "scaling",
    .title = "How long does it take to send a buffer on each of n queue pairs?",
    .source = "Mem/MemFree section 4.2, figure 3b",
    .options = "--qps 1..256 --sizes 64,1K,8K,64K --depth 16 --iterations 200 --warmup 10",
    .quick = "--qps 1,16,128 --sizes 64,8K --iterations 30",
    .ranks = 2,
    .run = run,
};
