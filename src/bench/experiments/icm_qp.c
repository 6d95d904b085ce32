/* What it costs when the adapter has to fetch the context of a queue pair: messages go round all of
 * them, and only the first one's are timed. */
#include "scaling.h"

static int measure(struct bench *bench, void *context, size_t size, unsigned int qps,
                   struct summary *out)
{
    struct flow_spec spec;

    flow_defaults(bench, 1 - bench->rank, &spec);
    spec.size = size;
    spec.qps = qps;
    return scaling_latency(bench, &spec, qps, out);
}

static int run(struct bench *bench)
{
    static const struct scaling_curve curve = { "first QP", measure };

    return scaling_by_qps(bench, "latency", &curve);
}

const struct experiment experiment_icm_qp = {
    .name = "icm-qp",
    .group = "scaling",
    .title = "What does it cost to come back to a queue pair after n - 1 others?",
    .source = "Mem/MemFree section 4.1, figure 3a",
    .options = "--qps 1..256 --sizes 8 --depth 16 --iterations 500 --warmup 10 --refine 4",
    .quick = "--qps 1,8,64,256 --iterations 100 --refine 0",
    .ranks = 2,
    .run = run,
};
