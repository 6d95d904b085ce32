/* SPDX-License-Identifier: BSD-2-Clause */
/* How a payload gets into registered memory: copied there, registered for each message, or
 * registered once. */
#include "runs.h"
#include "bench/measure/cpu_work.h"
#include "bench/measure/flow.h"
#include "bench/measure/sampling.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum way {
    WAY_COPY,
    WAY_REGISTER,
    WAY_REGISTERED,
    WAY_COUNT,
};

static const char *const names[WAY_COUNT] = { "copy", "register", "registered" };

struct sender {
    struct flow flow;
    enum way way;
    void *payload; /* the program's buffer, not registered */
};

static int write_and_wait(struct flow *flow)
{
    return flow_send(flow) || flow_reap(flow, true) ? BENCH_FAILED : BENCH_OK;
}

static int write_registering(struct sender *sender)
{
    struct flow *flow = &sender->flow;
    struct ibv_sge *list = flow_slot(flow, flow->sent)->send.sg_list;
    struct ibv_mr *mr = ibv_reg_mr(flow->bench->adapter->pd, sender->payload, flow->spec.size, 0);
    int status, error;

    if (!mr)
        return bench_fail(flow->bench, "ibv_reg_mr of %zu bytes: %s", flow->spec.size,
                          strerror(errno));
    list->addr = (uintptr_t)sender->payload;
    list->lkey = mr->lkey;
    status = write_and_wait(flow);
    error = ibv_dereg_mr(mr);
    if (error && !status)
        status = bench_fail(flow->bench, "ibv_dereg_mr: %s", strerror(error));
    return status;
}

static int write_one(struct sender *sender)
{
    switch (sender->way) {
    case WAY_COPY:
        cpu_work_copy(sender->flow.out.address, sender->payload, sender->flow.spec.size);
        return write_and_wait(&sender->flow);
    case WAY_REGISTER:
        return write_registering(sender);
    default:
        return write_and_wait(&sender->flow);
    }
}

/* The writes are one-sided: the other rank only waits. */
static int run_batch(void *context, uint64_t warmup, struct histogram *samples)
{
    struct sender *sender = context;
    struct bench *bench = sender->flow.bench;
    uint64_t total = bench->rank ? 0 : warmup + bench->settings->iterations;

    for (uint64_t i = 0; i < total; i++) {
        uint64_t start = clock_ticks();

        if (write_one(sender))
            return BENCH_FAILED;
        if (i >= warmup)
            histogram_add(samples, clock_ticks() - start);
    }
    return bench_barrier(bench);
}

static int measure(struct bench *bench, enum way way, size_t size, struct summary *out)
{
    struct sender sender = { .way = way };
    struct flow_spec spec;
    int status = BENCH_FAILED;

    flow_defaults(bench, 1 - bench->rank, &spec);
    spec.operation = OPERATION_WRITE;
    spec.size = size;
    spec.signal = 1;
    spec.inline_limit = 0;
    if (flow_open(bench, &spec, &sender.flow))
        return BENCH_FAILED;
    sender.payload = aligned_alloc(sysconf(_SC_PAGESIZE), sender.flow.spec.buffer_stride);
    if (!sender.payload) {
        bench_fail(bench, "out of memory");
        goto close;
    }
    memset(sender.payload, 1, size);
    status = sampling_iterations(bench, run_batch, &sender, bench_clock.ns_per_tick / 1000, out);
    free(sender.payload);
close:
    flow_close(&sender.flow);
    return status;
}

/* The size between two sizes at which registering becomes cheaper than copying, interpolated on a
 * logarithmic scale. */
static double crossing(const double size[2], const double copy[2], const double reg[2])
{
    double before = log(reg[0] / copy[0]), after = log(reg[1] / copy[1]);

    return size[0] * pow(size[1] / size[0], before / (before - after));
}

static void note_break_even(struct bench *bench, const double *copy, const double *reg)
{
    const struct number_list *sizes = &bench->settings->sizes;

    for (unsigned int i = sizes->count; i-- > 0;) {
        if (reg[i] < copy[i])
            continue;
        if (i + 1 == sizes->count) {
            bench_note(bench, "break-even", "none: copying is cheaper up to the largest size");
        } else {
            double size[] = { sizes->value[i], sizes->value[i + 1] };

            bench_note(bench, "break-even", "%.0f B: larger messages are cheaper to register",
                       crossing(size, &copy[i], &reg[i]));
        }
        return;
    }
    bench_note(bench, "break-even", "none: registering is cheaper from the smallest size on");
}

int registration_cache_run(struct bench *bench)
{
    const struct number_list *sizes = &bench->settings->sizes;
    double median[WAY_COUNT][NUMBERS_MAX];

    if (flow_operation_refusal(bench, OPERATION_WRITE, bench->settings->transport))
        return bench_skip(
            bench, "%s",
            flow_operation_refusal(bench, OPERATION_WRITE, bench->settings->transport));
    bench_panel(bench, &(struct panel_spec){ .quantity = "time",
                                             .unit = "us",
                                             .axis = "size",
                                             .axis_unit = "B",
                                             .better = BETTER_LOWER,
                                             .count = WAY_COUNT,
                                             .names = names });
    for (unsigned int i = 0; i < sizes->count; i++) {
        if (!sizes->value[i])
            return bench_fail(bench, "nothing to copy or to register: the size must not be 0");
        for (int way = 0; way < WAY_COUNT; way++) {
            struct summary time;

            if (measure(bench, way, sizes->value[i], &time))
                return BENCH_FAILED;
            median[way][i] = time.median;
            bench_point(bench, way, sizes->value[i], &time);
        }
    }
    if (!bench->rank)
        note_break_even(bench, median[WAY_COPY], median[WAY_REGISTER]);
    return BENCH_OK;
}
