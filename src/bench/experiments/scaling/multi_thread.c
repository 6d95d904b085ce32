/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads that share only the device: each has its own queue pair, completion queues and memory. */
#include "runs.h"
#include "bench/measure/count_sweep.h"
#include "bench/measure/crew.h"
#include "bench/measure/sampling.h"
#include "bench/measure/stream.h"

#include <stdlib.h>

struct flows {
    struct bench *bench;
    struct stream_plan plan;
    double scale; /* from messages per second to the value */
    unsigned int count;
    struct flow *flows; /* one for each thread */
    uint64_t *messages; /* of each */
};

static int stream_one(void *context, unsigned int number)
{
    struct flows *flows = context;

    return stream_pass(&flows->flows[number], &flows->plan, &flows->messages[number]);
}

static int prepare(struct flows *flows)
{
    for (unsigned int i = 0; i < flows->count; i++) {
        if (stream_prepare(&flows->flows[i], &flows->plan))
            return BENCH_FAILED;
    }
    return BENCH_OK;
}

/* The value over the time from the start of the first thread to the end of the last one. */
static int run_once(void *context, double *value)
{
    struct flows *flows = context;
    uint64_t ticks, messages = 0;

    if (prepare(flows) || crew_run(flows->bench, flows->count, stream_one, flows, &ticks))
        return BENCH_FAILED;
    for (unsigned int i = 0; i < flows->count; i++)
        messages += flows->messages[i];
    *value = messages / (clock_ns(ticks) / 1e9) * flows->scale;
    return BENCH_OK;
}

static int measure(struct bench *bench, size_t size, unsigned int threads, double scale,
                   struct summary *out)
{
    struct flows flows = {
        .bench = bench,
        .plan = { .style = WINDOW_REFILL,
                  .window = bench->settings->window,
                  .messages = stream_messages(bench, size) },
        .scale = scale,
        .flows = calloc(threads, sizeof(*flows.flows)),
        .messages = calloc(threads, sizeof(*flows.messages)),
    };
    struct flow_spec spec;
    double warm_up;
    int status = BENCH_FAILED;

    if (!flows.flows || !flows.messages) {
        bench_fail(bench, "out of memory");
        goto close;
    }
    flow_defaults(bench, 1 - bench->rank, &spec);
    spec.size = size;
    spec.depth = stream_depth(&spec, flows.plan.window);
    for (; flows.count < threads; flows.count++) {
        if (flow_open(bench, &spec, &flows.flows[flows.count]))
            goto close;
    }
    if (run_once(&flows, &warm_up) || sampling_runs(bench, run_once, &flows, out))
        goto close;
    status = BENCH_OK;
close:
    while (flows.count)
        flow_close(&flows.flows[--flows.count]);
    free(flows.flows);
    free(flows.messages);
    return status;
}

static int measure_rate(struct bench *bench, void *context, size_t size, unsigned int threads,
                        struct summary *out)
{
    return measure(bench, size, threads, 1e-6, out);
}

static int measure_bandwidth(struct bench *bench, void *context, size_t size, unsigned int threads,
                             struct summary *out)
{
    return measure(bench, size, threads, size / 1e6, out);
}

int multi_thread_run(struct bench *bench)
{
    struct count_sweep sweep = {
        .axis = "threads",
        .counts = &bench->settings->threads,
        .limit = count_sweep_qp_limit(bench, 2),
        .limiter = "queue pairs with two completion queues each",
        .sizes = &bench->settings->sizes,
        .better = BETTER_HIGHER,
    };

    sweep.unit = "M/s";
    if (count_sweep_one_curve(bench, sweep, "rate", measure_rate))
        return BENCH_FAILED;
    sweep.unit = "MB/s";
    return count_sweep_one_curve(bench, sweep, "bandwidth", measure_bandwidth);
}
