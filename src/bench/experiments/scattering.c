#include "scattering.h"
#include "sweep.h"
#include "bench/repeat.h"
#include "bench/work.h"

#include <stdlib.h>
#include <string.h>

struct target {
    struct bench *bench;
    const struct scattering *layout;
    char *source;
    char *places;
};

unsigned int most_entries(const struct bench *bench)
{
    uint64_t wanted = bench->settings->segments.value[0], most = bench->adapter->limits.max_sge;

    return wanted < most ? wanted : most;
}

static size_t block_bytes(const struct scattering *layout)
{
    return layout->piece * layout->pieces;
}

static int target_open(struct bench *bench, const struct scattering *layout, struct target *out)
{
    size_t length = layout->stride * layout->pieces;

    *out = (struct target){ .bench = bench, .layout = layout };
    out->source = malloc(block_bytes(layout));
    out->places = malloc(length);
    if (!out->source || !out->places) {
        free(out->source);
        free(out->places);
        return bench_fail(bench, "out of memory");
    }
    /* Touched before the clock runs. */
    memset(out->source, 1, block_bytes(layout));
    memset(out->places, 0, length);
    return BENCH_OK;
}

static void target_close(struct target *target)
{
    free(target->source);
    free(target->places);
}

static int store_blocks(void *context, double *value)
{
    const struct target *target = context;
    const struct scattering *layout = target->layout;
    uint64_t blocks = stream_messages(target->bench, block_bytes(layout));
    uint64_t start;

    if (target->bench->rank)
        return BENCH_OK;
    start = clock_ticks();
    for (uint64_t i = 0; i < blocks; i++)
        work_scatter(target->places, layout->stride, target->source, layout->piece, layout->pieces);
    *value = blocks * block_bytes(layout) / (clock_ns(clock_ticks() - start) / 1e9) / 1e6;
    return BENCH_OK;
}

int scattering_local(struct bench *bench, const struct scattering *layout, struct summary *out)
{
    struct target target;
    double warm_up;
    int status;

    if (target_open(bench, layout, &target))
        return BENCH_FAILED;
    store_blocks(&target, &warm_up);
    status = repeat_values(bench, store_blocks, &target, out);
    target_close(&target);
    return status;
}

static void store_arrival(void *context, const struct flow *flow, const struct slot *slot)
{
    const struct target *target = context;
    const struct scattering *layout = target->layout;

    work_scatter(target->places, layout->stride, flow_payload(flow, slot), layout->piece,
                 layout->pieces);
}

/* 0, 1, 2 ...: every slot has a buffer of its own. */
static unsigned int *buffers_apart(struct bench *bench, unsigned int count)
{
    unsigned int *buffer_of = malloc(count * sizeof(*buffer_of));

    for (unsigned int i = 0; buffer_of && i < count; i++)
        buffer_of[i] = i;
    if (!buffer_of)
        bench_fail(bench, "out of memory");
    return buffer_of;
}

int scattering_by_program(struct bench *bench, const struct scattering *layout, struct summary *out)
{
    unsigned int *buffer_of;
    struct stream_plan plan;
    struct target target;
    struct flow_spec spec;
    int status = BENCH_FAILED;

    flow_defaults(bench, 1 - bench->rank, &spec);
    spec.size = block_bytes(layout);
    plan = sweep_plan(bench, &spec);
    /* Nothing may arrive on top of a block that has not been stored yet: every receive has a buffer
     * of its own, and there are no more of them than the window takes. */
    spec.depth = 1;
    spec.slots = spec.depth = stream_depth(&spec, plan.window);
    buffer_of = buffers_apart(bench, spec.slots);
    if (!buffer_of)
        return BENCH_FAILED;
    spec.buffer_of = buffer_of;
    if (target_open(bench, layout, &target))
        goto free_buffers;
    plan.arrived = store_arrival;
    plan.arrived_context = &target;
    status = stream_measure(bench, &spec, &plan, out);
    target_close(&target);
free_buffers:
    free(buffer_of);
    return status;
}

int scattering_by_adapter(struct bench *bench, const struct scattering *layout,
                          unsigned int entries, struct summary *out)
{
    unsigned int messages = (layout->pieces + entries - 1) / entries;
    unsigned int pieces = layout->pieces / messages;
    unsigned int *buffer_of = buffers_apart(bench, messages);
    struct stream_plan plan;
    struct flow_spec spec;
    int status;

    if (!buffer_of)
        return BENCH_FAILED;
    flow_defaults(bench, 1 - bench->rank, &spec);
    spec.size = pieces * layout->piece;
    spec.receive_segments = pieces;
    spec.receive_stride = layout->stride;
    spec.slots = messages;
    spec.buffer_of = buffer_of;
    spec.buffer_stride = pieces * layout->stride;
    plan = sweep_plan(bench, &spec);
    plan.messages = messages * stream_messages(bench, block_bytes(layout));
    status = stream_measure(bench, &spec, &plan, out);
    free(buffer_of);
    return status;
}
