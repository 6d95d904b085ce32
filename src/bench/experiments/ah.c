/* What an address handle costs. */
#include "objects.h"
#include "bench/endpoint.h"

#include <errno.h>
#include <string.h>

/* The address is this port's own: nothing has to be found in the network. */
static void *create(struct bench *bench, uint64_t depth)
{
    const struct adapter *adapter = bench->adapter;
    struct endpoint self = { .port = adapter->port,
                             .sl = bench->settings->sl,
                             .peer = { .gid = adapter->gid, .lid = adapter->port_attributes.lid } };
    struct ibv_ah_attr path = endpoint_path(bench, &self);
    struct ibv_ah *ah = ibv_create_ah(adapter->pd, &path);

    if (!ah)
        bench_fail(bench, "ibv_create_ah: %s", strerror(errno));
    return ah;
}

static int destroy(struct bench *bench, void *ah)
{
    int error = ibv_destroy_ah(ah);

    return error ? bench_fail(bench, "ibv_destroy_ah: %s", strerror(error)) : BENCH_OK;
}

static int run(struct bench *bench)
{
    static const struct object_kind handles = {
        .axis = "batch", .many = true, .make = create, .release = destroy
    };
    static const struct cycle_span spans[] = { { "create", OBJECT_MAKE, OBJECT_MAKE },
                                               { "destroy", OBJECT_RELEASE, OBJECT_RELEASE } };
    int limit = bench->adapter->limits.max_ah;

    /* Some drivers name no limit. */
    return objects_measure(bench, &handles, limit > 0 ? limit : BATCH_MAX, spans, 2);
}

const struct experiment experiment_ah = {
    .name = "ah",
    .group = "control",
    .title = "How long does it take to create and to destroy an address handle?",
    .source = "beyond the papers, by the method of MIBA section 5.1",
    .options = "--batches 1..16 --iterations 200 --warmup 10",
    .quick = "--batches 1,16 --iterations 50",
    .ranks = 1,
    .run = run,
};
