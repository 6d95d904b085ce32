/* SPDX-License-Identifier: BSD-2-Clause */
#include "lifecycle.h"

#define HEARTBEAT_NS 500000000ull
#define MIN_PASSES   10

/* Rank 0 tells the others that it is still measuring, or that it has finished. */
static int send_heartbeat(struct bench *bench, bool finished)
{
    char mine = finished, all[CONTROL_RANKS_MAX];

    return bench_exchange(bench, &mine, sizeof(mine), all);
}

static int follow_heartbeats(struct bench *bench)
{
    char mine = 0, all[CONTROL_RANKS_MAX] = { 0 };

    while (!all[0]) {
        if (bench_exchange(bench, &mine, sizeof(mine), all))
            return BENCH_FAILED;
    }
    return BENCH_OK;
}

static unsigned int count_spans(const struct lifecycle *lifecycle)
{
    unsigned int count = 0;

    while (lifecycle->spans[count].name)
        count++;
    return count;
}

static int run_pass(struct bench *bench, const struct lifecycle *lifecycle,
                    struct histogram **samples)
{
    uint64_t stamp[LIFECYCLE_STEPS_MAX + 1];

    stamp[0] = clock_ticks();
    for (unsigned int i = 0; lifecycle->steps[i]; i++) {
        if (lifecycle->steps[i](bench, lifecycle->object))
            return BENCH_FAILED;
        stamp[i + 1] = clock_ticks();
    }
    for (unsigned int i = 0; samples && lifecycle->spans[i].name; i++)
        histogram_add(samples[i],
                      stamp[lifecycle->spans[i].last + 1] - stamp[lifecycle->spans[i].first]);
    return BENCH_OK;
}

static int run_passes(struct bench *bench, const struct lifecycle *lifecycle, uint64_t count,
                      struct histogram **samples)
{
    uint64_t last_heartbeat = experiment_ns();

    for (uint64_t i = 0; i < count; i++) {
        if (run_pass(bench, lifecycle, samples))
            return BENCH_FAILED;
        if (experiment_ns() - last_heartbeat < HEARTBEAT_NS)
            continue;
        if (send_heartbeat(bench, false))
            return BENCH_FAILED;
        last_heartbeat = experiment_ns();
    }
    return BENCH_OK;
}

static uint64_t passes_of_point(const struct bench *bench, const struct lifecycle_sweep *sweep)
{
    uint64_t wanted = bench->settings->iterations;
    uint64_t max = sweep->max_total && *sweep->value ? sweep->max_total / *sweep->value : wanted;

    if (max < MIN_PASSES)
        max = MIN_PASSES;
    return wanted < max ? wanted : max;
}

static double scale_of_point(const struct lifecycle_sweep *sweep)
{
    double calls = sweep->calls ? sweep->calls : *sweep->value;

    return bench_clock.ns_per_tick / calls / (sweep->nanoseconds ? 1 : 1000);
}

static int measure_point(struct bench *bench, const struct lifecycle_sweep *sweep,
                         const struct lifecycle *lifecycle, unsigned int first_curve)
{
    const struct settings *settings = bench->settings;
    uint64_t start = experiment_ns(), count = passes_of_point(bench, sweep);
    uint64_t warmup = settings->warmup < count ? settings->warmup : count;
    struct histogram *samples[LIFECYCLE_SPANS_MAX];
    unsigned int span_count = count_spans(lifecycle);
    struct summary summary;
    int status;

    for (unsigned int i = 0; i < span_count; i++)
        samples[i] = histogram_new();
    status = run_passes(bench, lifecycle, warmup, NULL);
    do {
        if (!status)
            status = run_passes(bench, lifecycle, count, samples);
        histogram_summary(samples[0], scale_of_point(sweep), &summary);
    } while (!status && bench_needs_samples(bench, &summary, start));
    for (unsigned int i = 0; i < span_count; i++) {
        histogram_trim(samples[i], settings->trim / 100);
        histogram_summary(samples[i], scale_of_point(sweep), &summary);
        if (!status)
            bench_point(bench, first_curve + i, *sweep->value, &summary);
        histogram_free(samples[i]);
    }
    return status;
}

static void open_panel(struct bench *bench, const struct lifecycle_sweep *sweep,
                       const struct lifecycle *lifecycles, unsigned int count)
{
    const char *names[LIFECYCLE_SPANS_MAX];
    unsigned int curves = 0;

    for (unsigned int i = 0; i < count; i++) {
        for (unsigned int k = 0; lifecycles[i].spans[k].name; k++)
            names[curves++] = lifecycles[i].spans[k].name;
    }
    bench_panel(bench, &(struct panel_spec){ .quantity = "time",
                                             .unit = sweep->nanoseconds ? "ns" : "us",
                                             .axis = sweep->axis,
                                             .axis_unit = sweep->axis_unit,
                                             .better = BETTER_LOWER,
                                             .count = curves,
                                             .names = names });
}

static unsigned int count_above(const struct number_list *values, uint64_t limit)
{
    unsigned int count = 0;

    for (unsigned int i = 0; i < values->count; i++)
        count += values->value[i] > limit;
    return count;
}

int lifecycle_measure(struct bench *bench, const struct lifecycle_sweep *sweep,
                      const struct lifecycle *lifecycles, unsigned int count)
{
    const struct number_list *values = sweep->values;
    unsigned int above = count_above(values, sweep->limit);

    if (bench->rank)
        return follow_heartbeats(bench);
    if (above == values->count)
        return bench_skip(bench, "every %s asked for is above the device's limit of %llu",
                          sweep->axis, (unsigned long long)sweep->limit);
    open_panel(bench, sweep, lifecycles, count);
    for (unsigned int i = 0; i < values->count; i++) {
        unsigned int curve = 0;

        if (values->value[i] > sweep->limit)
            continue;
        *sweep->value = values->value[i];
        for (unsigned int k = 0; k < count; curve += count_spans(&lifecycles[k++])) {
            if (measure_point(bench, sweep, &lifecycles[k], curve))
                return BENCH_FAILED;
        }
    }
    if (above)
        bench_note(bench, "left out", "%s above %llu, the device's limit", sweep->axis,
                   (unsigned long long)sweep->limit);
    return send_heartbeat(bench, true);
}
