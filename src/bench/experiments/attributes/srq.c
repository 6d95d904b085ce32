/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs with receive queues of their own against one shared receive queue. */
#include "runs.h"
#include "bench/measure/sweep.h"

static bool point(const struct sweep *sweep, unsigned int curve, uint64_t qps,
                  struct flow_spec *spec)
{
    const struct number_list *sizes = sweep->context;

    spec->size = sizes->value[0];
    spec->qps = qps;
    spec->shared_receives = curve;
    return true;
}

int srq_run(struct bench *bench)
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
