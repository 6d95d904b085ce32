/* SPDX-License-Identifier: BSD-2-Clause */
#include "noncontiguous.h"
#include "sweep.h"
#include "sampling.h"
#include "cpu_work.h"

#include <stdlib.h>
#include <string.h>

/* Where the program stores blocks. */
struct target {
    struct bench *bench;
    const struct noncontiguous *layout;
    char *source;
    char *destination;
};

unsigned int noncontiguous_max_sges(const struct bench *bench)
{
    uint64_t wanted = bench->settings->segments.value[0], max = bench->adapter->limits.max_sge;

    return wanted < max ? wanted : max;
}

static size_t total_size(const struct noncontiguous *layout)
{
    return layout->block_size * layout->blocks;
}

static int target_open(struct bench *bench, const struct noncontiguous *layout, struct target *out)
{
    size_t length = layout->stride * layout->blocks;

    *out = (struct target){ .bench = bench, .layout = layout };
    out->source = malloc(total_size(layout));
    out->destination = malloc(length);
    if (!out->source || !out->destination) {
        free(out->source);
        free(out->destination);
        return bench_fail(bench, "out of memory");
    }
    /* Fault the pages in before the clock runs. */
    memset(out->source, 1, total_size(layout));
    memset(out->destination, 0, length);
    return BENCH_OK;
}

static void target_close(struct target *target)
{
    free(target->source);
    free(target->destination);
}

static int store_blocks(void *context, double *value)
{
    const struct target *target = context;
    const struct noncontiguous *layout = target->layout;
    uint64_t repetitions = stream_messages(target->bench, total_size(layout));
    uint64_t start;

    if (target->bench->rank)
        return BENCH_OK;
    start = clock_ticks();
    for (uint64_t i = 0; i < repetitions; i++)
        cpu_work_scatter(target->destination, layout->stride, target->source, layout->block_size,
                         layout->blocks);
    *value = repetitions * total_size(layout) / (clock_ns(clock_ticks() - start) / 1e9) / 1e6;
    return BENCH_OK;
}

int noncontiguous_copy(struct bench *bench, const struct noncontiguous *layout, struct summary *out)
{
    struct target target;
    double warm_up;
    int status;

    if (target_open(bench, layout, &target))
        return BENCH_FAILED;
    store_blocks(&target, &warm_up);
    status = sampling_runs(bench, store_blocks, &target, out);
    target_close(&target);
    return status;
}

static void store_arrival(void *context, const struct flow *flow, const struct slot *slot)
{
    const struct target *target = context;
    const struct noncontiguous *layout = target->layout;

    cpu_work_scatter(target->destination, layout->stride, flow_payload(flow, slot),
                     layout->block_size, layout->blocks);
}

/* 0, 1, 2 ...: a buffer for each slot. */
static unsigned int *separate_buffers(struct bench *bench, unsigned int count)
{
    unsigned int *buffer_of = malloc(count * sizeof(*buffer_of));

    for (unsigned int i = 0; buffer_of && i < count; i++)
        buffer_of[i] = i;
    if (!buffer_of)
        bench_fail(bench, "out of memory");
    return buffer_of;
}

int noncontiguous_receive_then_copy(struct bench *bench, const struct noncontiguous *layout,
                                    struct summary *out)
{
    unsigned int *buffer_of;
    struct stream_plan plan;
    struct target target;
    struct flow_spec spec;
    int status = BENCH_FAILED;

    flow_defaults(bench, 1 - bench->rank, &spec);
    spec.size = total_size(layout);
    plan = sweep_plan(bench, &spec);
    /* No message may overwrite one that has not been copied yet: every receive has its own buffer,
     * and the queue holds no more receives than the window needs. */
    spec.depth = 1;
    spec.slots = spec.depth = stream_depth(&spec, plan.window);
    buffer_of = separate_buffers(bench, spec.slots);
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

int noncontiguous_scatter_receive(struct bench *bench, const struct noncontiguous *layout,
                                  unsigned int sges, struct summary *out)
{
    unsigned int messages = (layout->blocks + sges - 1) / sges;
    unsigned int blocks = layout->blocks / messages;
    unsigned int *buffer_of = separate_buffers(bench, messages);
    struct stream_plan plan;
    struct flow_spec spec;
    int status;

    if (!buffer_of)
        return BENCH_FAILED;
    flow_defaults(bench, 1 - bench->rank, &spec);
    spec.size = blocks * layout->block_size;
    spec.receive_segments = blocks;
    spec.receive_stride = layout->stride;
    spec.slots = messages;
    spec.buffer_of = buffer_of;
    spec.buffer_stride = blocks * layout->stride;
    plan = sweep_plan(bench, &spec);
    plan.messages = messages * stream_messages(bench, total_size(layout));
    status = stream_measure(bench, &spec, &plan, out);
    free(buffer_of);
    return status;
}
