#include "objects.h"

#include <errno.h>
#include <string.h>

struct objects {
    const struct object_kind *kind;
    uint64_t value; /* of the axis */
    uint64_t made;
    void *list[BATCH_MAX];
};

static int make(struct bench *bench, void *context)
{
    struct objects *objects = context;
    uint64_t count = objects->kind->many ? objects->value : 1;

    for (; objects->made < count; objects->made++) {
        void *object = objects->kind->make(bench, objects->value);

        if (!object)
            return BENCH_FAILED;
        objects->list[objects->made] = object;
    }
    return BENCH_OK;
}

static int release(struct bench *bench, void *context)
{
    struct objects *objects = context;

    while (objects->made) {
        if (objects->kind->release(bench, objects->list[--objects->made]))
            return BENCH_FAILED;
    }
    return BENCH_OK;
}

int objects_measure(struct bench *bench, const struct object_kind *kind, uint64_t limit,
                    const struct cycle_span *spans, unsigned int span_count)
{
    static const cycle_step steps[] = { [OBJECT_MAKE] = make, [OBJECT_RELEASE] = release, NULL };
    const struct settings *settings = bench->settings;
    struct objects objects = { .kind = kind };
    struct cycle cycle = {
        .steps = steps, .spans = spans, .span_count = span_count, .object = &objects
    };
    struct cycle_sweep sweep = { .axis = kind->axis,
                                 .axis_unit = "",
                                 .values = kind->many ? &settings->batches : &settings->depths,
                                 .limit = limit,
                                 .value = &objects.value,
                                 .calls = !kind->many };
    int status = cycle_measure(bench, &sweep, &cycle, 1);

    release(bench, &objects);
    return status;
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

const struct object_kind completion_queues = {
    .axis = "entries",
    .make = create_cq,
    .release = destroy_cq,
};
