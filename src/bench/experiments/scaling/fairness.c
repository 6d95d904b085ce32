/* SPDX-License-Identifier: BSD-2-Clause */
/* How nodes that send to one node come to share its link: rates over time. */
#include "runs.h"
#include "bench/measure/cpu_work.h"
#include "bench/measure/star.h"
#include "bench/measure/stream.h"
#include "bench/measure/sweep.h"

#include <stdlib.h>

#define SLOTS      20
#define FLOWS_MAX  32
#define STAGGER_BY 4 /* all flows start within this part of the time that they take together */

/* Arrivals of one flow, in ticks of rank 0. */
struct arrivals {
    uint64_t *at;
    uint64_t count;
};

struct fairness {
    struct bench *bench;
    struct star senders;
    struct stream_plan plan;
    struct arrivals arrivals[FLOWS_MAX];
};

static void note_arrival(void *context, const struct flow *flow, const struct slot *slot)
{
    struct fairness *fairness = context;
    struct arrivals *arrivals = &fairness->arrivals[flow - fairness->senders.flows];

    arrivals->at[arrivals->count++] = clock_ticks();
}

static int prepare(struct fairness *fairness)
{
    struct flow *mine = star_flow(fairness->bench, &fairness->senders);

    if (fairness->bench->rank)
        return mine ? stream_prepare(mine, &fairness->plan) : BENCH_OK;
    for (unsigned int i = 0; i < fairness->senders.count; i++) {
        fairness->arrivals[i].count = 0;
        if (stream_prepare(&fairness->senders.flows[i], &fairness->plan))
            return BENCH_FAILED;
    }
    return BENCH_OK;
}

/* Every sender waits 'stagger' ns longer than the one before it. */
static int run_once(struct fairness *fairness, uint64_t stagger, uint64_t *start, uint64_t *ticks)
{
    struct bench *bench = fairness->bench;
    struct flow *mine = star_flow(bench, &fairness->senders);
    uint64_t shares[CONTROL_RANKS_MAX], messages;

    if (prepare(fairness) || bench_barrier(bench))
        return BENCH_FAILED;
    *start = clock_ticks();
    if (!bench->rank) {
        if (stream_gather(fairness->senders.flows, fairness->senders.count, &fairness->plan,
                          shares, &messages))
            return BENCH_FAILED;
    } else if (mine) {
        if (stagger)
            cpu_work_compute(stagger * (bench->rank - 1));
        if (stream_pass(mine, &fairness->plan, &messages))
            return BENCH_FAILED;
    }
    *ticks = clock_ticks() - *start;
    return bench_barrier(bench);
}

static uint64_t arrived_before(const struct arrivals *arrivals, uint64_t ticks)
{
    uint64_t count = 0;

    while (count < arrivals->count && arrivals->at[count] < ticks)
        count++;
    return count;
}

/* Until the first flow has ended, in equal slots. */
static void report(struct fairness *fairness, uint64_t start)
{
    struct bench *bench = fairness->bench;
    unsigned int count = fairness->senders.count;
    uint64_t end = UINT64_MAX;

    for (unsigned int i = 0; i < count; i++) {
        const struct arrivals *arrivals = &fairness->arrivals[i];

        if (arrivals->count && arrivals->at[arrivals->count - 1] < end)
            end = arrivals->at[arrivals->count - 1];
    }
    for (unsigned int slot = 0; slot < SLOTS; slot++) {
        uint64_t from = start + (end - start) * slot / SLOTS;
        uint64_t to = start + (end - start) * (slot + 1) / SLOTS;

        for (unsigned int i = 0; i < count; i++) {
            const struct arrivals *arrivals = &fairness->arrivals[i];
            uint64_t messages = arrived_before(arrivals, to) - arrived_before(arrivals, from);
            double rate = messages * (double)fairness->senders.flows->spec.size /
                          clock_ns(to - from) * 1000;
            struct summary summary;

            histogram_of_values(&rate, 1, &summary);
            bench_point(bench, i, clock_ns(to - start) / 1000, &summary);
        }
    }
}

static void open_panel(struct bench *bench, unsigned int count)
{
    char texts[FLOWS_MAX][16];
    const char *names[FLOWS_MAX];

    for (unsigned int i = 0; i < count; i++) {
        snprintf(texts[i], sizeof(texts[i]), "flow %u", i + 1);
        names[i] = texts[i];
    }
    bench_panel(bench, &(struct panel_spec){ .quantity = "bandwidth",
                                             .unit = "MB/s",
                                             .axis = "time",
                                             .axis_unit = "us",
                                             .better = BETTER_HIGHER,
                                             .count = count,
                                             .names = names });
}

static int allocate(struct fairness *fairness)
{
    for (unsigned int i = 0; i < fairness->senders.count && !fairness->bench->rank; i++) {
        fairness->arrivals[i].at =
            calloc(fairness->plan.messages + 2 * fairness->plan.window, sizeof(uint64_t));
        if (!fairness->arrivals[i].at)
            return bench_fail(fairness->bench, "out of memory");
    }
    return BENCH_OK;
}

/* The first run only tells how long the flows take. Rank 0 tells the others. */
static int run_staggered(struct fairness *fairness)
{
    unsigned int count = fairness->senders.count;
    uint64_t start, ticks, mine, all[CONTROL_RANKS_MAX];

    if (run_once(fairness, 0, &start, &ticks))
        return BENCH_FAILED;
    mine = clock_ns(ticks) / STAGGER_BY / count;
    if (bench_exchange(fairness->bench, &mine, sizeof(mine), all) ||
        run_once(fairness, all[0], &start, &ticks))
        return BENCH_FAILED;
    if (!fairness->bench->rank)
        report(fairness, start);
    return BENCH_OK;
}

int fairness_run(struct bench *bench)
{
    const struct settings *settings = bench->settings;
    unsigned int count = sweep_largest(&settings->nodes);
    struct fairness fairness = {
        .bench = bench,
        .plan = { .style = WINDOW_REFILL,
                  .window = settings->window,
                  .messages = settings->iterations,
                  .reverse = true,
                  .arrived = note_arrival,
                  .arrived_context = &fairness },
    };
    struct flow_spec spec;
    int status;

    if (!count || count > FLOWS_MAX)
        return bench_fail(bench, "--nodes takes from 1 to %d senders", FLOWS_MAX);
    flow_defaults(bench, -1, &spec);
    spec.size = settings->sizes.value[0];
    spec.depth = stream_depth(&spec, fairness.plan.window);
    if (star_open(bench, &spec, 1, count, &fairness.senders))
        return BENCH_FAILED;
    open_panel(bench, count);
    status = allocate(&fairness);
    if (!status)
        status = run_staggered(&fairness);
    for (unsigned int i = 0; i < FLOWS_MAX; i++)
        free(fairness.arrivals[i].at);
    star_close(&fairness.senders);
    return status;
}
