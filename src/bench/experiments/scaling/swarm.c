/* SPDX-License-Identifier: BSD-2-Clause */
/* Machines that read from, or write to, each other at random, as in rc-swarm of rdma_bench (Kalia,
 * Kaminsky, Andersen: FaSST, OSDI 2016): every thread has queue pairs to the thread of its number
 * on every other machine, one for each machine that the other one stands for. */
#include "runs.h"
#include "bench/adapter.h"
#include "bench/measure/count_sweep.h"
#include "bench/measure/crew.h"
#include "bench/measure/sampling.h"
#include "bench/measure/sweep.h"
#include "util/random.h"
#include "util/vtime.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER (2 << 20) /* what the others read from, of each thread */
#define ALIGN  64
#define WINDOW_MAX 1024

struct swarm {
    struct bench *bench;
    unsigned int threads;
    unsigned int emulated; /* queue pairs of a thread to each other machine */
    size_t size;
    bool writes;         /* instead of reads */
    unsigned int window; /* reads in flight, of a thread */
    uint64_t reads;      /* of a thread */
    struct endpoint *endpoints;      /* by machine, thread and emulated machine */
    struct completions *completions; /* of each endpoint */
    struct region *sources;          /* of each thread: what the others read, or write */
    struct region *targets;          /* where its reads go, or its writes come from */
    struct remote *remotes;          /* sources of all machines and threads */
    double *rates;                   /* of each thread: reads per ns */
    atomic_bool stops;               /* a thread has done its reads */
};

static unsigned int index_of(const struct swarm *swarm, int machine, unsigned int thread,
                             unsigned int emulated)
{
    return (machine * swarm->threads + thread) * swarm->emulated + emulated;
}

/* ---- one thread ---- */

static int post_read(struct swarm *swarm, unsigned int thread, unsigned int slot, uint64_t *seed,
                     unsigned int *used)
{
    struct bench *bench = swarm->bench;
    int machine = (bench->rank + 1 + random_next(seed) % (bench->ranks - 1)) % bench->ranks;
    const struct remote *remote = &swarm->remotes[machine * swarm->threads + thread];
    const struct region *target = &swarm->targets[thread];
    uint64_t places = (BUFFER - swarm->size) / ALIGN + 1;
    struct ibv_sge segment = { (uintptr_t)target->address + slot * swarm->size, swarm->size,
                               target->mr->lkey };
    struct ibv_send_wr *bad, wr = {
        .opcode = swarm->writes ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
        .send_flags = IBV_SEND_SIGNALED,
        .sg_list = &segment,
        .num_sge = 1,
        .wr.rdma = { .remote_addr = remote->address + random_next(seed) % places * ALIGN,
                     .rkey = remote->rkey },
    };
    int error;

    if (swarm->writes && swarm->size <= bench->settings->inline_limit)
        wr.send_flags |= IBV_SEND_INLINE;
    *used = index_of(swarm, machine, thread, random_next(seed) % swarm->emulated);
    error = ibv_post_send(swarm->endpoints[*used].qp, &wr, &bad);
    return error ? bench_fail(bench, "ibv_post_send: %s", strerror(error)) : BENCH_OK;
}

static int wait_for_read(struct completions *completions)
{
    struct ibv_wc wc;

    if (vtime.on)
        vtime.poll_only(completions->cq);
    return completions_wait(completions, &wc, 1) == 1 ? BENCH_OK : BENCH_FAILED;
}

/* Before a slot of the window is used again, the read that used it has completed: completions are
 * waited for in the order of posting. A thread counts its reads once its window is full, until the
 * first thread of the machine has done all of its own: while all of them are at work. */
