/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/completion.h"
#include "bench/interrupt.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Acknowledging takes a lock in many drivers: several events at a time. */
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

int completions_open_turn(struct bench *bench, uint32_t depth, unsigned int count,
                          struct completions *out)
{
    memset(out, 0, sizeof(*out));
    out->bench = bench;
    out->turn = calloc(count, sizeof(*out->turn));
    if (!out->turn)
        return bench_fail(bench, "out of memory");
    for (; out->turn_count < count; out->turn_count++) {
        struct ibv_cq *cq = ibv_create_cq(bench->adapter->context, depth, NULL, NULL, 0);

        if (!cq) {
            bench_fail(bench, "ibv_create_cq, number %u of %u entries: %s", out->turn_count + 1,
                       depth, strerror(errno));
            completions_close(out);
            return BENCH_FAILED;
        }
        out->turn[out->turn_count] = cq;
    }
    return BENCH_OK;
}

void completions_close(struct completions *completions)
{
    for (unsigned int i = 0; i < completions->turn_count; i++)
        ibv_destroy_cq(completions->turn[i]);
    free(completions->turn);
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

int completions_complain(struct completions *completions, const struct ibv_wc *wc, int count)
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

static struct ibv_cq *next_in_turn(struct completions *completions)
{
    if (completions->turn_next == completions->turn_count)
        completions->turn_next = 0;
    return completions->turn[completions->turn_next++];
}

int completions_take(struct completions *completions, struct ibv_wc *wc, int max)
{
    struct ibv_cq *cq = completions->turn ? next_in_turn(completions) : completions->cq;
    int count = ibv_poll_cq(cq, max, wc);

    for (int i = 0; i < count; i++) {
        if (__builtin_expect(wc[i].status != IBV_WC_SUCCESS, 0))
            return completions_complain(completions, wc, count);
    }
    return __builtin_expect(count < 0, 0) ? completions_complain(completions, wc, count) : count;
}

/* Sleeps until there is an event, after which the queue must be looked at before it is armed again.
 * A timer of the process interrupts it now and then, so that a lost peer is noticed. */
static int sleep_for_event(struct completions *completions, struct patience *patience)
{
    struct ibv_cq *cq;
    void *context;

    if (ibv_get_cq_event(completions->channel, &cq, &context)) {
        if (errno != EINTR && errno != EAGAIN)
            return bench_fail(completions->bench, "ibv_get_cq_event: %s", strerror(errno));
        if (!patience->since)
            patience->since = monotonic_ns();
        return bench_alive(completions->bench, patience->since) ? 0 : BENCH_FAILED;
    }
    completions->armed = false;
    if (++completions->unacknowledged == ACKNOWLEDGE_EVERY) {
        ibv_ack_cq_events(completions->cq, completions->unacknowledged);
        completions->unacknowledged = 0;
    }
    return 0;
}

static int arm_or_sleep(struct completions *completions, struct patience *patience)
{
    int error;

    if (completions->armed)
        return sleep_for_event(completions, patience);
    error = ibv_req_notify_cq(completions->cq, 0);
    if (error)
        return bench_fail(completions->bench, "ibv_req_notify_cq: %s", strerror(error));
    completions->armed = true;
    return 0;
}

int completions_wait(struct completions *completions, struct ibv_wc *wc, int max)
{
    struct patience patience = { 0 };
    uint64_t start = completions->mode == WAIT_SPIN_BLOCK ? clock_ticks() : 0;

    for (;;) {
        int count = completions_take(completions, wc, max);

        if (count)
            return count;
        if (!completions->channel) {
            if (patience_ends(completions->bench, &patience))
                return BENCH_FAILED;
        } else if (!start || clock_ticks() - start > completions->spin_ticks) {
            if (arm_or_sleep(completions, &patience))
                return BENCH_FAILED;
        }
    }
}
