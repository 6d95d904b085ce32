/* What it costs to create a completion queue. */
#include "objects.h"

static int run(struct bench *bench)
{
    static const struct cycle_span span = { "create", OBJECT_MAKE, OBJECT_MAKE };

    return objects_measure(bench, &completion_queues, bench->adapter->limits.max_cqe, &span, 1);
}

const struct experiment experiment_cq_create = {
    .name = "cq-create",
    .group = "control",
    .title = "How long does it take to create a completion queue, by its size?",
    .source = "MIBA section 5.1, figure 3",
    .options = "--depths 16..64K --iterations 200 --warmup 10",
    .quick = "--depths 16,1K,64K --iterations 50",
    .ranks = 1,
    .run = run,
};
