/* SPDX-License-Identifier: BSD-2-Clause */
/* Work requests posted in lists: a list rings the doorbell once. */
#include "runs.h"
#include "bench/measure/flow.h"
#include "bench/measure/sampling.h"

#include <stdlib.h>

#define POLLED 16

struct lists {
    struct bench *bench;
    struct flow flow;
    unsigned int length;
    unsigned int in_flight; /* lists */
    struct ibv_send_wr *first;
};

/* The last request of a list is signalled, and with it all others complete. */
static int prepare(struct lists *lists)
{
    struct slot *slot = flow_slot(&lists->flow, 0);

    lists->first = calloc(lists->length, sizeof(*lists->first));
    if (!lists->first)
        return bench_fail(lists->bench, "out of memory");
    for (unsigned int i = 0; i < lists->length; i++) {
        lists->first[i] = slot->send;
        lists->first[i].send_flags &= ~IBV_SEND_SIGNALED;
        lists->first[i].next = &lists->first[i + 1];
    }
    lists->first[lists->length - 1].next = NULL;
    lists->first[lists->length - 1].send_flags |= IBV_SEND_SIGNALED;
    return BENCH_OK;
}

static int post_and_wait(struct lists *lists, uint64_t count)
{
    struct ibv_qp *qp = lists->flow.endpoints[0].qp;
    struct ibv_wc completions[POLLED];
    struct ibv_send_wr *bad;
    uint64_t posted = 0, done = 0;

    while (done < count) {
        int taken;

        for (; posted < count && posted - done < lists->in_flight; posted++) {
            int error = ibv_post_send(qp, lists->first, &bad);

            if (error)
                return flow_post_failed(&lists->flow, "ibv_post_send", error);
        }
        taken = completions_wait(&lists->flow.sends, completions, POLLED);
        if (taken < 0)
            return BENCH_FAILED;
        done += taken;
    }
    return BENCH_OK;
}

/* The peer's adapter does its work alone. */
static int run_once(void *context, double *rate)
{
    struct lists *lists = context;
    struct bench *bench = lists->bench;
    uint64_t count = (bench->settings->iterations + lists->length - 1) / lists->length, start;

    if (bench_barrier(bench))
        return BENCH_FAILED;
    start = clock_ticks();
    if (!bench->rank && post_and_wait(lists, count))
        return BENCH_FAILED;
    *rate = count * lists->length / (clock_ns(clock_ticks() - start) / 1e3);
    return bench_barrier(bench);
}

static int measure(struct bench *bench, enum operation operation, unsigned int length,
                   struct summary *out)
{
    unsigned int window = bench->settings->window;
    struct lists lists = { .bench = bench,
                           .length = length,
                           .in_flight = window > length ? window / length : 1 };
    struct flow_spec spec;
    double warm_up;
    int status = BENCH_FAILED;

    flow_defaults(bench, 1 - bench->rank, &spec);
    spec.operation = operation;
    spec.size = bench->settings->sizes.value[0];
    spec.signal = 1;
    spec.depth = lists.in_flight * length;
    if (flow_open(bench, &spec, &lists.flow))
        return BENCH_FAILED;
    if (!prepare(&lists) && !run_once(&lists, &warm_up))
        status = sampling_runs(bench, run_once, &lists, out);
    flow_close(&lists.flow);
    free(lists.first);
    return status;
}

/* A receiver would have to post receives, which take longer than lists save. */
static unsigned int choose(struct bench *bench, enum operation *operations, const char **names)
{
    static const enum operation possible[] = { OPERATION_WRITE, OPERATION_READ };
    unsigned int count = 0;

    for (size_t i = 0; i < sizeof(possible) / sizeof(*possible); i++) {
        if (!flow_operation_chosen(bench, possible[i]))
            continue;
        operations[count] = possible[i];
        names[count++] = operation_names[possible[i]];
    }
    return count;
}

int post_list_run(struct bench *bench)
{
    const struct number_list *lengths = &bench->settings->batches;
    enum operation operations[OPERATION_COUNT];
    const char *names[OPERATION_COUNT];
    unsigned int count = choose(bench, operations, names);

    if (!count)
        return bench_skip(bench, "neither writes nor reads are possible, or chosen");
    bench_panel(bench, &(struct panel_spec){ .quantity = "rate",
                                             .unit = "M/s",
                                             .axis = "list",
                                             .axis_unit = "",
                                             .better = BETTER_HIGHER,
                                             .count = count,
                                             .names = names });
    for (unsigned int i = 0; i < lengths->count; i++) {
        for (unsigned int k = 0; k < count; k++) {
            struct summary rate;

            if (measure(bench, operations[k], lengths->value[i], &rate))
                return BENCH_FAILED;
            bench_point(bench, k, lengths->value[i], &rate);
        }
    }
    return BENCH_OK;
}
