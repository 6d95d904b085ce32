/* SPDX-License-Identifier: BSD-2-Clause */
#include "count_sweep.h"
#include "refine.h"
#include "sweep.h"
#include "pingpong.h"
#include "sampling.h"
#include "stream.h"

#include <stdlib.h>

#define CURVES_MAX      48
#define MIN_USES        4 /* of each slot in a stream */
#define NAME_MAX_LENGTH 48

uint64_t count_sweep_qp_limit(const struct bench *bench, unsigned int cqs)
{
    const struct ibv_device_attr *limits = &bench->adapter->limits;
    uint64_t qps = limits->max_qp;
    uint64_t served = cqs ? limits->max_cq / cqs : qps;

    return served < qps ? served : qps;
}

static void open_panel(struct bench *bench, const struct count_sweep *sweep,
                       const struct number_list *sizes)
{
    char texts[CURVES_MAX][NAME_MAX_LENGTH], number[24];
    const char *names[CURVES_MAX];
    unsigned int count = 0;

    for (unsigned int i = 0; i < sizes->count; i++) {
        for (unsigned int k = 0; k < sweep->curve_count; k++, count++) {
            const char *name = sweep->curves[k].name;

            snprintf(texts[count], NAME_MAX_LENGTH, sizes->count > 1 ? "%s %s" : "%s", name,
                     option_number_text(sizes->value[i], number, sizeof(number)));
            names[count] = texts[count];
        }
    }
    bench_panel(bench, &(struct panel_spec){ .quantity = sweep->quantity,
                                             .unit = sweep->unit,
                                             .axis = sweep->axis,
                                             .axis_unit = "",
                                             .better = sweep->better,
                                             .count = count,
                                             .names = names });
}

static int measure_row(struct bench *bench, const struct count_sweep *sweep,
                       const struct number_list *sizes, uint64_t count,
                       struct refinement *refinement)
{
    for (unsigned int i = 0; i < sizes->count; i++) {
        for (unsigned int k = 0; k < sweep->curve_count; k++) {
            struct summary summary;

            if (sweep->curves[k].measure(bench, sweep->context, sizes->value[i], count, &summary))
                return BENCH_FAILED;
            bench_point(bench, i * sweep->curve_count + k, count, &summary);
            if (!i && !k)
                refine_add(refinement, count, summary.median);
        }
    }
    return BENCH_OK;
}

/* Rank 0 decides: only it knows the curve. */
static int agree_on_next(struct bench *bench, const struct refinement *refinement, uint64_t *next)
{
    uint64_t mine = bench->rank ? 0 : refine_next(refinement), all[CONTROL_RANKS_MAX];

    if (bench_exchange(bench, &mine, sizeof(mine), all))
        return BENCH_FAILED;
    *next = all[0];
    return BENCH_OK;
}

static int refine(struct bench *bench, const struct count_sweep *sweep,
                  const struct number_list *sizes, struct refinement *refinement)
{
    for (unsigned int i = 0; i < REFINE_POINTS; i++) {
        uint64_t next;

        if (agree_on_next(bench, refinement, &next))
            return BENCH_FAILED;
        if (!next)
            break;
        if (measure_row(bench, sweep, sizes, next, refinement))
            return BENCH_FAILED;
    }
    return BENCH_OK;
}

int count_sweep_run(struct bench *bench, const struct count_sweep *sweep)
{
    static const struct number_list no_size = { .count = 1 };
    const struct number_list *sizes = sweep->sizes ? sweep->sizes : &no_size;
    struct refinement refinement = { .closeness = bench->settings->refine };
    struct number_list counts;

    if (sizes->count * sweep->curve_count > CURVES_MAX)
        return bench_fail(bench, "%u sizes make more than %d curves", sizes->count, CURVES_MAX);
    if (sweep_keep_up_to(bench, sweep->counts, sweep->limit, sweep->limiter, &counts))
        return BENCH_FAILED;
    open_panel(bench, sweep, sizes);
    for (unsigned int i = 0; i < counts.count; i++) {
        if (measure_row(bench, sweep, sizes, counts.value[i], &refinement))
            return BENCH_FAILED;
    }
    return refinement.closeness ? refine(bench, sweep, sizes, &refinement) : BENCH_OK;
}

