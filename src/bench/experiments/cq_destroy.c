/* What it costs to destroy a completion queue. */
#include "objects.h"

static int run(struct bench *bench)
{
    static const struct cycle_span span = { "destroy", OBJECT_RELEASE, OBJECT_RELEASE };

    return objects_measure(bench, &completion_queues, bench->adapter->limits.max_cqe, &span, 1);
}

const struct experiment experiment_cq_destroy = {
    .name = "cq-destroy",
    .group = "control",
    .title = "How long does it take to destroy a completion queue, by its size?",
    .source = "MIBA section 5.1, figure 3",
    .options = "--depths 16..64K --iterations 200 --warmup 10",
    .quick = "--depths 16,1K,64K --iterations 50",
    .ranks = 1,
    .run = run,
};
