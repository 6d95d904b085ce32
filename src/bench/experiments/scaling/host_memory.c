/* SPDX-License-Identifier: BSD-2-Clause */
/* How much host memory a connection takes: the memory of the process while it opens more and more
 * queue pairs. On a model, that of the modelled adapter. */
#include "runs.h"
#include "bench/measure/count_sweep.h"
#include "bench/measure/sweep.h"
#include "util/vtime.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROLLUP "/proc/self/smaps_rollup"

/* In KB. */
struct footprint {
    double virtual;
    double resident;
    double proportional; /* anonymous and shared memory; shared pages count in proportion */
};

struct growth {
    struct completions completions;
    struct endpoint *endpoints;
    unsigned int count;
    struct footprint before;
};

/* The proportional part leaves out programs and libraries, because their share depends on who else
 * on the machine uses them. */
static int read_rollup(struct bench *bench, struct footprint *out)
{
    double anonymous = 0, shared = 0;
    FILE *file = fopen(ROLLUP, "r");
    char line[256];
    int found = 0;

    if (!file)
        return bench_skip(bench, ROLLUP ": %s", strerror(errno));
    while (fgets(line, sizeof(line), file)) {
        found += sscanf(line, "Rss: %lf kB", &out->resident) == 1;
        found += sscanf(line, "Pss_Anon: %lf kB", &anonymous) == 1;
        found += sscanf(line, "Pss_Shmem: %lf kB", &shared) == 1;
    }
    fclose(file);
    out->proportional = anonymous + shared;
    return found == 3 ? BENCH_OK
                      : bench_skip(bench, ROLLUP " does not tell Rss, Pss_Anon and Pss_Shmem");
}

/* The footprint of this process; 'proportional' is the sum over all ranks. */
static int take_footprint(struct bench *bench, struct footprint *out)
{
    double all[CONTROL_RANKS_MAX];
    unsigned long pages = 0;
    FILE *file;

    /* Freed memory must not count. */
    malloc_trim(0);
    file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%lu", &pages) != 1)
        bench_skip(bench, "/proc/self/statm cannot be read");
    if (file)
        fclose(file);
    if (!pages || read_rollup(bench, out))
        return BENCH_FAILED;
    out->virtual = pages * (sysconf(_SC_PAGESIZE) / 1024.0);
    if (bench_exchange(bench, &out->proportional, sizeof(out->proportional), all))
        return BENCH_FAILED;
    out->proportional = 0;
    for (int i = 0; i < bench->ranks; i++)
        out->proportional += all[i];
    return BENCH_OK;
}

static int grow_to(struct bench *bench, struct growth *growth, unsigned int count)
{
    struct endpoint_spec spec = {
        .transport = TRANSPORT_RC,
        .send_depth = bench->settings->depth,
        .receive_depth = bench->settings->depth,
        .send_cq = growth->completions.cq,
        .receive_cq = growth->completions.cq,
    };
    unsigned int first = growth->count;

    for (; growth->count < count; growth->count++) {
        if (endpoint_create(bench, &spec, &growth->endpoints[growth->count]))
            return BENCH_FAILED;
    }
    return endpoints_connect(bench, 1 - bench->rank, growth->endpoints + first, count - first);
}

/* The growth since before the first queue pair. */
static int grow_and_measure(struct bench *bench, struct growth *growth, unsigned int count,
                            struct footprint *out)
{
    if ((count > growth->count && grow_to(bench, growth, count)) || take_footprint(bench, out))
        return BENCH_FAILED;
    out->virtual -= growth->before.virtual;
    out->resident -= growth->before.resident;
    out->proportional -= growth->before.proportional;
    return BENCH_OK;
}

static int measure_virtual(struct bench *bench, void *context, size_t size, unsigned int qps,
                           struct summary *out)
{
    struct footprint grown;

