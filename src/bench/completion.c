/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/completion.h"
#include "bench/interrupt.h"
#include "util/vtime.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Acknowledging takes a lock in many drivers, so acknowledge several events at a time. */
#define ACKNOWLEDGE_EVERY 64

int completions_open(struct bench *bench, uint32_t depth, enum wait_mode mode,
                     struct completions *out)
{
    memset(out, 0, sizeof(*out));
    out->bench = bench;
    out->mode = mode;
    out->spin_ticks = bench->settings->spin * 1000 / bench_clock.ns_per_tick;
    if (mode == WAIT_BLOCK || mode == WAIT_SPIN_BLOCK) {
        out->channel = ibv_create_comp_channel(bench->adapter->context);
        if (!out->channel)
            return bench_fail(bench, "ibv_create_comp_channel: %s", strerror(errno));
        interrupt_tick(true);
    }
    out->cq = ibv_create_cq(bench->adapter->context, depth, NULL, out->channel, 0);
    if (!out->cq) {
        bench_fail(bench, "ibv_create_cq of %u entries: %s%s", depth, strerror(errno),
                   adapter_memory_hint(errno));
        completions_close(out);
        return BENCH_FAILED;
    }
    return BENCH_OK;
}

int completions_open_round_robin(struct bench *bench, uint32_t depth, unsigned int count,
                                 struct completions *out)
{
    memset(out, 0, sizeof(*out));
    out->bench = bench;
    out->cqs = calloc(count, sizeof(*out->cqs));
    if (!out->cqs)
        return bench_fail(bench, "out of memory");
    for (; out->cq_count < count; out->cq_count++) {
        struct ibv_cq *cq = ibv_create_cq(bench->adapter->context, depth, NULL, NULL, 0);

        if (!cq) {
            bench_fail(bench, "ibv_create_cq, number %u, %u entries: %s", out->cq_count + 1, depth,
                       strerror(errno));
            completions_close(out);
            return BENCH_FAILED;
        }
        out->cqs[out->cq_count] = cq;
    }
    return BENCH_OK;
}

void completions_close(struct completions *completions)
{
    for (unsigned int i = 0; i < completions->cq_count; i++)
        ibv_destroy_cq(completions->cqs[i]);
    free(completions->cqs);
    if (completions->cq) {
        ibv_ack_cq_events(completions->cq, completions->unacknowledged);
        ibv_destroy_cq(completions->cq);
    }
    if (completions->channel) {
        interrupt_tick(false);
        ibv_destroy_comp_channel(completions->channel);
    }
    memset(completions, 0, sizeof(*completions));
}

int completions_fail(struct completions *completions, const struct ibv_wc *wc, int count)
{
    if (count < 0)
        return bench_fail(completions->bench, "ibv_poll_cq: %s", strerror(-count));
    for (int i = 0; i < count; i++) {
        if (wc[i].status != IBV_WC_SUCCESS)
            return bench_fail(completions->bench,
                              "a work request (wr_id %llu) completed with error: %s",
                              (unsigned long long)wc[i].wr_id, ibv_wc_status_str(wc[i].status));
    }
    return count;
}

static struct ibv_cq *round_robin_cq(struct completions *completions)
{
    if (completions->next_cq == completions->cq_count)
        completions->next_cq = 0;
    return completions->cqs[completions->next_cq++];
}

int completions_poll(struct completions *completions, struct ibv_wc *wc, int max)
{
    struct ibv_cq *cq = completions->cqs ? round_robin_cq(completions) : completions->cq;
    int count = ibv_poll_cq(cq, max, wc);

    for (int i = 0; i < count; i++) {
        if (__builtin_expect(wc[i].status != IBV_WC_SUCCESS, 0))
            return completions_fail(completions, wc, count);
    }
    return __builtin_expect(count < 0, 0) ? completions_fail(completions, wc, count) : count;
}

/* Sleeps until there is an event. The caller must poll the queue before it arms it again. A timer
 * interrupts the sleep from time to time to detect a dead peer. */
static int sleep_for_event(struct completions *completions, struct bench_idle *idle)
{
    struct ibv_cq *cq;
    void *context;

    if (ibv_get_cq_event(completions->channel, &cq, &context)) {
        if (errno != EINTR && errno != EAGAIN)
            return bench_fail(completions->bench, "ibv_get_cq_event: %s", strerror(errno));
        if (!idle->since)
            idle->since = patience_now();
        return bench_alive(completions->bench, idle->since) ? 0 : BENCH_FAILED;
    }
    completions->armed = false;
    if (++completions->unacknowledged == ACKNOWLEDGE_EVERY) {
        ibv_ack_cq_events(completions->cq, completions->unacknowledged);
        completions->unacknowledged = 0;
    }
    return 0;
}

static int arm_or_sleep(struct completions *completions, struct bench_idle *idle)
{
    int error;

    if (completions->armed)
        return sleep_for_event(completions, idle);
    error = ibv_req_notify_cq(completions->cq, 0);
    if (error)
        return bench_fail(completions->bench, "ibv_req_notify_cq: %s", strerror(error));
    completions->armed = true;
    return 0;
}

static int wait_for(struct completions *completions, struct ibv_wc *wc, int max)
{
    struct bench_idle idle = { 0 };
    uint64_t start = completions->mode == WAIT_SPIN_BLOCK ? clock_ticks() : 0;

    for (;;) {
        int count = completions_poll(completions, wc, max);

        if (count)
            return count;
        if (!completions->channel) {
            if (bench_idle_expired(completions->bench, &idle))
                return BENCH_FAILED;
        } else if (!start || clock_ticks() - start > completions->spin_ticks) {
            if (arm_or_sleep(completions, &idle))
                return BENCH_FAILED;
        }
    }
}

int completions_wait(struct completions *completions, struct ibv_wc *wc, int max)
{
    int count;

    if (!vtime.on || completions->channel)
        return wait_for(completions, wc, max);
    vtime.polls_on(true);
    count = wait_for(completions, wc, max);
    vtime.polls_on(false);
    return count;
}
