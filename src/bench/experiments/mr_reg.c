/* What it costs to register memory. */
#include "registration.h"

static int run(struct bench *bench)
{
    static const struct cycle_span used = { "register", REGION_REGISTER, REGION_REGISTER };
    static const struct cycle_span fresh = { "untouched", REGION_REGISTER, REGION_REGISTER };

    return region_lives(bench, &used, &fresh);
}

const struct experiment experiment_mr_reg = {
    .name = "mr-reg",
    .group = "control",
    .title = "How long does it take to register memory, touched before or not?",
    .source = "MIBA section 5.1, figure 2",
    .options = "--sizes 4K..64M --iterations 500 --warmup 10",
    .quick = "--sizes 4K,256K,16M --iterations 50",
    .ranks = 1,
    .run = run,
};
