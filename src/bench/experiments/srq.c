/* One receive queue for many queue pairs. */
#include "sweep.h"

static bool point(const struct sweep *sweep, unsigned int curve, uint64_t qps,
                  struct flow_spec *spec)
{
    const struct number_list *sizes = sweep->context;

    spec->size = sizes->value[0];
    spec->qps = qps;
    spec->shared_receives = curve;
    return true;
}

static int run(struct bench *bench)
{
    static const char *const names[] = { "own", "shared" };
    struct sweep sweep = { .axis = "QPs",
                           .axis_unit = "",
                           .values = &bench->settings->qps,
                           .curves = 2,
                           .names = names,
                           .point = point,
                           .context = &bench->settings->sizes };

    if (!bench->adapter->limits.max_srq)
        return bench_skip(bench, "the device has no shared receive queues");
    if (bench->settings->transport == TRANSPORT_XRC)
        return bench_skip(bench, "XRC has no receive queues but shared ones");
    return sweep_latency(bench, &sweep) ? BENCH_FAILED : sweep_rate(bench, &sweep);
}

const struct experiment experiment_srq = {
    .name = "srq",
    .group = "attributes",
    .title = "What does it cost to share one receive queue?",
    .source = "after MIBA section 5.2.3 and figures 7 and 8, with the receive queue shared",
    .options = "--sizes 8 --inline 64 --qps 1..64 --window 128 --depth 64 --iterations 10000",
    .quick = "--qps 1,8 --iterations 2000 --repetitions 3",
    .ranks = 2,
    .run = run,
};
