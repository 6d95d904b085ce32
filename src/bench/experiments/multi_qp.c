/* Whether it matters how many connections a node has: queue pairs are used in turn. */
#include "scaling.h"

static void describe(struct flow_spec *spec, unsigned int qps)
{
    spec->qps = qps;
}

static int run(struct bench *bench)
{
    return scaling_of_flow(bench,
                           (struct scaling){ .axis = "QPs",
                                             .numbers = &bench->settings->qps,
                                             .limit = scaling_qp_limit(bench, 0),
                                             .limiter = "queue pairs" },
                           describe);
}

const struct experiment experiment_multi_qp = {
    .name = "multi-qp",
    .group = "scaling",
    .title = "Does it matter how many queue pairs are in use?",
    .source = "MIBA section 5.2.3, figures 7 and 8",
    .options = "--qps 1..1K --sizes 64 --depth 16 --iterations 4000",
    .quick = "--qps 1,16,128 --iterations 1000 --repetitions 3",
    .ranks = 2,
    .run = run,
};
