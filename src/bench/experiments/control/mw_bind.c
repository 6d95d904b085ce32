/* SPDX-License-Identifier: BSD-2-Clause */
/* What it costs to bind a memory window and to invalidate it. */
#include "runs.h"
#include "bench/measure/flow.h"
#include "bench/measure/lifecycle.h"

#include <errno.h>
#include <string.h>

#define ACCESS (IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE)

struct windows {
    uint64_t size;
    struct flow flow; /* for its queue pair */
    struct region region;
    struct ibv_mr *mr; /* of the same memory, with the right to bind windows */
    struct ibv_mw *type_1;
    struct ibv_mw *type_2;
};

static int wait_for(struct bench *bench, struct windows *windows, const char *call, int error)
{
    struct ibv_wc wc;

    if (error)
        return bench_fail(bench, "%s: %s", call, strerror(error));
    return completions_wait(&windows->flow.sends, &wc, 1) < 0 ? BENCH_FAILED : BENCH_OK;
}

/* A length of zero unbinds. The region is set even then, because librxe reads its key. */
static int bind_type_1(struct bench *bench, struct windows *windows, uint64_t length)
{
    struct ibv_mw_bind bind = {
        .send_flags = IBV_SEND_SIGNALED,
        .bind_info = { .mr = windows->mr,
                       .addr = (uintptr_t)windows->region.address,
                       .length = length,
                       .mw_access_flags = length ? ACCESS : 0 },
    };

    return wait_for(bench, windows, "ibv_bind_mw",
                    ibv_bind_mw(windows->flow.endpoints[0].qp, windows->type_1, &bind));
}

static int step_bind_1(struct bench *bench, void *object)
{
    struct windows *windows = object;

    return bind_type_1(bench, windows, windows->size);
}

static int step_unbind_1(struct bench *bench, void *object)
{
    return bind_type_1(bench, object, 0);
}

static int post(struct bench *bench, struct windows *windows, struct ibv_send_wr *wr,
                const char *what)
{
    struct ibv_send_wr *bad;

    return wait_for(bench, windows, what, ibv_post_send(windows->flow.endpoints[0].qp, wr, &bad));
}

static int step_bind_2(struct bench *bench, void *object)
{
    struct windows *windows = object;
    struct ibv_mw *mw = windows->type_2;
    struct ibv_send_wr wr = {
        .opcode = IBV_WR_BIND_MW,
        .send_flags = IBV_SEND_SIGNALED,
        .bind_mw = { .mw = mw,
                     .rkey = ibv_inc_rkey(mw->rkey),
                     .bind_info = { .mr = windows->mr,
                                    .addr = (uintptr_t)windows->region.address,
                                    .length = windows->size,
                                    .mw_access_flags = ACCESS } },
    };

    if (post(bench, windows, &wr, "ibv_post_send of a bind"))
        return BENCH_FAILED;
    mw->rkey = wr.bind_mw.rkey;
    return BENCH_OK;
}

static int step_invalidate_2(struct bench *bench, void *object)
{
    struct windows *windows = object;
    struct ibv_send_wr wr = { .opcode = IBV_WR_LOCAL_INV,
                              .send_flags = IBV_SEND_SIGNALED,
                              .invalidate_rkey = windows->type_2->rkey };

    return post(bench, windows, &wr, "ibv_post_send of an invalidation");
}

static int open_window(struct bench *bench, enum ibv_mw_type type, struct ibv_mw **out)
{
    *out = ibv_alloc_mw(bench->adapter->pd, type);
    if (!*out)
        return bench_fail(bench, "ibv_alloc_mw of type %d: %s", type, strerror(errno));
    return BENCH_OK;
}

static int open_windows(struct bench *bench, struct windows *windows)
{
    const struct number_list *sizes = &bench->settings->sizes;
    unsigned int has = bench->adapter->limits.device_cap_flags;
    uint64_t transport = bench->settings->transport, largest = 0;

    if (transport != TRANSPORT_RC && transport != TRANSPORT_UC)
        return bench_skip(bench, "windows are bound by queue pairs of RC and UC, not of %s",
                          transport_names[transport]);
    for (unsigned int i = 0; i < sizes->count; i++)
        largest = sizes->value[i] > largest ? sizes->value[i] : largest;
    if (adapter_region_open(bench, largest, &windows->region))
        return BENCH_FAILED;
    windows->mr = ibv_reg_mr(bench->adapter->pd, windows->region.address, windows->region.length,
                             IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
    if (!windows->mr)
        return bench_fail(bench, "ibv_reg_mr for windows: %s", strerror(errno));
    if (has & IBV_DEVICE_MEM_WINDOW && open_window(bench, IBV_MW_TYPE_1, &windows->type_1))
        return BENCH_FAILED;
    if (has & (IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B) &&
        open_window(bench, IBV_MW_TYPE_2, &windows->type_2))
        return BENCH_FAILED;
    if (!windows->type_1 && !windows->type_2)
        return bench_skip(bench, "the device has no memory windows");
    return BENCH_OK;
}

static void close_windows(struct windows *windows)
{
    if (windows->type_2)
        ibv_dealloc_mw(windows->type_2);
    if (windows->type_1)
        ibv_dealloc_mw(windows->type_1);
    if (windows->mr)
        ibv_dereg_mr(windows->mr);
    adapter_region_close(&windows->region);
}

static int measure(struct bench *bench, struct windows *windows)
{
    static const lifecycle_step steps_1[] = { step_bind_1, step_unbind_1, NULL };
    static const lifecycle_step steps_2[] = { step_bind_2, step_invalidate_2, NULL };
    static const struct lifecycle_span spans_1[] = { { "type 1 bind", 0, 0 },
                                                     { "type 1 unbind", 1, 1 },
                                                     { .name = NULL } };
    static const struct lifecycle_span spans_2[] = { { "type 2 bind", 0, 0 },
                                                     { "type 2 invalidate", 1, 1 },
                                                     { .name = NULL } };
    struct lifecycle lifecycles[2];
    struct lifecycle_sweep sweep = { .axis = "size",
                                     .axis_unit = "B",
                                     .values = &bench->settings->sizes,
                                     .limit = bench->adapter->limits.max_mr_size,
                                     .value = &windows->size,
                                     .calls = 1 };
    unsigned int count = 0;

    if (windows->type_1)
        lifecycles[count++] = (struct lifecycle){ steps_1, spans_1, windows };
    if (windows->type_2)
        lifecycles[count++] = (struct lifecycle){ steps_2, spans_2, windows };
    return lifecycle_measure(bench, &sweep, lifecycles, count);
}

int mw_bind_run(struct bench *bench)
{
    struct windows windows = { 0 };
    struct flow_spec spec;
    int status;

    flow_defaults(bench, 1 - bench->rank, &spec);
    spec.operation = OPERATION_SEND;
    if (flow_open(bench, &spec, &windows.flow))
        return BENCH_FAILED;
    status = bench->rank ? BENCH_OK : open_windows(bench, &windows);
    if (!status)
        status = measure(bench, &windows);
    close_windows(&windows);
    flow_close(&windows.flow);
    return status;
}
