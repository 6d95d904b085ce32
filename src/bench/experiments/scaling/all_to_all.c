/* SPDX-License-Identifier: BSD-2-Clause */
/* What each of n nodes gets when every node writes to every other at the same time. */
#include "runs.h"
#include "bench/measure/count_sweep.h"
#include "bench/measure/sampling.h"

#include <stdlib.h>
#include <string.h>

#define TAKE_BATCH 16

struct exchange {
    struct bench *bench;
    int ranks; /* ranks below this number take part */
    size_t size;
    uint64_t messages; /* from each rank to each other */
    unsigned int window;
    struct completions completions;
    struct endpoint *endpoints; /* by rank of the peer */
    struct remote *peers;       /* the memory of each rank that the others write to */
    struct region out, in;
    struct ibv_sge segment;
};

static bool takes_part(const struct exchange *exchange)
{
    return exchange->bench->rank < exchange->ranks;
}

static int create_endpoints(struct exchange *exchange)
{
    struct bench *bench = exchange->bench;
    struct endpoint_spec spec = {
        .transport = TRANSPORT_RC,
        .send_depth = exchange->window,
        .receive_depth = 1,
        .mtu = bench->settings->mtu,
        .sl = bench->settings->sl,
        .send_cq = exchange->completions.cq,
        .receive_cq = exchange->completions.cq,
    };

    for (int peer = 0; peer < exchange->ranks; peer++) {
        if (peer != bench->rank && endpoint_create(bench, &spec, &exchange->endpoints[peer]))
            return BENCH_FAILED;
    }
    return BENCH_OK;
}

/* Each rank writes to a block of its own in the memory of its peers. */
static int open_memory(struct exchange *exchange)
{
    struct bench *bench = exchange->bench;
    struct remote mine = { 0 };

    if (takes_part(exchange)) {
        if (adapter_region_open(bench, exchange->size, &exchange->out) ||
            adapter_region_open(bench, exchange->size * exchange->ranks, &exchange->in))
            return BENCH_FAILED;
        mine = (struct remote){ (uintptr_t)exchange->in.address, exchange->in.mr->rkey };
        exchange->segment = (struct ibv_sge){ (uintptr_t)exchange->out.address, exchange->size,
                                              exchange->out.mr->lkey };
    }
    return bench_exchange(bench, &mine, sizeof(mine), exchange->peers);
}

static void close_exchange(struct exchange *exchange)
{
    for (int peer = 0; exchange->endpoints && peer < exchange->ranks; peer++)
        endpoint_destroy(&exchange->endpoints[peer]);
    adapter_region_close(&exchange->in);
    adapter_region_close(&exchange->out);
    if (exchange->completions.bench)
        completions_close(&exchange->completions);
    free(exchange->endpoints);
    free(exchange->peers);
}

static int open_exchange(struct exchange *exchange)
{
    struct bench *bench = exchange->bench;

    exchange->endpoints = calloc(exchange->ranks, sizeof(*exchange->endpoints));
    exchange->peers = calloc(bench->ranks, sizeof(*exchange->peers));
    if (!exchange->endpoints || !exchange->peers)
        return bench_fail(bench, "out of memory");
    if (takes_part(exchange) &&
        (completions_open(bench, exchange->window, WAIT_POLL, &exchange->completions) ||
         create_endpoints(exchange)))
        return BENCH_FAILED;
    if (endpoints_connect_all(bench, exchange->ranks, exchange->endpoints, 1))
        return BENCH_FAILED;
    return open_memory(exchange);
}

static int post(struct exchange *exchange, uint64_t number)
{
    struct bench *bench = exchange->bench;
    int peer = (bench->rank + 1 + number % (exchange->ranks - 1)) % exchange->ranks;
    struct ibv_send_wr *bad, wr = {
        .wr_id = number,
        .opcode = IBV_WR_RDMA_WRITE,
        .send_flags = IBV_SEND_SIGNALED,
        .sg_list = &exchange->segment,
        .num_sge = 1,
        .wr.rdma = { .remote_addr = exchange->peers[peer].address + exchange->size * bench->rank,
                     .rkey = exchange->peers[peer].rkey },
    };
    int error = ibv_post_send(exchange->endpoints[peer].qp, &wr, &bad);

    return error ? bench_fail(bench, "ibv_post_send: %s", strerror(error)) : BENCH_OK;
}

/* Keeps a window of writes in flight, to each of the others in turn. */
static int write_all(struct exchange *exchange)
{
    uint64_t all = exchange->messages * (exchange->ranks - 1), posted = 0, completed = 0;
    struct ibv_wc wc[TAKE_BATCH];

    while (completed < all) {
        int count;

        while (posted < all && posted - completed < exchange->window) {
            if (post(exchange, posted++))
                return BENCH_FAILED;
        }
        count = completions_wait(&exchange->completions, wc, TAKE_BATCH);
        if (count < 0)
            return BENCH_FAILED;
        completed += count;
    }
    return BENCH_OK;
}

static int run_once(void *context, double *bandwidth)
{
    struct exchange *exchange = context;
    uint64_t start;

    if (bench_barrier(exchange->bench))
        return BENCH_FAILED;
    start = clock_ticks();
    if ((takes_part(exchange) && write_all(exchange)) || bench_barrier(exchange->bench))
        return BENCH_FAILED;
    *bandwidth = (double)exchange->size * exchange->messages * (exchange->ranks - 1) /
                 clock_ns(clock_ticks() - start) * 1000;
    return BENCH_OK;
}

static int measure(struct bench *bench, void *context, size_t size, unsigned int others,
                   struct summary *out)
{
    struct exchange exchange = { .bench = bench,
                                 .ranks = others + 1,
                                 .size = size,
                                 .messages = bench->settings->iterations,
                                 .window = bench->settings->window };
    int status = open_exchange(&exchange);

    if (!status)
        status = sampling_runs(bench, run_once, &exchange, out);
    close_exchange(&exchange);
    return status;
}

int all_to_all_run(struct bench *bench)
{
    struct count_sweep sweep = { .unit = "MB/s",
                                 .better = BETTER_HIGHER,
                                 .axis = "nodes",
                                 .counts = &bench->settings->nodes,
                                 .limit = bench->ranks - 1,
                                 .limiter = "further nodes",
                                 .sizes = &bench->settings->sizes };

    for (unsigned int i = 0; i < sweep.counts->count; i++) {
        if (!sweep.counts->value[i])
            return bench_fail(bench, "one node has nobody to write to: --nodes begins with 1");
    }
    return count_sweep_one_curve(bench, sweep, "bandwidth", measure);
}
