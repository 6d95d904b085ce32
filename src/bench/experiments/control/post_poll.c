/* SPDX-License-Identifier: BSD-2-Clause */
#include "post_poll.h"
#include "bench/measure/flow.h"
#include "bench/measure/sampling.h"

#include <stdlib.h>

/* Calls in a sample, because reading the clock costs as much as a fast call. Fewer if the queues
 * are not deep enough. */
#define MAX_CALLS 16

struct rounds {
    struct bench *bench;
    enum post_poll_call timed;
    struct flow flow;
    unsigned int batch;
    unsigned int calls;
    struct ibv_send_wr *sends; /* the list that a call posts */
    struct ibv_recv_wr *receives;
    struct ibv_wc *completions; /* of a whole round */
    struct histogram *samples;  /* NULL while warming up */
};

static void take_sample(struct rounds *rounds, enum post_poll_call call, uint64_t start)
{
    uint64_t end = clock_ticks();

    if (!rounds->bench->rank && rounds->samples && call == rounds->timed)
        histogram_add(rounds->samples, end - start);
}

/* Waits for the completions of a round that have not been polled yet. */
static int take_rest(struct rounds *rounds, struct completions *completions, int taken)
{
    int total = rounds->calls * rounds->batch;

    while (taken < total) {
        int count = completions_wait(completions, rounds->completions, total - taken);

        if (count < 0)
            return BENCH_FAILED;
        taken += count;
    }
    return BENCH_OK;
}

static int post_sends(struct rounds *rounds)
{
    struct ibv_qp *qp = rounds->flow.endpoints[0].qp;
    uint64_t start = clock_ticks();
    struct ibv_send_wr *bad;

    for (unsigned int i = 0; i < rounds->calls; i++) {
        int error = ibv_post_send(qp, rounds->sends, &bad);

        if (error)
            return flow_post_failed(&rounds->flow, "ibv_post_send", error);
    }
    take_sample(rounds, CALL_POST_SEND, start);
    return take_rest(rounds, &rounds->flow.sends, 0);
}

static int post_receives(struct rounds *rounds)
{
    struct endpoint *endpoint = &rounds->flow.endpoints[0];
    uint64_t start = clock_ticks();

    for (unsigned int i = 0; i < rounds->calls; i++) {
        int error = endpoint_post_receive(endpoint, rounds->receives);

        if (error)
            return flow_post_failed(&rounds->flow, "ibv_post_recv", error);
    }
    take_sample(rounds, CALL_POST_RECEIVE, start);
    return BENCH_OK;
}

/* A sample is dropped if a call finds fewer completions than it asks for. */
static int poll_receives(struct rounds *rounds)
{
    struct completions *receives = &rounds->flow.receives;
    int total = rounds->calls * rounds->batch, taken = 0, count = 0;
    uint64_t start = clock_ticks();

    for (unsigned int i = 0; i < rounds->calls && count >= 0; i++) {
        count = ibv_poll_cq(receives->cq, rounds->batch, rounds->completions + taken);
        taken += count > 0 ? count : 0;
    }
    if (taken == total)
        take_sample(rounds, CALL_POLL, start);
    if (completions_fail(receives, rounds->completions, count < 0 ? count : taken) < 0)
        return BENCH_FAILED;
    return take_rest(rounds, receives, taken);
}

static int receive_round(struct rounds *rounds)
{
    bool receives = operation_uses_receives(rounds->flow.spec.operation);

    if ((receives && post_receives(rounds)) || bench_barrier(rounds->bench) ||
        bench_barrier(rounds->bench))
        return BENCH_FAILED;
    return receives ? poll_receives(rounds) : BENCH_OK;
}

/* When a send has completed, so has its receive at the other side. */
static int send_round(struct rounds *rounds)
{
    if (bench_barrier(rounds->bench) || post_sends(rounds))
        return BENCH_FAILED;
    return bench_barrier(rounds->bench);
}

static int run_rounds(struct rounds *rounds, uint64_t count, struct histogram *samples)
{
    bool sends = (rounds->timed == CALL_POST_SEND) == (rounds->bench->rank == 0);

    rounds->samples = samples;
    for (uint64_t i = 0; i < count; i++) {
        if (sends ? send_round(rounds) : receive_round(rounds))
            return BENCH_FAILED;
    }
    return BENCH_OK;
}

