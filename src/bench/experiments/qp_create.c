/* What it costs to create a queue pair. */
#include "queue_pairs.h"

static int run(struct bench *bench)
{
    static const struct cycle_span span = { "create", QUEUE_PAIR_CREATE, QUEUE_PAIR_CREATE };

    return queue_pair_lives(bench, &(struct life){ .spans = &span, .span_count = 1 }, 1);
}

const struct experiment experiment_qp_create = {
    .name = "qp-create",
    .group = "control",
    .title = "How long does it take to create a queue pair, by queue depth?",
    .source = "MIBA section 5.1, figure 4",
    .options = "--depths 16..4K --iterations 200 --warmup 10",
    .quick = "--depths 16,256,4K --iterations 50",
    .ranks = 1,
    .run = run,
};
