/* What it costs the caller to take completions that are there. */
#include "rounds.h"

static int run(struct bench *bench)
{
    return rounds_by_batch(bench, TIMED_POLL);
}

const struct experiment experiment_poll_hit = {
    .name = "poll-hit",
    .group = "control",
    .title = "How long does a poll take that finds completions?",
    .source = "MIBA section 5.1, table 1",
    .options = "--sizes 8 --ops send --batches 1..16 --iterations 1000",
    .quick = "--batches 1,16 --iterations 200 --warmup 10",
    .ranks = 2,
    .run = run,
};
