#include "scaling.h"
#include "refine.h"
#include "sweep.h"
#include "bench/pingpong.h"
#include "bench/repeat.h"
#include "bench/stream.h"

#include <stdlib.h>

#define CURVES_MAX      48
#define USES_LEAST      4 /* of each slot in a stream */
#define NAME_MAX_LENGTH 48

uint64_t scaling_qp_limit(const struct bench *bench, unsigned int cqs)
{
    const struct ibv_device_attr *limits = &bench->adapter->limits;
    uint64_t qps = limits->max_qp;
    uint64_t served = cqs ? limits->max_cq / cqs : qps;

    return served < qps ? served : qps;
}

uint64_t scaling_largest(const struct number_list *numbers)
{
    uint64_t largest = 0;

    for (unsigned int i = 0; i < numbers->count; i++) {
        if (numbers->value[i] > largest)
            largest = numbers->value[i];
    }
    return largest;
}

static void open_panel(struct bench *bench, const struct scaling *scaling,
                       const struct number_list *sizes)
{
    char texts[CURVES_MAX][NAME_MAX_LENGTH], number[24];
    const char *names[CURVES_MAX];
    unsigned int count = 0;

    for (unsigned int i = 0; i < sizes->count; i++) {
        for (unsigned int k = 0; k < scaling->count; k++, count++) {
            const char *name = scaling->curves[k].name;

            snprintf(texts[count], NAME_MAX_LENGTH, sizes->count > 1 ? "%s %s" : "%s", name,
                     number_text(sizes->value[i], number, sizeof(number)));
            names[count] = texts[count];
        }
    }
    bench_panel(bench, &(struct panel_spec){ .quantity = scaling->quantity,
                                             .unit = scaling->unit,
                                             .axis = scaling->axis,
                                             .axis_unit = "",
                                             .better = scaling->better,
                                             .count = count,
                                             .names = names });
}

static int measure_row(struct bench *bench, const struct scaling *scaling,
                       const struct number_list *sizes, uint64_t number,
                       struct refinement *refinement)
{
    for (unsigned int i = 0; i < sizes->count; i++) {
        for (unsigned int k = 0; k < scaling->count; k++) {
            struct summary summary;

            if (scaling->curves[k].measure(bench, scaling->context, sizes->value[i], number,
                                           &summary))
                return BENCH_FAILED;
            bench_point(bench, i * scaling->count + k, number, &summary);
            if (!i && !k)
                refine_add(refinement, number, summary.median);
        }
    }
    return BENCH_OK;
}

/* Only rank 0 knows the curve. */
static int agree_on_next(struct bench *bench, const struct refinement *refinement, uint64_t *next)
{
    uint64_t mine = bench->rank ? 0 : refine_next(refinement), all[CONTROL_RANKS_MAX];

    if (bench_exchange(bench, &mine, sizeof(mine), all))
        return BENCH_FAILED;
    *next = all[0];
    return BENCH_OK;
}

static int refine(struct bench *bench, const struct scaling *scaling,
                  const struct number_list *sizes, struct refinement *refinement)
{
    for (unsigned int i = 0; i < REFINE_POINTS; i++) {
        uint64_t next;

        if (agree_on_next(bench, refinement, &next))
            return BENCH_FAILED;
        if (!next)
            break;
        if (measure_row(bench, scaling, sizes, next, refinement))
            return BENCH_FAILED;
    }
    return BENCH_OK;
}

int scaling_run(struct bench *bench, const struct scaling *scaling)
{
    static const struct number_list no_size = { .count = 1 };
    const struct number_list *sizes = scaling->sizes ? scaling->sizes : &no_size;
    struct refinement refinement = { .closeness = bench->settings->refine };
    struct number_list numbers;

    if (sizes->count * scaling->count > CURVES_MAX)
        return bench_fail(bench, "%u sizes make more than %d curves", sizes->count, CURVES_MAX);
    if (keep_up_to(bench, scaling->numbers, scaling->limit, scaling->limiter, &numbers))
        return BENCH_FAILED;
    open_panel(bench, scaling, sizes);
    for (unsigned int i = 0; i < numbers.count; i++) {
        if (measure_row(bench, scaling, sizes, numbers.value[i], &refinement))
            return BENCH_FAILED;
    }
    return refinement.closeness ? refine(bench, scaling, sizes, &refinement) : BENCH_OK;
}

int scaling_quantity(struct bench *bench, struct scaling scaling, const char *quantity,
                     int (*measure)(struct bench *bench, void *context, size_t size,
                                    unsigned int number, struct summary *out))
{
    struct scaling_curve curve = { .name = quantity, .measure = measure };

    scaling.quantity = quantity;
    scaling.count = 1;
    scaling.curves = &curve;
    return scaling_run(bench, &scaling);
}

