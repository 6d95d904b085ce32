/* How several nodes that send to one at the same time share what it can take. */
#include "bench/repeat.h"
#include "bench/stream.h"
#include "scaling.h"

struct incast {
    struct bench *bench;
    struct star senders;
    struct stream_plan plan;
    bool fairness; /* is the figure; else bandwidth */
};

static int count_ranks(const struct settings *settings)
{
    return 1 + scaling_largest(&settings->nodes);
}

/* Jain's index: 1 if all have got the same, 1/n if one has got everything. */
static double jain(const uint64_t *shares, unsigned int count)
{
    double sum = 0, squares = 0;

    for (unsigned int i = 0; i < count; i++) {
        sum += shares[i];
        squares += (double)shares[i] * shares[i];
    }
    return squares > 0 ? sum * sum / (count * squares) : 1;
}

static int receive_all(struct incast *incast, double *figure)
{
    unsigned int count = incast->senders.count;
    uint64_t shares[CONTROL_RANKS_MAX], start = clock_ticks(), messages;
    double bytes, ns;

    if (stream_gather(incast->senders.flows, count, &incast->plan, shares, &messages))
        return BENCH_FAILED;
    ns = clock_ns(clock_ticks() - start);
    bytes = (double)count * messages * incast->senders.flows->spec.size;
    *figure = incast->fairness ? jain(shares, count) : bytes / ns * 1000;
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

static int run_once(void *context, double *figure)
{
    struct incast *incast = context;
    struct flow *mine = star_flow(incast->bench, &incast->senders);
    uint64_t messages;

    *figure = 0;
    if (prepare(incast) || bench_barrier(incast->bench))
        return BENCH_FAILED;
    if (!incast->bench->rank ? receive_all(incast, figure)
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
        status = repeat_values(bench, run_once, &incast, out);
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

static int run(struct bench *bench)
{
    static const struct scaling_curve total = { "total", measure_total };
    static const struct scaling_curve fairness = { "Jain's index", measure_fairness };
    struct scaling scaling = { .quantity = "bandwidth",
                               .unit = "MB/s",
                               .better = BETTER_HIGHER,
                               .axis = "nodes",
                               .numbers = &bench->settings->nodes,
                               .limit = bench->ranks - 1,
                               .limiter = "further nodes",
                               .sizes = &bench->settings->sizes,
                               .count = 1,
                               .curves = &total };

    for (unsigned int i = 0; i < scaling.numbers->count; i++) {
        if (!scaling.numbers->value[i])
            return bench_fail(bench, "there is no incast without a sender: --nodes begins with 1");
    }
    if (scaling_run(bench, &scaling))
        return BENCH_FAILED;
    scaling.quantity = "fairness";
    scaling.unit = "";
    scaling.curves = &fairness;
    return scaling_run(bench, &scaling);
}

const struct experiment experiment_incast = {
    .name = "incast",
    .group = "scaling",
    .title = "What do n nodes get that send to one at the same time, and is it shared fairly?",
    .source = "this suite",
    .options = "--nodes 1..6:1 --sizes 4K --iterations 4000",
    .quick = "--nodes 1,2,4 --iterations 500 --repetitions 3",
    .layout = LAYOUT_ALL_APART,
    .count = count_ranks,
    .run = run,
};
