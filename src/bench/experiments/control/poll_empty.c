/* SPDX-License-Identifier: BSD-2-Clause */
/* What it costs the caller to poll an empty completion queue. */
#include "runs.h"
#include "bench/completion.h"
#include "bench/measure/lifecycle.h"

/* Polls in a sample, because reading the clock costs as much as a poll. */
#define POLLS 16

struct empty_queue {
    uint64_t batch;
    struct completions completions;
    struct ibv_wc found[BATCH_MAX];
};

static int poll_empty(struct bench *bench, void *object)
{
    struct empty_queue *queue = object;

    for (unsigned int i = 0; i < POLLS; i++) {
        int count = ibv_poll_cq(queue->completions.cq, queue->batch, queue->found);

        if (count)
            return bench_fail(bench, "ibv_poll_cq of an empty queue returned %d", count);
    }
    return BENCH_OK;
}

int poll_empty_run(struct bench *bench)
{
    static const lifecycle_step steps[] = { poll_empty, NULL };
    static const struct lifecycle_span spans[] = { { "empty", 0, 0 }, { .name = NULL } };
    struct empty_queue queue;
    struct lifecycle lifecycle = { .steps = steps, .spans = spans, .object = &queue };
    struct lifecycle_sweep sweep = { .axis = "batch",
                                     .axis_unit = "",
                                     .values = &bench->settings->batches,
                                     .limit = UINT64_MAX,
                                     .value = &queue.batch,
                                     .calls = POLLS,
                                     .nanoseconds = true };
    int status;

    if (completions_open(bench, bench->settings->depth, WAIT_POLL, &queue.completions))
        return BENCH_FAILED;
    status = lifecycle_measure(bench, &sweep, &lifecycle, 1);
    completions_close(&queue.completions);
    return status;
}
