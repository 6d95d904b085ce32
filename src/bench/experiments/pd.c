/* What a protection domain costs. */
#include "objects.h"

#include <errno.h>
#include <string.h>

static void *allocate(struct bench *bench, uint64_t depth)
{
    struct ibv_pd *pd = ibv_alloc_pd(bench->adapter->context);

    if (!pd)
        bench_fail(bench, "ibv_alloc_pd: %s", strerror(errno));
    return pd;
}

static int deallocate(struct bench *bench, void *pd)
{
    int error = ibv_dealloc_pd(pd);

    return error ? bench_fail(bench, "ibv_dealloc_pd: %s", strerror(error)) : BENCH_OK;
}

static int run(struct bench *bench)
{
    static const struct object_kind domains = {
        .axis = "batch", .many = true, .make = allocate, .release = deallocate
    };
    static const struct cycle_span spans[] = { { "allocate", OBJECT_MAKE, OBJECT_MAKE },
                                               { "deallocate", OBJECT_RELEASE, OBJECT_RELEASE } };

    return objects_measure(bench, &domains, bench->adapter->limits.max_pd, spans, 2);
}

const struct experiment experiment_pd = {
    .name = "pd",
    .group = "control",
    .title = "How long does it take to allocate and to free a protection domain?",
    .source = "beyond the papers, by the method of MIBA section 5.1",
    .options = "--batches 1..16 --iterations 200 --warmup 10",
    .quick = "--batches 1,16 --iterations 50",
    .ranks = 1,
    .run = run,
};
