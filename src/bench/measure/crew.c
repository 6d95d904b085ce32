/* SPDX-License-Identifier: BSD-2-Clause */
#include "crew.h"
#include "bench/control.h"
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
    int (*work)(void *context, unsigned int number);
    void *context;
    unsigned int count;
    struct worker *workers;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    enum gate gate;
    unsigned int waiting; /* threads at the gate */
};

struct worker {
    struct crew *crew;
    pthread_t thread;
    uint64_t start, end;
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

static void *run_worker(void *argument)
{
    struct worker *worker = argument;
    struct crew *crew = worker->crew;

    worker->status = BENCH_FAILED;
    if (wait_for_gate(crew) == GATE_CANCELLED)
        return NULL;
    worker->start = clock_ticks();
    worker->status = crew->work(crew->context, worker - crew->workers);
    worker->end = clock_ticks();
    return NULL;
}

/* Starts the threads, which wait at the gate. Returns how many have started. */
static unsigned int start_threads(struct crew *crew)
{
    for (unsigned int i = 0; i < crew->count; i++) {
        struct worker *worker = &crew->workers[i];
        int error;

        worker->crew = crew;
        error = pthread_create(&worker->thread, NULL, run_worker, worker);
        if (error) {
            bench_fail(crew->bench, "thread %u of %u: %s", i + 1, crew->count, strerror(error));
            return i;
        }
        wait_until_waiting(crew, i + 1);
    }
    return crew->count;
}

static uint64_t time_of(const struct crew *crew)
{
    uint64_t start = UINT64_MAX, end = 0;

    for (unsigned int i = 0; i < crew->count; i++) {
        const struct worker *worker = &crew->workers[i];

        start = worker->start < start ? worker->start : start;
        end = worker->end > end ? worker->end : end;
    }
    return end - start;
}

static int run(struct crew *crew)
{
    int status = BENCH_OK;
    unsigned int started;

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
    return status ? BENCH_FAILED : BENCH_OK;
}

int crew_run(struct bench *bench, unsigned int count,
             int (*work)(void *context, unsigned int number), void *context, uint64_t *ticks)
{
    struct crew crew = { .bench = bench,
                         .work = work,
                         .context = context,
                         .count = count,
                         .workers = calloc(count, sizeof(*crew.workers)),
                         .lock = PTHREAD_MUTEX_INITIALIZER,
                         .changed = PTHREAD_COND_INITIALIZER };
    int status;

    if (!crew.workers)
        return bench_fail(bench, "out of memory");
    status = run(&crew);
    if (!status)
        *ticks = time_of(&crew);
    free(crew.workers);
    return status ? status : bench_barrier(bench);
}