    if (grow_and_measure(bench, context, qps, &grown))
        return BENCH_FAILED;
    histogram_of_values(&grown.virtual, 1, out);
    return BENCH_OK;
}

static int measure_resident(struct bench *bench, void *context, size_t size, unsigned int qps,
                            struct summary *out)
{
    struct footprint grown;

    if (grow_and_measure(bench, context, qps, &grown))
        return BENCH_FAILED;
    histogram_of_values(&grown.resident, 1, out);
    return BENCH_OK;
}

static int measure_both(struct bench *bench, void *context, size_t size, unsigned int qps,
                        struct summary *out)
{
    struct footprint grown;

    if (grow_and_measure(bench, context, qps, &grown))
        return BENCH_FAILED;
    histogram_of_values(&grown.proportional, 1, out);
    return BENCH_OK;
}

static int measure_adapter(struct bench *bench, void *context, size_t size, unsigned int qps,
                           struct summary *out)
{
    struct growth *growth = context;
    double kilobytes;

    if (qps > growth->count && grow_to(bench, growth, qps))
        return BENCH_FAILED;
    kilobytes = vtime.icm_memory() / 1024.0;
    histogram_of_values(&kilobytes, 1, out);
    return BENCH_OK;
}

static int sweep(struct bench *bench, struct growth *growth, const struct count_sweep_curve *curves,
                 unsigned int count)
{
    return count_sweep_run(bench, &(struct count_sweep){ .quantity = "memory",
                                                         .unit = "KB",
                                                         .better = BETTER_LOWER,
                                                         .axis = "QPs",
                                                         .counts = &bench->settings->qps,
                                                         .limit = count_sweep_qp_limit(bench, 0),
                                                         .limiter = "queue pairs",
                                                         .context = growth,
                                                         .curve_count = count,
                                                         .curves = curves });
}

/* The memory of the processes belongs to the simulation. */
static int measure_model(struct bench *bench, struct growth *growth)
{
    static const struct count_sweep_curve curve = { "adapter", measure_adapter };

    return sweep(bench, growth, &curve, 1);
}

static int measure_processes(struct bench *bench, struct growth *growth)
{
    static const struct count_sweep_curve curves[] = {
        { "virtual", measure_virtual },
        { "resident", measure_resident },
        { "resident, both processes", measure_both },
    };
    struct footprint grown;

    if (take_footprint(bench, &growth->before) || sweep(bench, growth, curves, 3) ||
        grow_and_measure(bench, growth, growth->count, &grown))
        return BENCH_FAILED;
    bench_note(bench, "a connection", "%.1f KB of this process, %.1f KB of both",
               grown.resident / growth->count, grown.proportional / growth->count);
    return BENCH_OK;
}

/* A process may keep memory it has freed, so the number of queue pairs may only grow. */
static int check_order(struct bench *bench)
{
    const struct number_list *qps = &bench->settings->qps;

    for (unsigned int i = 1; i < qps->count; i++) {
        if (qps->value[i] <= qps->value[i - 1])
            return bench_fail(bench, "the numbers of queue pairs must rise");
    }
    return BENCH_OK;
}

int host_memory_run(struct bench *bench)
{
    size_t bytes = sweep_largest(&bench->settings->qps) * sizeof(struct endpoint);
    struct growth growth = { .endpoints = malloc(bytes) };
    int status = BENCH_FAILED;

    if (!growth.endpoints)
        return bench_fail(bench, "out of memory");
    /* Make it resident before the first measurement. */
    memset(growth.endpoints, 0xff, bytes);
    if (check_order(bench) ||
        completions_open(bench, bench->settings->depth, WAIT_POLL, &growth.completions))
        goto out;
    status = vtime.on ? measure_model(bench, &growth) : measure_processes(bench, &growth);
    while (growth.count)
        endpoint_destroy(&growth.endpoints[--growth.count]);
    completions_close(&growth.completions);
out:
    free(growth.endpoints);
    return status;
}
