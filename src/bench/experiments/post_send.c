/* What it costs the caller to post sends. */
#include "rounds.h"

static int run(struct bench *bench)
{
    return rounds_by_batch(bench, TIMED_POST_SEND);
}

const struct experiment experiment_post_send = {
    .name = "post-send",
    .group = "control",
    .title = "How long does a call take that posts sends?",
    .source = "MIBA section 5.1, table 1",
    .options = "--sizes 8 --ops send,write,read --batches 1..16 --iterations 1000",
    .quick = "--batches 1,16 --iterations 200 --warmup 10",
    .ranks = 2,
    .run = run,
};
