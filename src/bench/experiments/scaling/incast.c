/* SPDX-License-Identifier: BSD-2-Clause */
/* What several nodes get that send to one node at the same time. */
#include "runs.h"
#include "bench/measure/count_sweep.h"
#include "bench/measure/sampling.h"
#include "bench/measure/star.h"
#include "bench/measure/stream.h"

struct incast {
    struct bench *bench;
    struct star senders;
    struct stream_plan plan;
    bool fairness; /* measure fairness; else bandwidth */
};

/* Jain's fairness index: 1 if all shares are equal, 1/n if one sender has got everything. */
static double jain(const uint64_t *shares, unsigned int count)
{
    double sum = 0, squares = 0;

    for (unsigned int i = 0; i < count; i++) {
        sum += shares[i];
        squares += (double)shares[i] * shares[i];
    }
    return squares > 0 ? sum * sum / (count * squares) : 1;
}

static int receive_all(struct incast *incast, double *value)
{
    unsigned int count = incast->senders.count;
    uint64_t shares[CONTROL_RANKS_MAX], start = clock_ticks(), messages;
    double bytes, ns;

    if (stream_gather(incast->senders.flows, count, &incast->plan, shares, &messages))
        return BENCH_FAILED;
    ns = clock_ns(clock_ticks() - start);
    bytes = (double)count * messages * incast->senders.flows->spec.size;
    *value = incast->fairness ? jain(shares, count) : bytes / ns * 1000;
    return BENCH_OK;
}

static int prepare(struct incast *incast)
{
    struct flow *mine = star_flow(incast->bench, &incast->senders);

    if (incast->bench->rank)
        return mine ? stream_prepare(mine, &incast->plan) : BENCH_OK;
    for (unsigned int i = 0; i < incast->senders.count; i++) {
        if (stream_prepare(&incast->senders.flows[i], &incast->plan))
            return BENCH_FAILED;
    }
    return BENCH_OK;
}

static int run_once(void *context, double *value)
{
    struct incast *incast = context;
    struct flow *mine = star_flow(incast->bench, &incast->senders);
    uint64_t messages;

    *value = 0;
    if (prepare(incast) || bench_barrier(incast->bench))
        return BENCH_FAILED;
    if (!incast->bench->rank ? receive_all(incast, value)
                             : mine && stream_pass(mine, &incast->plan, &messages))
        return BENCH_FAILED;
    return bench_barrier(incast->bench);
}

static int measure(struct bench *bench, size_t size, unsigned int senders, bool fairness,
                   struct summary *out)
{
    struct incast incast = {
        .bench = bench,
        .plan = { .style = WINDOW_REPLY,
                  .window = bench->settings->window,
                  .messages = stream_messages(bench, size),
                  .reverse = true },
        .fairness = fairness,
    };
    struct flow_spec spec;
    double warm_up;
    int status;

    flow_defaults(bench, -1, &spec);
    spec.size = size;
    spec.depth = stream_depth(&spec, incast.plan.window);
    if (star_open(bench, &spec, 1, senders, &incast.senders))
        return BENCH_FAILED;
    status = run_once(&incast, &warm_up);
    if (!status)
        status = sampling_runs(bench, run_once, &incast, out);
    star_close(&incast.senders);
    return status;
}

static int measure_total(struct bench *bench, void *context, size_t size, unsigned int senders,
                         struct summary *out)
{
    return measure(bench, size, senders, false, out);
}

static int measure_fairness(struct bench *bench, void *context, size_t size, unsigned int senders,
                            struct summary *out)
{
    return measure(bench, size, senders, true, out);
}

int incast_run(struct bench *bench)
{
    static const struct count_sweep_curve total = { "total", measure_total };
    static const struct count_sweep_curve fairness = { "Jain's index", measure_fairness };
    struct count_sweep sweep = { .quantity = "bandwidth",
                                 .unit = "MB/s",
                                 .better = BETTER_HIGHER,
                                 .axis = "nodes",
                                 .counts = &bench->settings->nodes,
                                 .limit = bench->ranks - 1,
                                 .limiter = "further nodes",
                                 .sizes = &bench->settings->sizes,
                                 .curve_count = 1,
                                 .curves = &total };

    for (unsigned int i = 0; i < sweep.counts->count; i++) {
        if (!sweep.counts->value[i])
            return bench_fail(bench, "there is no incast without a sender: --nodes begins with 1");
    }
    if (count_sweep_run(bench, &sweep))
        return BENCH_FAILED;
    sweep.quantity = "fairness";
    sweep.unit = "";
    sweep.curves = &fairness;
    return count_sweep_run(bench, &sweep);
}
