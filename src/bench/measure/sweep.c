/* SPDX-License-Identifier: BSD-2-Clause */
#include "sweep.h"
#include "pingpong.h"

static int open_panel(struct bench *bench, const struct sweep *sweep, const char *quantity,
                      const char *unit, enum better better)
{
    if (sweep->curves > SWEEP_CURVES_MAX)
        return bench_fail(bench, "%u curves are more than the %d of a table", sweep->curves,
                          SWEEP_CURVES_MAX);
    bench_panel(bench, &(struct panel_spec){ .quantity = quantity,
                                             .unit = unit,
                                             .axis = sweep->axis,
                                             .axis_unit = sweep->axis_unit,
                                             .better = better,
                                             .count = sweep->curves,
                                             .names = sweep->names });
    return BENCH_OK;
}

/* The first style that the user chose, if it is possible: nobody replies to a read, and a sender
 * without acknowledgements needs the receiver's replies. */
static enum window_style style_for(const struct bench *bench, const struct flow_spec *spec)
{
    if (spec->operation >= OPERATION_READ)
        return WINDOW_REFILL;
    if ((spec->transport == TRANSPORT_UC || spec->transport == TRANSPORT_UD) &&
        spec->operation != OPERATION_WRITE)
        return WINDOW_REPLY;
    return __builtin_ctzll(bench->settings->styles);
}

struct stream_plan sweep_plan(const struct bench *bench, const struct flow_spec *spec)
{
    uint64_t min = spec->signal > 1 ? 2ull * spec->signal * spec->qps : 1;
    uint64_t window = bench->settings->window;

    return (struct stream_plan){ .style = style_for(bench, spec),
                                 .window = window > min ? window : min,
                                 .messages = stream_messages(bench, spec->size) };
}

static int measure_bandwidth(struct bench *bench, const struct flow_spec *spec, struct summary *out)
{
    struct stream_plan plan = sweep_plan(bench, spec);

    return stream_measure(bench, spec, &plan, out);
}

static int measure_rate(struct bench *bench, const struct flow_spec *spec, struct summary *out)
{
    struct stream_plan plan = sweep_plan(bench, spec);

    return stream_measure_rate(bench, spec, &plan, out);
}

static int measure_all(struct bench *bench, const struct sweep *sweep,
                       int (*measure)(struct bench *bench, const struct flow_spec *spec,
                                      struct summary *out))
{
    for (unsigned int i = 0; i < sweep->values->count; i++) {
        uint64_t value = sweep->values->value[i];

        for (unsigned int k = 0; k < sweep->curves; k++) {
            struct flow_spec spec;
            struct summary summary;

            flow_defaults(bench, 1 - bench->rank, &spec);
            if (!sweep->point(sweep, k, value, &spec))
                continue;
            if (measure(bench, &spec, &summary))
                return BENCH_FAILED;
            bench_point(bench, k, value, &summary);
        }
    }
    return BENCH_OK;
}

int sweep_latency(struct bench *bench, const struct sweep *sweep)
{
    if (open_panel(bench, sweep, "latency", "us", BETTER_LOWER))
        return BENCH_FAILED;
    return measure_all(bench, sweep, pingpong_measure);
}

int sweep_bandwidth(struct bench *bench, const struct sweep *sweep)
{
    if (open_panel(bench, sweep, "bandwidth", "MB/s", BETTER_HIGHER))
        return BENCH_FAILED;
    return measure_all(bench, sweep, measure_bandwidth);
}

int sweep_rate(struct bench *bench, const struct sweep *sweep)
{
    if (open_panel(bench, sweep, "rate", "M/s", BETTER_HIGHER))
        return BENCH_FAILED;
    return measure_all(bench, sweep, measure_rate);
}

enum operation sweep_operation(const struct bench *bench)
{
    return __builtin_ctzll(bench->settings->operations);
}

uint64_t sweep_largest(const struct number_list *values)
{
    uint64_t largest = 0;

    for (unsigned int i = 0; i < values->count; i++) {
        if (values->value[i] > largest)
            largest = values->value[i];
    }
    return largest;
}

void sweep_name_sizes(struct sweep_names *names, const struct number_list *sizes)
{
    for (unsigned int i = 0; i < sizes->count && i < SWEEP_CURVES_MAX; i++)
        names->list[i] = option_number_text(sizes->value[i], names->texts[i], SWEEP_NAME_MAX);
}

void sweep_name_counts(struct sweep_names *names, const struct number_list *counts,
                       const char *singular, const char *plural)
{
    for (unsigned int i = 0; i < counts->count && i < SWEEP_CURVES_MAX; i++) {
        snprintf(names->texts[i], SWEEP_NAME_MAX, "%llu %s", (unsigned long long)counts->value[i],
                 counts->value[i] == 1 ? singular : plural);
        names->list[i] = names->texts[i];
    }
}

int sweep_keep_up_to(struct bench *bench, const struct number_list *values, uint64_t limit,
                     const char *limiter, struct number_list *out)
{
    uint64_t all[CONTROL_RANKS_MAX];
    unsigned int left_out;

    if (bench_exchange(bench, &limit, sizeof(limit), all))
        return BENCH_FAILED;
    for (int i = 0; i < bench->ranks; i++) {
        if (all[i] < limit)
            limit = all[i];
    }
    out->count = 0;
    for (unsigned int i = 0; i < values->count; i++) {
        if (values->value[i] <= limit)
            out->value[out->count++] = values->value[i];
    }
    left_out = values->count - out->count;
    if (!out->count)
        return bench_skip(bench, "the device has no more than %llu %s", (unsigned long long)limit,
                          limiter);
    if (left_out)
        bench_note(bench, "limit", "the device has no more than %llu %s: %u number%s left out",
                   (unsigned long long)limit, limiter, left_out, left_out == 1 ? "" : "s");
    return BENCH_OK;
}
