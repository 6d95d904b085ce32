/* What it costs the caller to post receives. */
#include "rounds.h"

static int run(struct bench *bench)
{
    return rounds_by_batch(bench, TIMED_POST_RECEIVE);
}

const struct experiment experiment_post_recv = {
    .name = "post-recv",
    .group = "control",
    .title = "How long does a call take that posts receives?",
    .source = "MIBA section 5.1, table 1",
    .options = "--sizes 8 --ops send --batches 1..16 --iterations 1000",
    .quick = "--batches 1,16 --iterations 200 --warmup 10",
    .ranks = 2,
    .run = run,
};
