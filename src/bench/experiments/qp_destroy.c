/* What it costs to destroy a queue pair, connected or not. */
#include "queue_pairs.h"

static int run(struct bench *bench)
{
    static const struct cycle_span unconnected = { "unconnected", QUEUE_PAIR_UNCONNECTED_DESTROY,
                                                   QUEUE_PAIR_UNCONNECTED_DESTROY };
    static const struct cycle_span connected = { "connected", QUEUE_PAIR_DESTROY,
                                                 QUEUE_PAIR_DESTROY };
    const struct life lives[] = {
        { .connected = false, .spans = &unconnected, .span_count = 1 },
        { .connected = true, .spans = &connected, .span_count = 1 },
    };

    return queue_pair_lives(bench, lives, 2);
}

const struct experiment experiment_qp_destroy = {
    .name = "qp-destroy",
    .group = "control",
    .title = "How long does it take to destroy a queue pair, connected or not?",
    .source = "MIBA section 5.1, table 1 and figure 4",
    .options = "--depths 16..4K --iterations 200 --warmup 10",
    .quick = "--depths 16,256,4K --iterations 50",
    .ranks = 2,
    .run = run,
};
