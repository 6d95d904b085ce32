/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads that share a queue pair and its completion queue, and threads with one each. Whoever polls
 * takes the completions of all; a work request carries the number of its thread. */
#include "runs.h"
#include "bench/measure/count_sweep.h"
#include "bench/measure/crew.h"
#include "bench/measure/flow.h"
#include "bench/measure/sampling.h"
#include "bench/measure/sweep.h"
#include "util/vtime.h"

#include <stdlib.h>
#include <unistd.h>

#define POLLED 16

enum { CURVE_OWN, CURVE_SHARED, CURVES };

struct sharing {
    struct bench *bench;
    unsigned int threads;
    unsigned int flow_count; /* one, or one for each thread */
    struct flow *flows;
    uint64_t *done; /* writes of each thread that have completed */
};

static int post(struct flow *flow, unsigned int number)
{
    struct ibv_send_wr write = flow_slot(flow, 0)->send, *bad;
    int error;

    write.wr_id = number;
    write.send_flags |= IBV_SEND_SIGNALED;
    error = ibv_post_send(flow->endpoints[0].qp, &write, &bad);
    return error ? flow_post_failed(flow, "ibv_post_send", error) : BENCH_OK;
}

static int take(struct sharing *sharing, struct flow *flow, struct bench_idle *idle)
{
    struct ibv_wc completions[POLLED];
    int count = completions_poll(&flow->sends, completions, POLLED);

    for (int i = 0; i < count; i++)
        __atomic_fetch_add(&sharing->done[completions[i].wr_id], 1, __ATOMIC_RELAXED);
    if (count > 0)
        *idle = (struct bench_idle){ 0 };
    /* In virtual time a thread that has polled an empty CQ sleeps, and must look at 'done' again. */
    if (count > 0 && vtime.on)
        vtime.memory_written(getpid());
    return count < 0 || (!count && bench_idle_expired(sharing->bench, idle)) ? BENCH_FAILED
                                                                           : BENCH_OK;
}

/* A thread of rank 0 keeps its window full; the peer's adapter does its work alone. */
static int write_all(void *context, unsigned int number)
{
    struct sharing *sharing = context;
    const struct settings *settings = sharing->bench->settings;
    struct flow *flow = &sharing->flows[number % sharing->flow_count];
    struct bench_idle idle = { 0 };
    uint64_t posted = 0, done = 0;

    if (sharing->bench->rank)
        return BENCH_OK;
    while (done < settings->iterations) {
        for (; posted < settings->iterations && posted - done < settings->window; posted++) {
            if (post(flow, number))
                return BENCH_FAILED;
        }
        if (take(sharing, flow, &idle))
            return BENCH_FAILED;
        done = __atomic_load_n(&sharing->done[number], __ATOMIC_RELAXED);
    }
    return BENCH_OK;
}

static int run_once(void *context, double *rate)
{
    struct sharing *sharing = context;
    uint64_t ticks;

    for (unsigned int i = 0; i < sharing->threads; i++)
        sharing->done[i] = 0;
    if (crew_run(sharing->bench, sharing->threads, write_all, sharing, &ticks))
        return BENCH_FAILED;
    *rate = sharing->threads * sharing->bench->settings->iterations / (clock_ns(ticks) / 1e3);
    return BENCH_OK;
}

static int measure(struct bench *bench, bool shared, size_t size, unsigned int threads,
                   struct summary *out)
{
    struct sharing sharing = { .bench = bench,
                               .threads = threads,
                               .flows = calloc(threads, sizeof(*sharing.flows)),
                               .done = calloc(threads, sizeof(*sharing.done)) };
    unsigned int wanted = shared ? 1 : threads;
    struct flow_spec spec;
    double warm_up;
    int status = BENCH_FAILED;

    flow_defaults(bench, 1 - bench->rank, &spec);
    spec.operation = OPERATION_WRITE;
    spec.wait = spec.send_wait = WAIT_POLL;
    spec.size = size;
    spec.signal = 1;
    spec.depth = bench->settings->window * (shared ? threads : 1);
    if (!sharing.flows || !sharing.done)
        bench_fail(bench, "out of memory");
    else
        while (sharing.flow_count < wanted &&
               !flow_open(bench, &spec, &sharing.flows[sharing.flow_count]))
            sharing.flow_count++;
    if (sharing.flow_count == wanted && !run_once(&sharing, &warm_up))
        status = sampling_runs(bench, run_once, &sharing, out);
    while (sharing.flow_count)
        flow_close(&sharing.flows[--sharing.flow_count]);
    free(sharing.flows);
    free(sharing.done);
    return status;
}

int shared_qp_run(struct bench *bench)
{
    static const char *const names[CURVES] = { "own QP", "shared QP" };
    size_t size = bench->settings->sizes.value[0];
    struct number_list threads;
    const char *refusal =
        flow_operation_refusal(bench, OPERATION_WRITE, bench->settings->transport);
    int status = refusal ? bench_skip(bench, "%s", refusal)
                         : sweep_keep_up_to(bench, &bench->settings->threads,
                                            count_sweep_qp_limit(bench, 2), "queue pairs",
                                            &threads);

    if (status != BENCH_OK)
        return status;
    bench_panel(bench, &(struct panel_spec){ .quantity = "rate",
                                             .unit = "M/s",
                                             .axis = "threads",
                                             .axis_unit = "",
                                             .better = BETTER_HIGHER,
                                             .count = CURVES,
                                             .names = names });
    for (unsigned int i = 0; i < threads.count; i++) {
        for (int curve = 0; curve < CURVES; curve++) {
            struct summary rate;

            if (measure(bench, curve == CURVE_SHARED, size, threads.value[i], &rate))
                return BENCH_FAILED;
            bench_point(bench, curve, threads.value[i], &rate);
        }
    }
    return BENCH_OK;
}
