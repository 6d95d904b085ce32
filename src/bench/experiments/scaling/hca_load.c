/* SPDX-License-Identifier: BSD-2-Clause */
/* How much bandwidth a sender loses while other nodes keep its adapter busy. Their writes are so
 * small that they load neither the processor nor the bus. */
#include "runs.h"
#include "bench/measure/background_load.h"
#include "bench/measure/count_sweep.h"
#include "bench/measure/sampling.h"
#include "bench/measure/stream.h"

#define LOAD_SIZE 4

struct loaded_stream {
    struct flow flow; /* between ranks 0 and 1 */
    struct stream_plan plan;
    struct star *load;
    unsigned int loaders; /* nodes that write to rank 0 */
};

static int take_part(struct bench *bench, struct loaded_stream *loaded, double *bandwidth)
{
    uint64_t start = clock_ticks(), messages;

    if (bench->rank >= BACKGROUND_LOAD_FIRST_RANK)
        return bench->rank - BACKGROUND_LOAD_FIRST_RANK < (int)loaded->loaders
                   ? background_load_run(star_flow(bench, loaded->load))
                   : BENCH_OK;
    if (stream_pass(&loaded->flow, &loaded->plan, &messages))
        return BENCH_FAILED;
    *bandwidth = messages * loaded->flow.spec.size / clock_ns(clock_ticks() - start) * 1000;
    return bench->rank ? BENCH_OK : background_load_stop(loaded->load, loaded->loaders);
}

static int run_once(void *context, double *bandwidth)
{
    struct loaded_stream *loaded = context;
    struct bench *bench = loaded->flow.bench;

    *bandwidth = 0;
    if (stream_prepare(&loaded->flow, &loaded->plan) || bench_barrier(bench) ||
        take_part(bench, loaded, bandwidth))
        return BENCH_FAILED;
    return bench_barrier(bench);
}

static int measure(struct bench *bench, void *context, size_t size, unsigned int loaders,
                   struct summary *out)
{
    struct loaded_stream loaded = {
        .plan = { .style = WINDOW_REFILL,
                  .window = bench->settings->window,
                  .messages = stream_messages(bench, size) },
        .load = context,
        .loaders = loaders,
    };
    struct flow_spec spec;
    double warm_up;
    int status;

    flow_defaults(bench, background_load_peer(bench), &spec);
    spec.operation = OPERATION_WRITE;
    spec.size = size;
    spec.depth = stream_depth(&spec, loaded.plan.window);
    if (flow_open(bench, &spec, &loaded.flow))
        return BENCH_FAILED;
    status = run_once(&loaded, &warm_up);
    if (!status)
        status = sampling_runs(bench, run_once, &loaded, out);
    flow_close(&loaded.flow);
    return status;
}

int hca_load_run(struct bench *bench)
{
    static const struct count_sweep_curve curve = { "write", measure };
    struct flow_spec spec;
    struct star star;
    int status;

    flow_defaults(bench, -1, &spec);
    spec.operation = OPERATION_WRITE;
    spec.size = LOAD_SIZE;
    if (background_load_open(bench, &spec, &star))
        return BENCH_FAILED;
    status = count_sweep_run(
        bench, &(struct count_sweep){ .quantity = "bandwidth",
                                      .unit = "MB/s",
                                      .better = BETTER_HIGHER,
                                      .axis = "nodes",
                                      .counts = &bench->settings->nodes,
                                      .limit = bench->ranks - BACKGROUND_LOAD_FIRST_RANK,
                                      .limiter = "further nodes",
                                      .sizes = &bench->settings->sizes,
                                      .context = &star,
                                      .curve_count = 1,
                                      .curves = &curve });
    star_close(&star);
    return status;
}