static int prepare(struct rounds *rounds)
{
    struct slot *slot = flow_slot(&rounds->flow, 0);
    unsigned int batch = rounds->batch;

    rounds->sends = calloc(batch, sizeof(*rounds->sends));
    rounds->receives = calloc(batch, sizeof(*rounds->receives));
    rounds->completions = calloc(rounds->calls * batch, sizeof(*rounds->completions));
    if (!rounds->sends || !rounds->receives || !rounds->completions)
        return bench_fail(rounds->bench, "out of memory");
    for (unsigned int i = 0; i < batch; i++) {
        rounds->sends[i] = slot->send;
        rounds->receives[i] = slot->receive;
        if (i + 1 < batch) {
            rounds->sends[i].next = &rounds->sends[i + 1];
            rounds->receives[i].next = &rounds->receives[i + 1];
        }
    }
    return BENCH_OK;
}

static int run_batch(void *context, uint64_t warmup, struct histogram *samples)
{
    struct rounds *rounds = context;

    if (run_rounds(rounds, warmup, NULL))
        return BENCH_FAILED;
    return run_rounds(rounds, rounds->bench->settings->iterations, samples);
}

static int measure(struct bench *bench, enum post_poll_call timed, enum operation operation,
                   size_t size, unsigned int batch, struct summary *out)
{
    struct rounds rounds = { .bench = bench, .timed = timed, .batch = batch };
    struct flow_spec spec;
    int status = BENCH_FAILED;

    flow_defaults(bench, 1 - bench->rank, &spec);
    spec.operation = operation;
    spec.size = size;
    spec.signal = 1;
    if (spec.depth < batch)
        spec.depth = batch;
    rounds.calls = spec.depth / batch < MAX_CALLS ? spec.depth / batch : MAX_CALLS;
    if (flow_open(bench, &spec, &rounds.flow))
        return BENCH_FAILED;
    if (!prepare(&rounds))
        status = sampling_iterations(bench, run_batch, &rounds,
                                     bench_clock.ns_per_tick / rounds.calls, out);
    if (!status && !bench->rank && !out->count)
        status = bench_fail(bench, "no round had all its completions when it was polled");
    flow_close(&rounds.flow);
    free(rounds.sends);
    free(rounds.receives);
    free(rounds.completions);
    return status;
}

struct curve {
    enum operation operation;
    char name[32];
};

static unsigned int choose_curves(struct bench *bench, enum post_poll_call timed, size_t size,
                                  struct curve *curves)
{
    unsigned int count = 0;

    for (int operation = 0; operation < OPERATION_COUNT; operation++) {
        struct curve *curve = &curves[count];
        bool atomic = operation_is_atomic(operation);
        char text[16];

        if (!(bench->settings->operations & (1u << operation)) || (atomic && size != 8) ||
            (timed != CALL_POST_SEND && !operation_uses_receives(operation)) ||
            flow_operation_refusal(bench, operation, bench->settings->transport))
            continue;
        curve->operation = operation;
        snprintf(curve->name, sizeof(curve->name), "%s %s", operation_names[operation],
                 option_number_text(size, text, sizeof(text)));
        count++;
    }
    return count;
}

static int measure_panel(struct bench *bench, enum post_poll_call timed, size_t size,
                         const struct curve *curves, unsigned int count)
{
    const struct number_list *batches = &bench->settings->batches;
    const char *names[OPERATION_COUNT];

    for (unsigned int i = 0; i < count; i++)
        names[i] = curves[i].name;
    bench_panel(bench, &(struct panel_spec){ .quantity = "time",
                                             .unit = "ns",
                                             .axis = "batch",
                                             .axis_unit = "",
                                             .better = BETTER_LOWER,
                                             .count = count,
                                             .names = names });
    for (unsigned int i = 0; i < batches->count; i++) {
        for (unsigned int k = 0; k < count; k++) {
            struct summary time;

            if (measure(bench, timed, curves[k].operation, size, batches->value[i], &time))
                return BENCH_FAILED;
            bench_point(bench, k, batches->value[i], &time);
        }
    }
    return BENCH_OK;
}

int post_poll_run(struct bench *bench)
{
    const struct post_poll_spec *spec = bench->experiment->spec;
    const struct number_list *sizes = &bench->settings->sizes;
    unsigned int panels = 0;

    for (unsigned int i = 0; i < sizes->count; i++) {
        struct curve curves[OPERATION_COUNT];
        unsigned int count = choose_curves(bench, spec->timed, sizes->value[i], curves);

        if (!count)
            continue;
        if (measure_panel(bench, spec->timed, sizes->value[i], curves, count))
            return BENCH_FAILED;
        panels++;
    }
    return panels ? BENCH_OK : bench_skip(bench, "none of the operations can be measured here");
}
