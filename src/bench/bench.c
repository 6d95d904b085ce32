/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/bench.h"
#include "bench/interrupt.h"
#include "bench/report.h"

#include <sched.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>

/* Threads of an experiment may fail and check for failures concurrently. */
static pthread_mutex_t control_lock = PTHREAD_MUTEX_INITIALIZER;

void bench_panel(struct bench *bench, const struct panel_spec *spec)
{
    if (bench->report)
        report_panel(bench->report, spec);
}

void bench_point(struct bench *bench, unsigned int curve, double x, const struct summary *y)
{
    if (bench->report)
        report_point(bench->report, curve, x, y);
}

void bench_note(struct bench *bench, const char *name, const char *format, ...)
{
    char text[CONTROL_TEXT_MAX];
    va_list arguments;

    if (!bench->report)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    report_note(bench->report, name, text);
}

static int end_with(struct bench *bench, enum control_status status, const char *format,
                    va_list arguments)
{
    char text[CONTROL_TEXT_MAX];
    int length = bench->rank ? snprintf(text, sizeof(text), "process %d: ", bench->rank) : 0;

    vsnprintf(text + length, sizeof(text) - length, format, arguments);
    pthread_mutex_lock(&control_lock);
    control_fail(bench->control, status, text);
    pthread_mutex_unlock(&control_lock);
    return BENCH_FAILED;
}

int bench_fail(struct bench *bench, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    end_with(bench, CONTROL_FAILED, format, arguments);
    va_end(arguments);
    return BENCH_FAILED;
}

int bench_skip(struct bench *bench, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    end_with(bench, CONTROL_SKIPPED, format, arguments);
    va_end(arguments);
    return BENCH_FAILED;
}

static int check_interrupt(struct bench *bench)
{
    if (!interrupt_seen())
        return BENCH_OK;
    control_interrupt(bench->control);
    return BENCH_FAILED;
}

int bench_exchange(struct bench *bench, const void *mine, size_t size, void *all)
{
    int status;

    if (check_interrupt(bench))
        return BENCH_FAILED;
    if (vtime.on)
        vtime.barrier_begin(bench->ranks);
    status = control_exchange(bench->control, mine, size, all) ? BENCH_FAILED : BENCH_OK;
    if (vtime.on)
        vtime.barrier_end(status == BENCH_OK);
    return status;
}

int bench_barrier(struct bench *bench)
{
    return bench_exchange(bench, NULL, 0, NULL);
}

static bool timed_out(const struct bench *bench, uint64_t since)
{
    uint64_t limit_ms = bench->settings->timeout * 1000;

    if (vtime.on)
        return vtime.stalled() >= limit_ms;
    return patience_is_over(since, limit_ms * 1000000);
}

bool bench_alive(struct bench *bench, uint64_t since)
{
    bool ended;

    sched_yield(); /* the peer may need this core */

    pthread_mutex_lock(&control_lock);
    ended = check_interrupt(bench) || control_check(bench->control);
    pthread_mutex_unlock(&control_lock);
    if (ended)
        return false;
    if (!timed_out(bench, since))
        return true;
    bench_fail(bench, "no progress for %llu s", (unsigned long long)bench->settings->timeout);
    return false;
}

bool bench_needs_samples(const struct bench *bench, const struct summary *so_far, uint64_t start)
{
    const struct settings *settings = bench->settings;
    double half_width = (so_far->high - so_far->low) / 2;

    if (settings->tolerance <= 0 || so_far->median <= 0)
        return false;
    if ((experiment_ns() - start) / 1e9 > settings->cap)
        return false;
    return so_far->count < 6 || half_width / so_far->median * 100 > settings->tolerance;
}

int bench_continue_sampling(struct bench *bench, const struct summary *so_far, uint64_t start,
                            bool *more)
{
    char mine = *more && !bench->rank && bench_needs_samples(bench, so_far, start);
    char all[CONTROL_RANKS_MAX];

    if (bench_exchange(bench, &mine, sizeof(mine), all))
        return BENCH_FAILED;
    *more = all[0];
    return BENCH_OK;
}
