#include "cycle.h"

#define BEAT_NS     500000000ull
#define TURNS_LEAST 10

/* Rank 0 tells the others that it is still at it, or that it has finished. */
static int beat(struct bench *bench, bool finished)
{
    char mine = finished, all[CONTROL_RANKS_MAX];

    return bench_exchange(bench, &mine, sizeof(mine), all);
}

static int attend(struct bench *bench)
{
    char mine = 0, all[CONTROL_RANKS_MAX] = { 0 };

    while (!all[0]) {
        if (bench_exchange(bench, &mine, sizeof(mine), all))
            return BENCH_FAILED;
    }
    return BENCH_OK;
}

static int turn(struct bench *bench, const struct cycle *cycle, struct histogram **samples)
{
    uint64_t stamp[CYCLE_STEPS_MAX + 1];

    stamp[0] = clock_ticks();
    for (unsigned int i = 0; cycle->steps[i]; i++) {
        if (cycle->steps[i](bench, cycle->object))
            return BENCH_FAILED;
        stamp[i + 1] = clock_ticks();
    }
    for (unsigned int i = 0; samples && i < cycle->span_count; i++)
        histogram_add(samples[i], stamp[cycle->spans[i].last + 1] - stamp[cycle->spans[i].first]);
    return BENCH_OK;
}

static int turns(struct bench *bench, const struct cycle *cycle, uint64_t count,
                 struct histogram **samples)
{
    uint64_t last_beat = experiment_ns();

    for (uint64_t i = 0; i < count; i++) {
        if (turn(bench, cycle, samples))
            return BENCH_FAILED;
        if (experiment_ns() - last_beat < BEAT_NS)
            continue;
        if (beat(bench, false))
            return BENCH_FAILED;
        last_beat = experiment_ns();
    }
    return BENCH_OK;
}

static uint64_t turns_of_point(const struct bench *bench, const struct cycle_sweep *sweep)
{
    uint64_t wanted = bench->settings->iterations;
    uint64_t most = sweep->most_total && *sweep->value ? sweep->most_total / *sweep->value : wanted;

    if (most < TURNS_LEAST)
        most = TURNS_LEAST;
    return wanted < most ? wanted : most;
}

static double scale_of_point(const struct cycle_sweep *sweep)
{
    double calls = sweep->calls ? sweep->calls : *sweep->value;

    return bench_clock.ns_per_tick / calls / (sweep->nanoseconds ? 1 : 1000);
}

static int measure_point(struct bench *bench, const struct cycle_sweep *sweep,
                         const struct cycle *cycle, unsigned int first_curve)
{
    const struct settings *settings = bench->settings;
    uint64_t start = experiment_ns(), count = turns_of_point(bench, sweep);
    uint64_t warmup = settings->warmup < count ? settings->warmup : count;
    struct histogram *samples[CYCLE_SPANS_MAX];
    struct summary summary;
    int status;

    for (unsigned int i = 0; i < cycle->span_count; i++)
        samples[i] = histogram_new();
    status = turns(bench, cycle, warmup, NULL);
    do {
        if (!status)
            status = turns(bench, cycle, count, samples);
        histogram_summary(samples[0], scale_of_point(sweep), &summary);
    } while (!status && bench_wants_more(bench, &summary, start));
    for (unsigned int i = 0; i < cycle->span_count; i++) {
        histogram_trim(samples[i], settings->trim / 100);
        histogram_summary(samples[i], scale_of_point(sweep), &summary);
        if (!status)
            bench_point(bench, first_curve + i, *sweep->value, &summary);
        histogram_free(samples[i]);
    }
    return status;
}

static void open_panel(struct bench *bench, const struct cycle_sweep *sweep,
                       const struct cycle *cycles, unsigned int count)
{
    const char *names[CYCLE_SPANS_MAX];
    unsigned int curves = 0;

    for (unsigned int i = 0; i < count; i++) {
        for (unsigned int k = 0; k < cycles[i].span_count; k++)
            names[curves++] = cycles[i].spans[k].name;
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

int cycle_measure(struct bench *bench, const struct cycle_sweep *sweep, const struct cycle *cycles,
                  unsigned int count)
{
    const struct number_list *values = sweep->values;
    unsigned int above = count_above(values, sweep->limit);

    if (bench->rank)
        return attend(bench);
    if (above == values->count)
        return bench_skip(bench, "every %s asked for is above the device's limit of %llu",
                          sweep->axis, (unsigned long long)sweep->limit);
    open_panel(bench, sweep, cycles, count);
    for (unsigned int i = 0; i < values->count; i++) {
        unsigned int curve = 0;

        if (values->value[i] > sweep->limit)
            continue;
        *sweep->value = values->value[i];
        for (unsigned int k = 0; k < count; curve += cycles[k++].span_count) {
            if (measure_point(bench, sweep, &cycles[k], curve))
                return BENCH_FAILED;
        }
    }
    if (above)
        bench_note(bench, "left out", "%s above %llu, the device's limit", sweep->axis,
                   (unsigned long long)sweep->limit);
    return beat(bench, true);
}