static int read_all(void *context, unsigned int thread)
{
    struct swarm *swarm = context;
    uint64_t seed = swarm->bench->settings->seed << 32 |
                    (uint32_t)(swarm->bench->rank * swarm->threads + thread);
    uint64_t filling = 2 * swarm->window, end = UINT64_MAX - swarm->window, begin = 0;
    unsigned int used[WINDOW_MAX];

    for (uint64_t i = 0; i < end + swarm->window; i++) {
        unsigned int slot = i % swarm->window;

        if (i >= swarm->window && wait_for_read(&swarm->completions[used[slot]]))
            return BENCH_FAILED;
        if (i == filling)
            begin = clock_ticks();
        if (i > filling && i < end && (i == filling + swarm->reads || swarm->stops)) {
            swarm->stops = true;
            swarm->rates[thread] = (i - filling) / clock_ns(clock_ticks() - begin);
            end = i;
        }
        if (i < end && post_read(swarm, thread, slot, &seed, &used[slot]))
            return BENCH_FAILED;
    }
    if (vtime.on)
        vtime.poll_only(NULL);
    return BENCH_OK;
}

/* ---- opening ---- */

static int create_endpoints(struct swarm *swarm)
{
    struct bench *bench = swarm->bench;
    struct endpoint_spec spec = {
        .transport = bench->settings->transport,
        .send_depth = swarm->window,
        .receive_depth = 1,
        .inline_limit = bench->settings->inline_limit,
        .mtu = bench->settings->mtu,
        .sl = bench->settings->sl,
    };

    for (int machine = 0; machine < bench->ranks; machine++) {
        for (unsigned int i = 0; machine != bench->rank && i < swarm->threads * swarm->emulated;
             i++) {
            unsigned int index = index_of(swarm, machine, 0, i), thread = i / swarm->emulated;

            spec.port = 1 + (bench->adapter->port - 1 + thread % bench->settings->ports) %
                                bench->adapter->limits.phys_port_cnt;
            if (completions_open(bench, swarm->window, WAIT_POLL, &swarm->completions[index]))
                return BENCH_FAILED;
            spec.send_cq = spec.receive_cq = swarm->completions[index].cq;
            if (endpoint_create(bench, &spec, &swarm->endpoints[index]))
                return BENCH_FAILED;
        }
    }
    return BENCH_OK;
}

static int open_memory(struct swarm *swarm)
{
    struct bench *bench = swarm->bench;
    struct remote *mine = calloc(swarm->threads, sizeof(*mine));
    int status = mine ? BENCH_OK : bench_fail(bench, "out of memory");

    for (unsigned int i = 0; i < swarm->threads && !status; i++) {
        status = adapter_region_open(bench, BUFFER, &swarm->sources[i]);
        if (!status)
            status = adapter_region_open(bench, swarm->window * swarm->size, &swarm->targets[i]);
        if (!status)
            mine[i] = (struct remote){ (uintptr_t)swarm->sources[i].address,
                                       swarm->sources[i].mr->rkey };
    }
    if (!status)
        status = bench_exchange(bench, mine, swarm->threads * sizeof(*mine), swarm->remotes);
    free(mine);
    return status;
}

static int open_swarm(struct swarm *swarm)
{
    unsigned int threads = swarm->threads, machines = swarm->bench->ranks;
    unsigned int endpoints = machines * threads * swarm->emulated;

    swarm->endpoints = calloc(endpoints, sizeof(*swarm->endpoints));
    swarm->completions = calloc(endpoints, sizeof(*swarm->completions));
    swarm->sources = calloc(threads, sizeof(*swarm->sources));
    swarm->targets = calloc(threads, sizeof(*swarm->targets));
    swarm->remotes = calloc(machines * threads, sizeof(*swarm->remotes));
    swarm->rates = calloc(threads, sizeof(*swarm->rates));
    if (!swarm->endpoints || !swarm->completions || !swarm->sources || !swarm->targets ||
        !swarm->remotes || !swarm->rates)
        return bench_fail(swarm->bench, "out of memory");
    if (create_endpoints(swarm) ||
        endpoints_connect_all(swarm->bench, machines, swarm->endpoints, threads * swarm->emulated))
        return BENCH_FAILED;
    return open_memory(swarm);
}

