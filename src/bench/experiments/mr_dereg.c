/* What it costs to deregister memory. */
#include "registration.h"

static int run(struct bench *bench)
{
    static const struct cycle_span used = { "deregister", REGION_DEREGISTER, REGION_DEREGISTER };

    return region_lives(bench, &used, NULL);
}

const struct experiment experiment_mr_dereg = {
    .name = "mr-dereg",
    .group = "control",
    .title = "How long does it take to deregister memory?",
    .source = "MIBA section 5.1, figure 2",
    .options = "--sizes 4K..64M --iterations 500 --warmup 10",
    .quick = "--sizes 4K,256K,16M --iterations 50",
    .ranks = 1,
    .run = run,
};
