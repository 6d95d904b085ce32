/* SPDX-License-Identifier: BSD-2-Clause */
#include "pingpong.h"
#include "sampling.h"

#include <string.h>

#define RECEIVES_AHEAD 16

double pingpong_scale(enum operation operation)
{
    return bench_clock.ns_per_tick / 1000 / (operation >= OPERATION_READ ? 1 : 2);
}

/* The last byte that the peer polls for; never 0, to which the peer resets it. */
static uint8_t mark_of(uint64_t message)
{
    return message % 255 + 1;
}

static int wait_for_memory(struct flow *flow, uint64_t message)
{
    volatile uint8_t *last = flow_slot(flow, message)->in_last;
    uint8_t mark = mark_of(message);
    struct bench_idle idle = { 0 };

    while (*last != mark) {
        if (vtime.on)
            vtime.spin(vtime.changes(), UINT64_MAX);
        if (bench_idle_expired(flow->bench, &idle))
            return BENCH_FAILED;
    }
    /* The payload was written before its last byte. */
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    *last = 0;
    return BENCH_OK;
}

/* A plain write can block only for its own completion. */
static bool sleeps_for_write(const struct flow *flow)
{
    return flow->spec.operation == OPERATION_WRITE && flow->spec.send_wait == WAIT_BLOCK;
}

static inline int send_next(struct flow *flow, bool verify)
{
    if (verify)
        flow_fill(flow, flow->sent);
    if (flow->spec.operation == OPERATION_WRITE)
        *flow_slot(flow, flow->sent)->out_last = mark_of(flow->sent);
    if (flow_wait_for_capacity(flow) || flow_send(flow))
        return BENCH_FAILED;
    return sleeps_for_write(flow) ? flow_reap(flow, true) : BENCH_OK;
}

static inline int receive_next(struct flow *flow, bool verify)
{
    struct ibv_wc wc;

    if (flow->spec.operation == OPERATION_WRITE) {
        if (wait_for_memory(flow, flow->received))
            return BENCH_FAILED;
    } else if (completions_wait(&flow->receives, &wc, 1) < 0) {
        return BENCH_FAILED;
    }
    if (verify && flow_check(flow, flow->received))
        return BENCH_FAILED;
    flow->received++;
    return operation_uses_receives(flow->spec.operation) ? flow_post_receive(flow) : BENCH_OK;
}

/* A read or an atomic is its own answer. */
static inline int request_next(struct flow *flow, bool verify)
{
    if (flow_send(flow) || flow_reap(flow, true))
        return BENCH_FAILED;
    return verify && flow->spec.operation == OPERATION_READ ? flow_check(flow, 0) : BENCH_OK;
}

static inline int round_trip(struct flow *flow, bool verify)
{
    if (flow->spec.operation >= OPERATION_READ)
        return request_next(flow, verify);
    return send_next(flow, verify) || receive_next(flow, verify) ? BENCH_FAILED : BENCH_OK;
}

/* Polls leftover completions between two round trips: otherwise they would all be polled in one,
 * possibly the timed one. */
static int reap_untimed(struct flow *flow, uint64_t *now)
{
    if (flow_reap(flow, false))
        return BENCH_FAILED;
    *now = clock_ticks();
    return BENCH_OK;
}

static int initiate(struct flow *flow, const struct pingpong_plan *plan, struct histogram *samples)
{
    unsigned int every = plan->every ? plan->every : 1;
    uint64_t total = (plan->warmup + plan->iterations) * every;
    bool verify = flow->bench->settings->verify;
    uint64_t start, end;

    for (uint64_t i = 0; i < plan->warmup * every; i++) {
        if (round_trip(flow, verify) || (every > 1 && reap_untimed(flow, &end)))
            return BENCH_FAILED;
    }
    start = clock_ticks();
    for (uint64_t i = plan->warmup * every; i < total; i++) {
        if (round_trip(flow, verify))
            return BENCH_FAILED;
        end = clock_ticks();
        if (every == 1 || i % every == 0)
            histogram_add(samples, end - start);
        if (every > 1 && reap_untimed(flow, &end))
            return BENCH_FAILED;
        start = end;
    }
    return BENCH_OK;
}

static int answer(struct flow *flow, const struct pingpong_plan *plan)
{
    uint64_t total = (plan->warmup + plan->iterations) * (plan->every ? plan->every : 1);
    bool verify = flow->bench->settings->verify;
    uint64_t now;

    for (uint64_t i = 0; i < total; i++) {
        if (receive_next(flow, verify) || send_next(flow, verify))
            return BENCH_FAILED;
        if (plan->every > 1 && reap_untimed(flow, &now))
            return BENCH_FAILED;
    }
    return BENCH_OK;
}

/* Reads are verified against a pattern in the memory that they read. */
static void fill_target(struct flow *flow)
{
    uint8_t *bytes = flow->in.address;

    if (flow->spec.operation == OPERATION_READ && flow->bench->settings->verify) {
        flow_fill(flow, 0);
        memcpy(bytes, flow->out.address, flow->in.length);
        memset(flow->out.address, 0, flow->out.length);
    }
}

int pingpong_run(struct flow *flow, const struct pingpong_plan *plan, struct histogram *samples)
{
    uint64_t ahead = flow->slot_count > RECEIVES_AHEAD ? flow->slot_count : RECEIVES_AHEAD;

    if (ahead > flow->receive_capacity)
        ahead = flow->receive_capacity;
    fill_target(flow);
    if ((flow->spec.peer >= 0 && operation_uses_receives(flow->spec.operation) &&
         flow_post_receives(flow, ahead)) ||
        bench_barrier(flow->bench))
        return BENCH_FAILED;
    if (!flow->bench->rank) {
        if (initiate(flow, plan, samples))
            return BENCH_FAILED;
    } else if (flow->spec.peer == 0 && flow->spec.operation < OPERATION_READ &&
               answer(flow, plan)) {
        return BENCH_FAILED;
    }
    if (flow_settle(flow) ||
        (!flow->bench->rank && plan->after && plan->after(plan->after_context)))
        return BENCH_FAILED;
    return bench_barrier(flow->bench);
}

static int run_batch(void *context, uint64_t warmup, struct histogram *samples)
{
    struct flow *flow = context;
    struct pingpong_plan plan = { .iterations = flow->bench->settings->iterations,
                                  .warmup = warmup };

    return pingpong_run(flow, &plan, samples);
}

int pingpong_measure(struct bench *bench, const struct flow_spec *spec, struct summary *out)
{
    struct flow_spec alone = *spec;
    struct flow flow;
    int status;

    /* Each read or atomic waits for its own completion. */
    if (spec->operation >= OPERATION_READ)
        alone.signal = 1;
    if (flow_open(bench, &alone, &flow))
        return BENCH_FAILED;
    status = sampling_iterations(bench, run_batch, &flow, pingpong_scale(spec->operation), out);
    flow_close(&flow);
    return status;
}