static void close_swarm(struct swarm *swarm)
{
    unsigned int endpoints = swarm->bench->ranks * swarm->threads * swarm->emulated;

    for (unsigned int i = 0; swarm->endpoints && swarm->completions && i < endpoints; i++) {
        endpoint_destroy(&swarm->endpoints[i]);
        if (swarm->completions[i].bench)
            completions_close(&swarm->completions[i]);
    }
    for (unsigned int i = 0; swarm->sources && swarm->targets && i < swarm->threads; i++) {
        adapter_region_close(&swarm->targets[i]);
        adapter_region_close(&swarm->sources[i]);
    }
    free(swarm->endpoints);
    free(swarm->completions);
    free(swarm->sources);
    free(swarm->targets);
    free(swarm->remotes);
    free(swarm->rates);
}

/* ---- the sweep ---- */

static int run_once(void *context, double *rate)
{
    struct swarm *swarm = context;
    uint64_t ticks;

    swarm->stops = false;
    if (crew_run(swarm->bench, swarm->threads, read_all, swarm, &ticks))
        return BENCH_FAILED;
    *rate = 0;
    for (unsigned int i = 0; i < swarm->threads; i++)
        *rate += swarm->rates[i] * 1000;
    return BENCH_OK;
}

static bool has_operation(const struct bench *bench, enum operation operation)
{
    return bench->settings->operations & 1ull << operation;
}

static int measure(struct bench *bench, void *context, size_t size, unsigned int emulated,
                   struct summary *out)
{
    struct swarm swarm = { .bench = bench,
                           .threads = sweep_largest(&bench->settings->threads),
                           .emulated = emulated,
                           .size = size,
                           .writes = !has_operation(bench, OPERATION_READ),
                           .window = bench->settings->window,
                           .reads = bench->settings->iterations };
    int status = open_swarm(&swarm);
    double warm_up;

    if (!status)
        status = run_once(&swarm, &warm_up);
    if (!status)
        status = sampling_runs(bench, run_once, &swarm, out);
    close_swarm(&swarm);
    return status;
}

int swarm_run(struct bench *bench)
{
    const struct settings *settings = bench->settings;
    unsigned int connections = sweep_largest(&settings->threads) * (bench->ranks - 1);
    struct count_sweep sweep = { .unit = "M/s",
                                 .better = BETTER_HIGHER,
                                 .axis = "emulated",
                                 .counts = &settings->qps,
                                 .limiter = "queue pairs for each thread and machine",
                                 .sizes = &settings->sizes };

    if (!has_operation(bench, OPERATION_READ) && !has_operation(bench, OPERATION_WRITE))
        return bench_skip(bench, "it reads or writes, and does nothing else");
    if (settings->transport != TRANSPORT_RC &&
        (settings->transport != TRANSPORT_UC || has_operation(bench, OPERATION_READ)))
        return bench_skip(bench, "reads go by rc alone, writes by rc and uc");
    if (bench->ranks < 2)
        return bench_fail(bench, "a machine alone has nobody to read from: --nodes begins with 1");
    if (settings->ports > bench->adapter->limits.phys_port_cnt)
        return bench_fail(bench, "--ports %llu: the device has %u",
                          (unsigned long long)settings->ports,
                          bench->adapter->limits.phys_port_cnt);
    if (settings->window > WINDOW_MAX)
        return bench_fail(bench, "--window takes up to %d reads of a thread", WINDOW_MAX);
    for (unsigned int i = 0; i < settings->sizes.count; i++) {
        if (!settings->sizes.value[i] || settings->sizes.value[i] > BUFFER)
            return bench_fail(bench, "--sizes takes from 1 byte to %d", BUFFER);
    }
    sweep.limit = count_sweep_qp_limit(bench, 1) / connections;
    return count_sweep_one_curve(bench, sweep, "rate", measure);
}
