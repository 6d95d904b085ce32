/* SPDX-License-Identifier: BSD-2-Clause */
#include "object_lifecycle.h"
#include "bench/endpoint.h"

#include <errno.h>
#include <string.h>

struct object_type {
    const char *plural;
    const char *axis;
    bool many; /* the axis is how many are created in a row; else it is the depth of one */

    /* The device's limit of the axis; 0 if it has no such objects. */
    uint64_t (*limit)(const struct bench *bench);

    /* Returns NULL after bench_fail(). */
    void *(*create)(struct bench *bench, uint64_t depth);
    int (*destroy)(struct bench *bench, void *object);
};

struct objects {
    const struct object_type *type;
    uint64_t value; /* of the axis */
    uint64_t created;
    void *list[BATCH_MAX];
};

static int step_create(struct bench *bench, void *context)
{
    struct objects *objects = context;
    uint64_t count = objects->type->many ? objects->value : 1;

    for (; objects->created < count; objects->created++) {
        void *object = objects->type->create(bench, objects->value);

        if (!object)
            return BENCH_FAILED;
        objects->list[objects->created] = object;
    }
    return BENCH_OK;
}

static int step_destroy(struct bench *bench, void *context)
{
    struct objects *objects = context;

    while (objects->created) {
        if (objects->type->destroy(bench, objects->list[--objects->created]))
            return BENCH_FAILED;
    }
    return BENCH_OK;
}

int object_lifecycle_run(struct bench *bench)
{
    static const lifecycle_step steps[] = {
        [OBJECT_CREATE] = step_create, [OBJECT_DESTROY] = step_destroy, NULL
    };
    const struct object_lifecycle_spec *spec = bench->experiment->spec;
    const struct object_type *type = spec->type;
    const struct settings *settings = bench->settings;
    struct objects objects = { .type = type };
    struct lifecycle lifecycle = { .steps = steps, .spans = spec->spans, .object = &objects };
    struct lifecycle_sweep sweep = { .axis = type->axis,
                                     .axis_unit = "",
                                     .values = type->many ? &settings->batches : &settings->depths,
                                     .limit = type->limit(bench),
                                     .value = &objects.value,
                                     .calls = !type->many };
    int status;

    if (!sweep.limit)
        return bench_skip(bench, "the device has no %s", type->plural);
    status = lifecycle_measure(bench, &sweep, &lifecycle, 1);
    step_destroy(bench, &objects);
    return status;
}

static uint64_t limit_cq(const struct bench *bench)
{
    return bench->adapter->limits.max_cqe;
}

static void *create_cq(struct bench *bench, uint64_t entries)
{
    struct ibv_cq *cq = ibv_create_cq(bench->adapter->context, entries, NULL, NULL, 0);

    if (!cq)
        bench_fail(bench, "ibv_create_cq of %llu entries: %s", (unsigned long long)entries,
                   strerror(errno));
    return cq;
}

static int destroy_cq(struct bench *bench, void *cq)
{
    int error = ibv_destroy_cq(cq);

    return error ? bench_fail(bench, "ibv_destroy_cq: %s", strerror(error)) : BENCH_OK;
}

const struct object_type object_cq = {
    .plural = "completion queues",
    .axis = "entries",
    .limit = limit_cq,
    .create = create_cq,
    .destroy = destroy_cq,
};

static uint64_t limit_pd(const struct bench *bench)
{
    return bench->adapter->limits.max_pd;
}

static void *create_pd(struct bench *bench, uint64_t depth)
{
    struct ibv_pd *pd = ibv_alloc_pd(bench->adapter->context);

    if (!pd)
        bench_fail(bench, "ibv_alloc_pd: %s", strerror(errno));
    return pd;
}

static int destroy_pd(struct bench *bench, void *pd)
{
    int error = ibv_dealloc_pd(pd);

    return error ? bench_fail(bench, "ibv_dealloc_pd: %s", strerror(error)) : BENCH_OK;
}

const struct object_type object_pd = {
    .plural = "protection domains",
    .axis = "batch",
    .many = true,
    .limit = limit_pd,
    .create = create_pd,
    .destroy = destroy_pd,
};

static uint64_t limit_srq(const struct bench *bench)
{
    const struct ibv_device_attr *limits = &bench->adapter->limits;

    return limits->max_srq ? limits->max_srq_wr : 0;
}

static void *create_srq(struct bench *bench, uint64_t depth)
{
    struct ibv_srq_init_attr attributes = { .attr = { .max_wr = depth, .max_sge = 1 } };
    struct ibv_srq *srq = ibv_create_srq(bench->adapter->pd, &attributes);

    if (!srq)
        bench_fail(bench, "ibv_create_srq of %llu receives: %s", (unsigned long long)depth,
                   strerror(errno));
    return srq;
}

static int destroy_srq(struct bench *bench, void *srq)
{
    int error = ibv_destroy_srq(srq);

    return error ? bench_fail(bench, "ibv_destroy_srq: %s", strerror(error)) : BENCH_OK;
}

const struct object_type object_srq = {
    .plural = "shared receive queues",
    .axis = "depth",
    .limit = limit_srq,
    .create = create_srq,
    .destroy = destroy_srq,
};

/* Some drivers report no limit. */
static uint64_t limit_ah(const struct bench *bench)
{
    int limit = bench->adapter->limits.max_ah;

    return limit > 0 ? limit : BATCH_MAX;
}

/* The destination is this port itself, so that no path has to be resolved. */
static void *create_ah(struct bench *bench, uint64_t depth)
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

static int destroy_ah(struct bench *bench, void *ah)
{
    int error = ibv_destroy_ah(ah);

    return error ? bench_fail(bench, "ibv_destroy_ah: %s", strerror(error)) : BENCH_OK;
}

const struct object_type object_ah = {
    .plural = "address handles",
    .axis = "batch",
    .many = true,
    .limit = limit_ah,
    .create = create_ah,
    .destroy = destroy_ah,
};
