/* SPDX-License-Identifier: BSD-2-Clause */
/* What a flow keeps whose own way is free, while others crowd a node that its source sends to, too. */
#include "runs.h"
#include "bench/measure/count_sweep.h"
#include "bench/measure/sampling.h"
#include "bench/measure/flow.h"
#include "bench/measure/sweep.h"

#include <stdlib.h>

enum {
    RANK_SOURCE,
    RANK_FREE,
    RANK_BUSY,
    RANK_OTHERS, /* the first of those that write to the busy node */
};

struct victim {
    struct bench *bench;
    struct flow to_free;
    struct flow *to_busy; /* from the source, then from each of the others */
    unsigned int count;   /* of these */
    uint64_t messages;
    unsigned int window;
    bool busy; /* report the bandwidth to the busy node; else to the free one */
};

static int sender_of(unsigned int flow)
{
    return flow ? RANK_OTHERS + flow - 1 : RANK_SOURCE;
}

/* The flow to the busy node that starts at this rank, or NULL. */
static struct flow *own_flow(const struct victim *victim)
{
    for (unsigned int i = 0; i < victim->count; i++) {
        if (sender_of(i) == victim->bench->rank)
            return &victim->to_busy[i];
    }
    return NULL;
}

static int peer_of(const struct victim *victim, int sender, int receiver)
{
    int rank = victim->bench->rank;

    return rank == sender ? receiver : rank == receiver ? sender : -1;
}

static int fill_window(const struct victim *victim, struct flow *flow)
{
    while (flow->sent - flow->completed < victim->window) {
        if (flow_send(flow))
            return BENCH_FAILED;
    }
    return BENCH_OK;
}

/* Writes until 'messages' have completed at the busy node; the source also writes to the free one,
 * as fast as it can. */
static int write_all(const struct victim *victim, struct flow *busy, struct flow *free)
{
    uint64_t end = busy->completed + victim->messages;
    struct bench_idle idle = { 0 };

    while (busy->completed < end) {
        uint64_t before = busy->completed + (free ? free->completed : 0);

        if (fill_window(victim, busy) || (free && fill_window(victim, free)) ||
            flow_reap(busy, false) || (free && flow_reap(free, false)))
            return BENCH_FAILED;
        if (busy->completed + (free ? free->completed : 0) != before)
            idle = (struct bench_idle){ 0 };
        else if (bench_idle_expired(victim->bench, &idle))
            return BENCH_FAILED;
    }
    return BENCH_OK;
}

static int run_once(void *context, double *value)
{
    struct victim *victim = context;
    struct flow *busy = own_flow(victim);
    struct flow *free = victim->bench->rank == RANK_SOURCE ? &victim->to_free : NULL;
    uint64_t freely = free ? free->completed : 0, start;
    double ns;

    *value = 0;
    if (bench_barrier(victim->bench))
        return BENCH_FAILED;
    start = clock_ticks();
    if (busy && write_all(victim, busy, free))
        return BENCH_FAILED;
    ns = clock_ns(clock_ticks() - start);
    if (free)
        *value = (victim->busy ? victim->messages : free->completed - freely) *
                 (double)free->spec.size / ns * 1000;
    if ((busy && flow_settle(busy)) || (free && flow_settle(free)))
        return BENCH_FAILED;
    return bench_barrier(victim->bench);
}

static void close_all(struct victim *victim, unsigned int opened)
{
    while (opened)
        flow_close(&victim->to_busy[--opened]);
    free(victim->to_busy);
    flow_close(&victim->to_free);
}

static int open_all(struct victim *victim, struct flow_spec *spec)
{
    unsigned int opened = 0;

    spec->peer = peer_of(victim, RANK_SOURCE, RANK_FREE);
    if (flow_open(victim->bench, spec, &victim->to_free))
        return BENCH_FAILED;
    victim->to_busy = calloc(victim->count, sizeof(*victim->to_busy));
    for (; victim->to_busy && opened < victim->count; opened++) {
        spec->peer = peer_of(victim, sender_of(opened), RANK_BUSY);
        if (flow_open(victim->bench, spec, &victim->to_busy[opened]))
            break;
    }
    if (victim->to_busy && opened == victim->count)
        return BENCH_OK;
    close_all(victim, opened);
    return victim->to_busy ? BENCH_FAILED : bench_fail(victim->bench, "out of memory");
}

static int measure(struct bench *bench, size_t size, unsigned int others, bool busy,
                   struct summary *out)
{
    struct victim victim = { .bench = bench,
                             .count = others + 1,
                             .messages = bench->settings->iterations,
                             .window = bench->settings->window,
                             .busy = busy };
    struct flow_spec spec;
    int status;

    flow_defaults(bench, -1, &spec);
    spec.operation = OPERATION_WRITE;
    spec.size = size;
    spec.signal = 1;
    if (spec.depth < victim.window)
        spec.depth = victim.window;
    if (open_all(&victim, &spec))
        return BENCH_FAILED;
    status = sampling_runs(bench, run_once, &victim, out);
    close_all(&victim, victim.count);
    return status;
}

static int measure_free(struct bench *bench, void *context, size_t size, unsigned int others,
                        struct summary *out)
{
    return measure(bench, size, others, false, out);
}

static int measure_busy(struct bench *bench, void *context, size_t size, unsigned int others,
                        struct summary *out)
{
    return measure(bench, size, others, true, out);
}

int victim_ranks(const struct settings *settings)
{
    return RANK_OTHERS + sweep_largest(&settings->nodes);
}

int victim_run(struct bench *bench)
{
    static const struct count_sweep_curve curves[] = { { "to the free node", measure_free },
                                                       { "to the busy node", measure_busy } };

    return count_sweep_run(bench, &(struct count_sweep){ .quantity = "bandwidth",
                                                         .unit = "MB/s",
                                                         .better = BETTER_HIGHER,
                                                         .axis = "nodes",
                                                         .counts = &bench->settings->nodes,
                                                         .limit = bench->ranks - RANK_OTHERS,
                                                         .limiter = "further nodes",
                                                         .sizes = &bench->settings->sizes,
                                                         .curve_count = 2,
                                                         .curves = curves });
}
