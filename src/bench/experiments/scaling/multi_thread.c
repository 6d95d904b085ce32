/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads that share only the device: each has its own queue pair, completion queues and memory. */
#include "runs.h"
#include "bench/measure/count_sweep.h"
#include "bench/measure/sampling.h"
#include "bench/measure/stream.h"
#include "util/vtime.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum gate {
    GATE_CLOSED,
    GATE_OPEN,
    GATE_CANCELLED,
};

struct crew {
    struct bench *bench;
    struct stream_plan plan;
    double scale; /* from messages per second to the value */
    unsigned int count;
    struct worker *workers;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    enum gate gate;
    unsigned int waiting; /* threads at the gate */
};

struct worker {
    struct crew *crew;
    struct flow flow;
    pthread_t thread;
    uint64_t start, end, messages;
    int status;
};

/* In virtual time all threads of all ranks start together: the workers and their main threads. */
static void begin_together(const struct crew *crew)
{
    if (vtime.on)
        vtime.barrier_begin(crew->bench->ranks * (crew->count + 1));
}

static void end_together(enum gate gate)
{
    if (vtime.on)
        vtime.barrier_end(gate == GATE_OPEN);
}

static enum gate wait_for_gate(struct crew *crew)
{
    enum gate gate;

    begin_together(crew);
    pthread_mutex_lock(&crew->lock);
    crew->waiting++;
    pthread_cond_broadcast(&crew->changed);
    while (crew->gate == GATE_CLOSED)
        pthread_cond_wait(&crew->changed, &crew->lock);
    gate = crew->gate;
    pthread_mutex_unlock(&crew->lock);
    end_together(gate);
    return gate;
}

/* Threads start one after the other, so that their order in virtual time is always the same. */
static void wait_until_waiting(struct crew *crew, unsigned int count)
{
    pthread_mutex_lock(&crew->lock);
    while (crew->waiting < count)
        pthread_cond_wait(&crew->changed, &crew->lock);
    pthread_mutex_unlock(&crew->lock);
}

static void set_gate(struct crew *crew, enum gate gate)
{
    pthread_mutex_lock(&crew->lock);
    crew->gate = gate;
    pthread_cond_broadcast(&crew->changed);
    pthread_mutex_unlock(&crew->lock);
}

static void *work(void *argument)
{
    struct worker *worker = argument;

    worker->status = BENCH_FAILED;
    if (wait_for_gate(worker->crew) == GATE_CANCELLED)
        return NULL;
    worker->start = clock_ticks();
    worker->status = stream_pass(&worker->flow, &worker->crew->plan, &worker->messages);
    worker->end = clock_ticks();
    return NULL;
}

static int prepare(struct crew *crew)
{
    for (unsigned int i = 0; i < crew->count; i++) {
        if (stream_prepare(&crew->workers[i].flow, &crew->plan))
            return BENCH_FAILED;
    }
    return BENCH_OK;
}

/* Starts the threads, which wait at the gate. Returns how many have started. */
static unsigned int start_threads(struct crew *crew)
{
    for (unsigned int i = 0; i < crew->count; i++) {
        struct worker *worker = &crew->workers[i];
        int error = pthread_create(&worker->thread, NULL, work, worker);

        if (error) {
            bench_fail(crew->bench, "thread %u of %u: %s", i + 1, crew->count, strerror(error));
            return i;
        }
        wait_until_waiting(crew, i + 1);
    }
    return crew->count;
}

/* The value over the time from the start of the first thread to the end of the last one. */
static double sum_up(const struct crew *crew)
{
    uint64_t start = UINT64_MAX, end = 0, messages = 0;

    for (unsigned int i = 0; i < crew->count; i++) {
        const struct worker *worker = &crew->workers[i];

        start = worker->start < start ? worker->start : start;
        end = worker->end > end ? worker->end : end;
        messages += worker->messages;
    }
    return messages / (clock_ns(end - start) / 1e9) * crew->scale;
}

static int run_once(void *context, double *value)
{
    struct crew *crew = context;
    unsigned int started = 0;
    int status = prepare(crew);

    if (status)
        return BENCH_FAILED;
    crew->gate = GATE_CLOSED;
    crew->waiting = 0;
    begin_together(crew);
    started = start_threads(crew);
    if (started < crew->count || control_exchange(crew->bench->control, NULL, 0, NULL))
        status = BENCH_FAILED;
    set_gate(crew, status ? GATE_CANCELLED : GATE_OPEN);
    end_together(crew->gate);
    /* The workers go on without the main thread. */
    if (vtime.on)
        vtime.leave();
    for (unsigned int i = 0; i < started; i++) {
        pthread_join(crew->workers[i].thread, NULL);
        status |= crew->workers[i].status;
    }
    if (status)
        return BENCH_FAILED;
    *value = sum_up(crew);
    return bench_barrier(crew->bench);
}

static int measure(struct bench *bench, size_t size, unsigned int threads, double scale,
                   struct summary *out)
{
    struct crew crew = {
        .bench = bench,
        .plan = { .style = WINDOW_REFILL,
                  .window = bench->settings->window,
                  .messages = stream_messages(bench, size) },
        .scale = scale,
        .workers = calloc(threads, sizeof(*crew.workers)),
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .changed = PTHREAD_COND_INITIALIZER,
    };
    struct flow_spec spec;
    double warm_up;
    int status = BENCH_FAILED;

    if (!crew.workers)
        return bench_fail(bench, "out of memory");
    flow_defaults(bench, 1 - bench->rank, &spec);
    spec.size = size;
    spec.depth = stream_depth(&spec, crew.plan.window);
    for (; crew.count < threads; crew.count++) {
        crew.workers[crew.count].crew = &crew;
        if (flow_open(bench, &spec, &crew.workers[crew.count].flow))
            goto close;
    }
    if (run_once(&crew, &warm_up) || sampling_runs(bench, run_once, &crew, out))
        goto close;
    status = BENCH_OK;
close:
    while (crew.count)
        flow_close(&crew.workers[--crew.count].flow);
    free(crew.workers);
    return status;
}

static int measure_rate(struct bench *bench, void *context, size_t size, unsigned int threads,
                        struct summary *out)
{
    return measure(bench, size, threads, 1e-6, out);
}

static int measure_bandwidth(struct bench *bench, void *context, size_t size, unsigned int threads,
                             struct summary *out)
{
    return measure(bench, size, threads, size / 1e6, out);
}

int multi_thread_run(struct bench *bench)
{
    struct count_sweep sweep = {
        .axis = "threads",
        .counts = &bench->settings->threads,
        .limit = count_sweep_qp_limit(bench, 2),
        .limiter = "queue pairs with two completion queues each",
        .sizes = &bench->settings->sizes,
        .better = BETTER_HIGHER,
    };

    sweep.unit = "M/s";
    if (count_sweep_one_curve(bench, sweep, "rate", measure_rate))
        return BENCH_FAILED;
    sweep.unit = "MB/s";
    return count_sweep_one_curve(bench, sweep, "bandwidth", measure_bandwidth);
}