int scaling_by_qps(struct bench *bench, const char *quantity, const struct scaling_curve *curve)
{
    return scaling_run(bench, &(struct scaling){ .quantity = quantity,
                                                 .unit = "us",
                                                 .better = BETTER_LOWER,
                                                 .axis = "QPs",
                                                 .numbers = &bench->settings->qps,
                                                 .limit = scaling_qp_limit(bench, 0),
                                                 .limiter = "queue pairs",
                                                 .sizes = &bench->settings->sizes,
                                                 .count = 1,
                                                 .curves = curve });
}

struct round {
    struct flow flow;
    unsigned int every;
};

static int run_round(void *context, uint64_t warmup, struct histogram *samples)
{
    struct round *round = context;
    uint64_t least = round->every > 1 ? 1 : round->flow.slot_count;
    struct pingpong_plan plan = { .iterations = round->flow.bench->settings->iterations,
                                  .warmup = warmup,
                                  .every = round->every };

    if (plan.warmup < least)
        plan.warmup = least;
    if (plan.iterations < least)
        plan.iterations = least;
    return pingpong_run(&round->flow, &plan, samples);
}

int scaling_latency(struct bench *bench, const struct flow_spec *spec, unsigned int every,
                    struct summary *out)
{
    struct round round = { .every = every };
    int status;

    if (flow_open(bench, spec, &round.flow))
        return BENCH_FAILED;
    status = repeat_samples(bench, run_round, &round, pingpong_scale(spec->operation), out);
    flow_close(&round.flow);
    return status;
}

struct description {
    void (*describe)(struct flow_spec *spec, unsigned int number);
};

static void describe_flow(struct bench *bench, const struct description *description, size_t size,
                          unsigned int number, struct flow_spec *out)
{
    flow_defaults(bench, 1 - bench->rank, out);
    out->size = size;
    description->describe(out, number);
}

static int measure_latency(struct bench *bench, void *context, size_t size, unsigned int number,
                           struct summary *out)
{
    struct flow_spec spec;

    describe_flow(bench, context, size, number, &spec);
    return scaling_latency(bench, &spec, 1, out);
}

static int measure_bandwidth(struct bench *bench, void *context, size_t size, unsigned int number,
                             struct summary *out)
{
    struct stream_plan plan = { .style = WINDOW_REFILL,
                                .window = bench->settings->window,
                                .messages = stream_messages(bench, size) };
    struct flow_spec spec;

    if (plan.messages < (uint64_t)USES_LEAST * number)
        plan.messages = (uint64_t)USES_LEAST * number;
    describe_flow(bench, context, size, number, &spec);
    return stream_measure(bench, &spec, &plan, out);
}

int scaling_of_flow(struct bench *bench, struct scaling scaling,
                    void (*describe)(struct flow_spec *spec, unsigned int number))
{
    struct description description = { describe };

    scaling.sizes = &bench->settings->sizes;
    scaling.context = &description;
    scaling.unit = "us";
    scaling.better = BETTER_LOWER;
    if (scaling_quantity(bench, scaling, "latency", measure_latency))
        return BENCH_FAILED;
    scaling.unit = "MB/s";
    scaling.better = BETTER_HIGHER;
    return scaling_quantity(bench, scaling, "bandwidth", measure_bandwidth);
}

static int peer_in_star(const struct bench *bench, int other)
{
    if (!bench->rank)
        return other;
    return bench->rank == other ? 0 : -1;
}

int star_open(struct bench *bench, const struct flow_spec *spec, int first, unsigned int count,
              struct star *out)
{
    struct flow_spec one = *spec;

    *out = (struct star){ .first = first, .flows = calloc(count + 1, sizeof(*out->flows)) };
    if (!out->flows)
        return bench_fail(bench, "out of memory");
    for (; out->count < count; out->count++) {
        one.peer = peer_in_star(bench, first + out->count);
        if (flow_open(bench, &one, &out->flows[out->count])) {
            star_close(out);
            return BENCH_FAILED;
        }
    }
    return BENCH_OK;
}

void star_close(struct star *star)
{
    for (unsigned int i = 0; i < star->count; i++)
        flow_close(&star->flows[i]);
    free(star->flows);
    *star = (struct star){ 0 };
}

struct flow *star_flow(const struct bench *bench, const struct star *star)
{
    int index = bench->rank - star->first;

    return index >= 0 && index < (int)star->count ? &star->flows[index] : NULL;
}
