/* How fast the adapter reaches its own memory, and the host's. */
#include "bench/completion.h"
#include "bench/endpoint.h"
#include "bench/repeat.h"

#include <errno.h>
#include <string.h>

/* Memory of the host or of the adapter, registered. */
struct place {
    struct region host;
    struct ibv_dm *dm;
    struct ibv_mr *mr;
    uint64_t address; /* for the adapter: its own memory begins at 0 */
};

/* Two queue pairs of one process, connected to each other, and a place at each. */
struct loop {
    struct bench *bench;
    struct completions completions;
    struct endpoint ends[2];
    struct place places[2];
    struct ibv_sge segments[2];
    struct ibv_send_wr writes[2];
};

static int open_host_place(struct bench *bench, size_t size, struct place *out)
{
    if (region_open(bench, size, &out->host))
        return BENCH_FAILED;
    out->mr = out->host.mr;
    out->address = (uintptr_t)out->host.address;
    return BENCH_OK;
}

static int open_device_place(struct bench *bench, size_t size, struct place *out)
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

static void close_place(struct place *place)
{
    if (place->dm && place->mr)
        ibv_dereg_mr(place->mr);
    if (place->dm)
        ibv_free_dm(place->dm);
    region_close(&place->host);
}

static int connect_ends(struct loop *loop)
{
    struct bench *bench = loop->bench;
    struct endpoint_spec spec = { .transport = TRANSPORT_RC,
                                  .send_depth = 1,
                                  .receive_depth = 1,
                                  .mtu = bench->settings->mtu,
                                  .sl = bench->settings->sl,
                                  .send_cq = loop->completions.cq,
                                  .receive_cq = loop->completions.cq };

    for (int i = 0; i < 2; i++) {
        if (endpoint_create(bench, &spec, &loop->ends[i]))
            return BENCH_FAILED;
    }
    for (int i = 0; i < 2; i++) {
        loop->ends[i].peer = loop->ends[1 - i].mine;
        if (endpoint_to_init(bench, &loop->ends[i]) || endpoint_to_rtr(bench, &loop->ends[i]) ||
            endpoint_to_rts(bench, &loop->ends[i]))
            return BENCH_FAILED;
    }
    return BENCH_OK;
}

static void prepare_writes(struct loop *loop, size_t size)
{
    for (int i = 0; i < 2; i++) {
        const struct place *from = &loop->places[i], *to = &loop->places[1 - i];

        loop->segments[i] = (struct ibv_sge){ from->address, size, from->mr->lkey };
        loop->writes[i] = (struct ibv_send_wr){ .sg_list = &loop->segments[i],
                                                .num_sge = 1,
                                                .opcode = IBV_WR_RDMA_WRITE,
                                                .send_flags = IBV_SEND_SIGNALED };
        loop->writes[i].wr.rdma.remote_addr = to->address;
        loop->writes[i].wr.rdma.rkey = to->mr->rkey;
    }
}

static int loop_open(struct bench *bench, bool device, size_t size, struct loop *loop)
{
    *loop = (struct loop){ .bench = bench };
    for (int i = 0; i < 2; i++) {
        if (device ? open_device_place(bench, size, &loop->places[i])
                   : open_host_place(bench, size, &loop->places[i]))
            return BENCH_FAILED;
    }
    if (completions_open(bench, 4, WAIT_POLL, &loop->completions) || connect_ends(loop))
        return BENCH_FAILED;
    prepare_writes(loop, size);
    return BENCH_OK;
}

/* Also of one that was opened halfway. */
static void loop_close(struct loop *loop)
{
    for (int i = 0; i < 2; i++)
        endpoint_destroy(&loop->ends[i]);
    completions_close(&loop->completions);
    for (int i = 0; i < 2; i++)
        close_place(&loop->places[i]);
}

static inline int there_and_back(struct loop *loop)
{
    for (int i = 0; i < 2; i++) {
        struct ibv_send_wr *bad;
        struct ibv_wc wc;
        int error = ibv_post_send(loop->ends[i].qp, &loop->writes[i], &bad);

        if (error)
            return bench_fail(loop->bench, "ibv_post_send: %s", strerror(error));
        if (completions_wait(&loop->completions, &wc, 1) < 0)
            return BENCH_FAILED;
    }
    return BENCH_OK;
}

static int run_batch(void *context, uint64_t warmup, struct histogram *samples)
{
    struct loop *loop = context;
    uint64_t iterations = loop->bench->settings->iterations;

    for (uint64_t i = 0; i < warmup; i++) {
        if (there_and_back(loop))
            return BENCH_FAILED;
    }
    for (uint64_t i = 0; i < iterations; i++) {
        uint64_t start = clock_ticks();

        if (there_and_back(loop))
            return BENCH_FAILED;
        histogram_add(samples, clock_ticks() - start);
    }
    return BENCH_OK;
}

static int measure(struct bench *bench, bool device, size_t size)
{
    struct summary latency;
    struct loop loop;
    int status = BENCH_FAILED;

    if (!loop_open(bench, device, size, &loop))
        status =
            repeat_samples(bench, run_batch, &loop, bench_clock.ns_per_tick / 1000 / 2, &latency);
    loop_close(&loop);
    if (!status)
        bench_point(bench, device, size, &latency);
    return status;
}

static int run(struct bench *bench)
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

const struct experiment experiment_hca_memory = {
    .name = "hca-memory",
    .group = "ports",
    .title = "How fast does the adapter reach its own memory, and the host's?",
    .source = "Mem/MemFree figure 2",
    .options = "--sizes 4..64K",
    .quick = "--sizes 8,1K,64K --iterations 500",
    .layout = LAYOUT_ONE_HOST,
    .ranks = 1,
    .run = run,
};
