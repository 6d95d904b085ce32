/* SPDX-License-Identifier: BSD-2-Clause */
/* Completions of many connections: one completion queue for all, or one each, polled in turn. */
#include "runs.h"
#include "bench/measure/count_sweep.h"
#include "bench/measure/stream.h"
#include "util/random.h"

#include <stdlib.h>

/* Uses each connection equally often, in random order; both sides must draw the same numbers. */
static unsigned int *random_order(uint64_t seed, unsigned int connections, unsigned int uses)
{
    unsigned int count = connections * uses;
    unsigned int *order = malloc(count * sizeof(*order));

    for (unsigned int i = 0; order && i < count; i++) {
        unsigned int other = random_next(&seed) % (i + 1);

        order[i] = order[other];
        order[other] = i % connections;
    }
    return order;
}

static int measure(struct bench *bench, size_t size, unsigned int connections, bool cq_per_qp,
                   struct summary *out)
{
    const struct settings *settings = bench->settings;
    struct stream_plan plan = { .style = WINDOW_REFILL,
                                .window = settings->window,
                                .messages = stream_messages(bench, size) };
    struct flow_spec spec;
    unsigned int *order = random_order(settings->seed, connections, plan.window);
    int status;

    if (!order)
        return bench_fail(bench, "out of memory");
    flow_defaults(bench, 1 - bench->rank, &spec);
    spec.size = size;
    spec.qps = connections;
    spec.slots = connections * plan.window;
    spec.qp_of = order;
    spec.signal = 1;
    spec.cq_per_qp = cq_per_qp;
    status = stream_measure(bench, &spec, &plan, out);
    free(order);
    return status;
}

static int measure_one_queue(struct bench *bench, void *context, size_t size,
                             unsigned int connections, struct summary *out)
{
    return measure(bench, size, connections, false, out);
}

static int measure_round_robin(struct bench *bench, void *context, size_t size,
                               unsigned int connections, struct summary *out)
{
    return measure(bench, size, connections, true, out);
}

int multi_vi_run(struct bench *bench)
{
    static const struct count_sweep_curve curves[] = {
        { "completion queue", measure_one_queue },
        { "round robin", measure_round_robin },
    };

    return count_sweep_run(
        bench, &(struct count_sweep){ .quantity = "bandwidth",
                                      .unit = "MB/s",
                                      .better = BETTER_HIGHER,
                                      .axis = "connections",
                                      .counts = &bench->settings->qps,
                                      .limit = count_sweep_qp_limit(bench, 2),
                                      .limiter = "queue pairs with two completion queues "
                                                 "each",
                                      .sizes = &bench->settings->sizes,
                                      .curve_count = 2,
                                      .curves = curves });
}
