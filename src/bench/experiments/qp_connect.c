/* What it costs to connect a queue pair: the three changes of state from RESET to ready to send. */
#include "queue_pairs.h"

static int run(struct bench *bench)
{
    static const struct cycle_span spans[] = {
        { "connect", QUEUE_PAIR_TO_INIT, QUEUE_PAIR_TO_RTS },
        { "to INIT", QUEUE_PAIR_TO_INIT, QUEUE_PAIR_TO_INIT },
        { "to RTR", QUEUE_PAIR_TO_RTR, QUEUE_PAIR_TO_RTR },
        { "to RTS", QUEUE_PAIR_TO_RTS, QUEUE_PAIR_TO_RTS },
    };

    return queue_pair_lives(
        bench, &(struct life){ .connected = true, .spans = spans, .span_count = 4 }, 1);
}

const struct experiment experiment_qp_connect = {
    .name = "qp-connect",
    .group = "control",
    .title = "How long does it take to connect a queue pair, by queue depth?",
    .source = "MIBA section 5.1, table 1",
    .options = "--depths 16..4K --iterations 200 --warmup 10",
    .quick = "--depths 16,256,4K --iterations 50",
    .ranks = 2,
    .run = run,
};