int count_sweep_one_curve(struct bench *bench, struct count_sweep sweep, const char *quantity,
                          count_sweep_measure measure)
{
    struct count_sweep_curve curve = { .name = quantity, .measure = measure };

    sweep.quantity = quantity;
    sweep.curve_count = 1;
    sweep.curves = &curve;
    return count_sweep_run(bench, &sweep);
}

int count_sweep_time_by_qps(struct bench *bench, const char *quantity,
                            const struct count_sweep_curve *curve)
{
    return count_sweep_run(bench, &(struct count_sweep){ .quantity = quantity,
                                                         .unit = "us",
                                                         .better = BETTER_LOWER,
                                                         .axis = "QPs",
                                                         .counts = &bench->settings->qps,
                                                         .limit = count_sweep_qp_limit(bench, 0),
                                                         .limiter = "queue pairs",
                                                         .sizes = &bench->settings->sizes,
                                                         .curve_count = 1,
                                                         .curves = curve });
}

/* A ping-pong of which each n-th round trip is timed. */
struct sparse_pingpong {
    struct flow flow;
    unsigned int every;
};

static int run_pingpong(void *context, uint64_t warmup, struct histogram *samples)
{
    struct sparse_pingpong *pingpong = context;
    uint64_t min = pingpong->every > 1 ? 1 : pingpong->flow.slot_count;
    struct pingpong_plan plan = { .iterations = pingpong->flow.bench->settings->iterations,
                                  .warmup = warmup,
                                  .every = pingpong->every };

    if (plan.warmup < min)
        plan.warmup = min;
    if (plan.iterations < min)
        plan.iterations = min;
    return pingpong_run(&pingpong->flow, &plan, samples);
}

int count_sweep_latency(struct bench *bench, const struct flow_spec *spec, unsigned int every,
                        struct summary *out)
{
    struct sparse_pingpong pingpong = { .every = every };
    int status;

    if (flow_open(bench, spec, &pingpong.flow))
        return BENCH_FAILED;
    status =
        sampling_iterations(bench, run_pingpong, &pingpong, pingpong_scale(spec->operation), out);
    flow_close(&pingpong.flow);
    return status;
}

struct description {
    void (*describe)(struct flow_spec *spec, unsigned int count);
};

static void describe_flow(struct bench *bench, const struct description *description, size_t size,
                          unsigned int count, struct flow_spec *out)
{
    flow_defaults(bench, 1 - bench->rank, out);
    out->size = size;
    description->describe(out, count);
}

static int measure_latency(struct bench *bench, void *context, size_t size, unsigned int count,
                           struct summary *out)
{
    struct flow_spec spec;

    describe_flow(bench, context, size, count, &spec);
    return count_sweep_latency(bench, &spec, 1, out);
}

static int measure_bandwidth(struct bench *bench, void *context, size_t size, unsigned int count,
                             struct summary *out)
{
    struct stream_plan plan = { .style = WINDOW_REFILL,
                                .window = bench->settings->window,
                                .messages = stream_messages(bench, size) };
    struct flow_spec spec;

    if (plan.messages < (uint64_t)MIN_USES * count)
        plan.messages = (uint64_t)MIN_USES * count;
    describe_flow(bench, context, size, count, &spec);
    return stream_measure(bench, &spec, &plan, out);
}

int count_sweep_flow(struct bench *bench, struct count_sweep sweep,
                     void (*describe)(struct flow_spec *spec, unsigned int count))
{
    struct description description = { describe };

    sweep.sizes = &bench->settings->sizes;
    sweep.context = &description;
    sweep.unit = "us";
    sweep.better = BETTER_LOWER;
    if (count_sweep_one_curve(bench, sweep, "latency", measure_latency))
        return BENCH_FAILED;
    sweep.unit = "MB/s";
    sweep.better = BETTER_HIGHER;
    return count_sweep_one_curve(bench, sweep, "bandwidth", measure_bandwidth);
}
