/* What a shared receive queue costs. */
#include "objects.h"

#include <errno.h>
#include <string.h>

static void *create(struct bench *bench, uint64_t depth)
{
    struct ibv_srq_init_attr attributes = { .attr = { .max_wr = depth, .max_sge = 1 } };
    struct ibv_srq *srq = ibv_create_srq(bench->adapter->pd, &attributes);

    if (!srq)
        bench_fail(bench, "ibv_create_srq of %llu receives: %s", (unsigned long long)depth,
                   strerror(errno));
    return srq;
}

static int destroy(struct bench *bench, void *srq)
{
    int error = ibv_destroy_srq(srq);

    return error ? bench_fail(bench, "ibv_destroy_srq: %s", strerror(error)) : BENCH_OK;
}

static int run(struct bench *bench)
{
    static const struct object_kind queues = { .axis = "depth",
                                               .make = create,
                                               .release = destroy };
    static const struct cycle_span spans[] = { { "create", OBJECT_MAKE, OBJECT_MAKE },
                                               { "destroy", OBJECT_RELEASE, OBJECT_RELEASE } };
    const struct ibv_device_attr *limits = &bench->adapter->limits;

    if (!limits->max_srq)
        return bench_skip(bench, "the device has no shared receive queues");
    return objects_measure(bench, &queues, limits->max_srq_wr, spans, 2);
}

const struct experiment experiment_srq_create = {
    .name = "srq-create",
    .group = "control",
    .title = "How long does it take to create and to destroy a shared receive queue?",
    .source = "beyond the papers, by the method of MIBA section 5.1",
    .options = "--depths 16..4K --iterations 200 --warmup 10",
    .quick = "--depths 16,256,4K --iterations 50",
    .ranks = 1,
    .run = run,
};
