/* SPDX-License-Identifier: BSD-2-Clause */
/* How much processor time can be spent on computation before the bandwidth falls. */
#include "runs.h"
#include "bench/measure/cpu_work.h"
#include "bench/measure/sweep.h"

#include <math.h>

#define BASE_RUNS  5
#define SEARCH_MAX 10
#define KEPT       0.95 /* share of the peak that counts as undisturbed */

struct load {
    struct flow flow;
    struct stream_plan plan;
    uint64_t ns; /* of computation after each posting of messages */
    /* of the last run, in ns */
    uint64_t times;
    double computing;
    double total;
    /* of rank 0 */
    double idle;      /* ns from one posting to the next, without computation */
    double low, high; /* bounds of the search for ns */
};

struct step {
    uint64_t ns;
    uint64_t last;
};

static void compute(void *context)
{
    struct load *load = context;
    uint64_t start = clock_ticks();

    if (load->ns)
        cpu_work_compute(load->ns);
    load->computing += clock_ns(clock_ticks() - start);
    load->times++;
}

static int run_once(struct load *load)
{
    uint64_t ticks, messages;

    load->computing = 0;
    load->times = 0;
    if (stream_run(&load->flow, &load->plan, &ticks, &messages))
        return BENCH_FAILED;
    load->total = clock_ns(ticks);
    return BENCH_OK;
}

/* The best of several runs: disturbances only make a run longer. */
static int measure_base(struct load *load)
{
    load->ns = 0;
    load->idle = INFINITY;
    for (unsigned int i = 0; i < BASE_RUNS; i++) {
        if (run_once(load))
            return BENCH_FAILED;
        load->idle = fmin(load->idle, load->total / load->times);
    }
    return BENCH_OK;
}

/* Tries the upper bound first, then the lower one, then values between them. */
static struct step next_step(struct load *load, double share, unsigned int tries)
{
    double reached = load->computing / load->total, tolerance = fmin(0.01, (1 - share) / 4);
    struct step step = { .ns = load->ns, .last = true };

    if (fabs(reached - share) < tolerance || tries == SEARCH_MAX)
        return step;
    /* A share beyond the bounds is due to a disturbance. */
    if (reached < share ? load->ns >= load->high : load->ns <= load->low)
        return step;
    if (reached < share)
        load->low = load->ns;
    else
        load->high = load->ns;
    step.ns = tries ? sqrt(load->low * load->high) : load->low;
    step.last = false;
    return step;
}

/* Finds the computation that takes 'share' of the time; rank 0 decides, and *reached is the share
 * that it reached. If the adapter works by itself, computation fills idle time and the total does
 * not change: this is the lower bound. If the processor does the work, computation adds to the
 * total: this is the upper bound. */
static int find_computation(struct load *load, double share, double *reached)
{
    struct bench *bench = load->flow.bench;
    struct step step, all[CONTROL_RANKS_MAX];

    load->low = floor(share * load->idle);
    load->high = floor(share / (1 - share) * load->idle);
    step = (struct step){ .ns = load->high };
    for (unsigned int tries = 0;; tries++) {
        if (bench_exchange(bench, &step, sizeof(step), all))
            return BENCH_FAILED;
        load->ns = all[0].ns;
        if (all[0].last)
            return BENCH_OK;
        if (run_once(load))
            return BENCH_FAILED;
        *reached = load->computing / load->total;
        step = next_step(load, share, tries);
    }
}

/* Notes from which share of computation on the bandwidth stays below the peak. */
static void note_fall(struct bench *bench, const double *shares, const double *bandwidth,
                      unsigned int count, double error)
{
    unsigned int fall = count;
    double peak = 0;

    for (unsigned int i = 0; i < count; i++)
        peak = fmax(peak, bandwidth[i]);
    while (fall && bandwidth[fall - 1] < KEPT * peak)
        fall--;
    if (fall == count)
        bench_note(bench, "falls", "not below %.0f%% of the peak up to %g%% computation",
                   100 * KEPT, shares[count - 1]);
    else
        bench_note(bench, "falls", "below %.0f%% of the peak (%.0f MB/s) at %g%% computation",
                   100 * KEPT, peak, shares[fall]);
    bench_note(bench, "shares", "met within %.1f points", 100 * error);
}

static int measure(struct load *load)
{
    struct bench *bench = load->flow.bench;
    const struct number_list *work = &bench->settings->work;
    double shares[NUMBERS_MAX], bandwidth[NUMBERS_MAX], error = 0;
    unsigned int count = 0;

    if (measure_base(load))
        return BENCH_FAILED;
    for (unsigned int i = 0; i < work->count; i++) {
        double share = work->value[i] / 100.0, reached = 0;
        struct summary summary;

        if (work->value[i] == 100) {
            bench_note(bench, "100%", "is left out: it leaves no time to communicate");
            continue;
        }
        load->ns = 0;
        if (share > 0 && find_computation(load, share, &reached))
            return BENCH_FAILED;
        if (stream_repeat(&load->flow, &load->plan, 2 * load->flow.spec.size / 1e6, &summary))
            return BENCH_FAILED;
        bench_point(bench, 0, work->value[i], &summary);
        error = fmax(error, fabs(reached - share));
        shares[count] = work->value[i];
        bandwidth[count++] = summary.median;
    }
    if (!bench->rank && count)
        note_fall(bench, shares, bandwidth, count, error);
    return BENCH_OK;
}

int cpu_util_run(struct bench *bench)
{
    static const char *const names[] = { "both ways" };
    struct flow_spec spec;
    struct load load = { 0 };
    int status;

    flow_defaults(bench, 1 - bench->rank, &spec);
    spec.operation = sweep_operation(bench);
    spec.size = bench->settings->sizes.value[0];
    load.plan = sweep_plan(bench, &spec);
    load.plan.both_ways = true;
    load.plan.work = compute;
    load.plan.work_context = &load;
    bench_panel(bench, &(struct panel_spec){ .quantity = "bandwidth",
                                             .unit = "MB/s",
                                             .axis = "computation",
                                             .axis_unit = "%",
                                             .better = BETTER_HIGHER,
                                             .count = 1,
                                             .names = names });
    spec.depth = stream_depth(&spec, load.plan.window);
    if (flow_open(bench, &spec, &load.flow))
        return BENCH_FAILED;
    status = measure(&load);
    flow_close(&load.flow);
    return status;
}
