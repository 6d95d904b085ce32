/* SPDX-License-Identifier: BSD-2-Clause */
/* How fast the adapter reaches its own memory and that of the host. */
#include "runs.h"
#include "bench/completion.h"
#include "bench/endpoint.h"
#include "bench/measure/sampling.h"

#include <errno.h>
#include <string.h>

/* A registered buffer in the memory of the host or of the device. */
struct buffer {
    struct region host;
    struct ibv_dm *dm;
    struct ibv_mr *mr;
    uint64_t address; /* as the adapter sees it: device memory starts at 0 */
};

/* Two queue pairs of one process, connected to each other, each with a buffer. */
struct loopback {
    struct bench *bench;
    struct completions completions;
    struct endpoint ends[2];
    struct buffer buffers[2];
    struct ibv_sge segments[2];
    struct ibv_send_wr writes[2];
};

static int open_host_buffer(struct bench *bench, size_t size, struct buffer *out)
{
    if (adapter_region_open(bench, size, &out->host))
        return BENCH_FAILED;
    out->mr = out->host.mr;
    out->address = (uintptr_t)out->host.address;
    return BENCH_OK;
}

static int open_device_buffer(struct bench *bench, size_t size, struct buffer *out)
{
    struct ibv_alloc_dm_attr wanted = { .length = size };

    out->dm = ibv_alloc_dm(bench->adapter->context, &wanted);
    if (!out->dm)
        return bench_fail(bench, "ibv_alloc_dm of %zu bytes: %s", size, strerror(errno));
    out->mr =
        ibv_reg_dm_mr(bench->adapter->pd, out->dm, 0, size,
                      IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    if (!out->mr)
        return bench_fail(bench, "ibv_reg_dm_mr of %zu bytes: %s", size, strerror(errno));
    return BENCH_OK;
}

static void close_buffer(struct buffer *buffer)
{
    if (buffer->dm && buffer->mr)
        ibv_dereg_mr(buffer->mr);
    if (buffer->dm)
        ibv_free_dm(buffer->dm);
    adapter_region_close(&buffer->host);
}

static int connect_ends(struct loopback *loopback)
{
    struct bench *bench = loopback->bench;
    struct endpoint_spec spec = { .transport = TRANSPORT_RC,
                                  .send_depth = 1,
                                  .receive_depth = 1,
                                  .mtu = bench->settings->mtu,
                                  .sl = bench->settings->sl,
                                  .send_cq = loopback->completions.cq,
                                  .receive_cq = loopback->completions.cq };

    for (int i = 0; i < 2; i++) {
        if (endpoint_create(bench, &spec, &loopback->ends[i]))
            return BENCH_FAILED;
    }
    for (int i = 0; i < 2; i++) {
        loopback->ends[i].peer = loopback->ends[1 - i].mine;
        if (endpoint_to_init(bench, &loopback->ends[i]) ||
            endpoint_to_rtr(bench, &loopback->ends[i]) ||
            endpoint_to_rts(bench, &loopback->ends[i]))
            return BENCH_FAILED;
    }
    return BENCH_OK;
}

static void prepare_writes(struct loopback *loopback, size_t size)
{
    for (int i = 0; i < 2; i++) {
        const struct buffer *from = &loopback->buffers[i], *to = &loopback->buffers[1 - i];

        loopback->segments[i] = (struct ibv_sge){ from->address, size, from->mr->lkey };
        loopback->writes[i] = (struct ibv_send_wr){ .sg_list = &loopback->segments[i],
                                                    .num_sge = 1,
                                                    .opcode = IBV_WR_RDMA_WRITE,
                                                    .send_flags = IBV_SEND_SIGNALED };
        loopback->writes[i].wr.rdma.remote_addr = to->address;
        loopback->writes[i].wr.rdma.rkey = to->mr->rkey;
    }
}

static int loopback_open(struct bench *bench, bool device, size_t size, struct loopback *loopback)
{
    *loopback = (struct loopback){ .bench = bench };
    for (int i = 0; i < 2; i++) {
        if (device ? open_device_buffer(bench, size, &loopback->buffers[i])
                   : open_host_buffer(bench, size, &loopback->buffers[i]))
            return BENCH_FAILED;
    }
    if (completions_open(bench, 4, WAIT_POLL, &loopback->completions) || connect_ends(loopback))
        return BENCH_FAILED;
    prepare_writes(loopback, size);
    return BENCH_OK;
}

/* Also closes what loopback_open() has left half open. */
static void loopback_close(struct loopback *loopback)
{
    for (int i = 0; i < 2; i++)
        endpoint_destroy(&loopback->ends[i]);
    completions_close(&loopback->completions);
    for (int i = 0; i < 2; i++)
        close_buffer(&loopback->buffers[i]);
}

static inline int write_both_ways(struct loopback *loopback)
{
    for (int i = 0; i < 2; i++) {
        struct ibv_send_wr *bad;
        struct ibv_wc wc;
        int error = ibv_post_send(loopback->ends[i].qp, &loopback->writes[i], &bad);

        if (error)
            return bench_fail(loopback->bench, "ibv_post_send: %s", strerror(error));
        if (completions_wait(&loopback->completions, &wc, 1) < 0)
            return BENCH_FAILED;
    }
    return BENCH_OK;
}

static int run_batch(void *context, uint64_t warmup, struct histogram *samples)
{
    struct loopback *loopback = context;
    uint64_t iterations = loopback->bench->settings->iterations;

    for (uint64_t i = 0; i < warmup; i++) {
        if (write_both_ways(loopback))
            return BENCH_FAILED;
    }
    for (uint64_t i = 0; i < iterations; i++) {
        uint64_t start = clock_ticks();

        if (write_both_ways(loopback))
            return BENCH_FAILED;
        histogram_add(samples, clock_ticks() - start);
    }
    return BENCH_OK;
}

static int measure(struct bench *bench, bool device, size_t size)
{
    struct summary latency;
    struct loopback loopback;
    int status = BENCH_FAILED;

    if (!loopback_open(bench, device, size, &loopback))
        status = sampling_iterations(bench, run_batch, &loopback,
                                     bench_clock.ns_per_tick / 1000 / 2, &latency);
    loopback_close(&loopback);
    if (!status)
        bench_point(bench, device, size, &latency);
    return status;
}

int hca_memory_run(struct bench *bench)
{
    static const char *const names[] = { "host to host", "device to device" };
    const struct number_list *sizes = &bench->settings->sizes;
    struct ibv_device_attr_ex attributes;

    if (ibv_query_device_ex(bench->adapter->context, NULL, &attributes) || !attributes.max_dm_size)
        return bench_skip(bench, "the device has no memory of its own for programs");
    bench_note(bench, "device memory", "%llu bytes, of which a point takes twice its size",
               (unsigned long long)attributes.max_dm_size);
    bench_panel(bench, &(struct panel_spec){ .quantity = "latency",
                                             .unit = "us",
                                             .axis = "size",
                                             .axis_unit = "B",
                                             .better = BETTER_LOWER,
                                             .count = 2,
                                             .names = names });
    for (unsigned int i = 0; i < sizes->count; i++) {
        uint64_t size = sizes->value[i];

        if (size && (measure(bench, false, size) ||
                     (2 * size <= attributes.max_dm_size && measure(bench, true, size))))
            return BENCH_FAILED;
    }
    return BENCH_OK;
}
