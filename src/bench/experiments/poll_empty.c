/* What it costs the caller to look for completions in vain. */
#include "cycle.h"
#include "bench/completion.h"

/* Reading the clock costs as much as a poll: so many make a sample. */
#define POLLS 16

struct empty_queue {
    uint64_t batch;
    struct completions completions;
    struct ibv_wc found[BATCH_MAX];
};

static int poll_in_vain(struct bench *bench, void *object)
{
    struct empty_queue *queue = object;

    for (unsigned int i = 0; i < POLLS; i++) {
        int count = ibv_poll_cq(queue->completions.cq, queue->batch, queue->found);

        if (count)
            return bench_fail(bench, "ibv_poll_cq of an empty queue returned %d", count);
    }
    return BENCH_OK;
}

static int run(struct bench *bench)
{
    static const cycle_step steps[] = { poll_in_vain, NULL };
    static const struct cycle_span span = { "empty", 0, 0 };
    struct empty_queue queue;
    struct cycle cycle = { .steps = steps, .spans = &span, .span_count = 1, .object = &queue };
    struct cycle_sweep sweep = { .axis = "batch",
                                 .axis_unit = "",
                                 .values = &bench->settings->batches,
                                 .limit = UINT64_MAX,
                                 .value = &queue.batch,
                                 .calls = POLLS,
                                 .nanoseconds = true };
    int status;

    if (completions_open(bench, bench->settings->depth, WAIT_POLL, &queue.completions))
        return BENCH_FAILED;
    status = cycle_measure(bench, &sweep, &cycle, 1);
    completions_close(&queue.completions);
    return status;
}

const struct experiment experiment_poll_empty = {
    .name = "poll-empty",
    .group = "control",
    .title = "How long does a poll take that finds nothing?",
    .source = "MIBA section 5.1, table 1",
    .options = "--batches 1..16 --iterations 10000",
    .quick = "--batches 1,16 --iterations 1000",
    .ranks = 1,
    .run = run,
};
