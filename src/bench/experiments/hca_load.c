/* How much of its bandwidth a sender loses while other nodes keep its adapter busy with writes so
 * small that neither its processor nor its bus is. */
#include "bench/repeat.h"
#include "bench/stream.h"
#include "loading.h"

#define LOAD_SIZE 4

struct loaded_stream {
    struct flow flow; /* between ranks 0 and 1 */
    struct stream_plan plan;
    struct star *load;
    unsigned int loaders; /* that are at work */
};

static int take_part(struct bench *bench, struct loaded_stream *loaded, double *bandwidth)
{
    uint64_t start = clock_ticks(), messages;

    if (bench->rank >= FIRST_LOADER)
        return bench->rank - FIRST_LOADER < (int)loaded->loaders
                   ? loading_work(star_flow(bench, loaded->load))
                   : BENCH_OK;
    if (stream_pass(&loaded->flow, &loaded->plan, &messages))
        return BENCH_FAILED;
    *bandwidth = messages * loaded->flow.spec.size / clock_ns(clock_ticks() - start) * 1000;
    return bench->rank ? BENCH_OK : loading_end(loaded->load, loaded->loaders);
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

    flow_defaults(bench, loading_peer(bench), &spec);
    spec.operation = OPERATION_WRITE;
    spec.size = size;
    spec.depth = stream_depth(&spec, loaded.plan.window);
    if (flow_open(bench, &spec, &loaded.flow))
        return BENCH_FAILED;
    status = run_once(&loaded, &warm_up);
    if (!status)
        status = repeat_values(bench, run_once, &loaded, out);
    flow_close(&loaded.flow);
    return status;
}

static int run(struct bench *bench)
{
    static const struct scaling_curve curve = { "write", measure };
    struct flow_spec spec;
    struct star star;
    int status;

    flow_defaults(bench, -1, &spec);
    spec.operation = OPERATION_WRITE;
    spec.size = LOAD_SIZE;
    if (loading_open(bench, &spec, &star))
        return BENCH_FAILED;
    status = scaling_run(bench, &(struct scaling){ .quantity = "bandwidth",
                                                   .unit = "MB/s",
                                                   .better = BETTER_HIGHER,
                                                   .axis = "nodes",
                                                   .numbers = &bench->settings->nodes,
                                                   .limit = bench->ranks - FIRST_LOADER,
                                                   .limiter = "further nodes",
                                                   .sizes = &bench->settings->sizes,
                                                   .context = &star,
                                                   .count = 1,
                                                   .curves = &curve });
    star_close(&star);
    return status;
}

const struct experiment experiment_hca_load = {
    .name = "hca-load",
    .group = "scaling",
    .title = "How much does a sender lose while other nodes keep its adapter busy?",
    .source = "MIBA section 5.2.8, figure 13",
    .options = "--nodes 0..6:1 --sizes 4K,64K --iterations 2000",
    .quick = "--nodes 0,1,3 --sizes 64K --iterations 300 --repetitions 3",
    .layout = LAYOUT_ALL_APART,
    .count = loading_ranks,
    .run = run,
};
