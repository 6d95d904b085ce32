/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/sched/compute.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MEASURED "measured"

static double factor_of_process;
static uint64_t sample_cost; /* CPU time that reading the CPU clock takes */

static __thread struct {
    bool runs;
    uint64_t since;   /* CPU time */
    uint64_t sampled; /* CPU time not yet known to be computing or waiting */
    uint64_t computed;
} thread;

int compute_read(const char *text, double *factor, char *error, size_t size)
{
    size_t length = strlen(MEASURED);
    char *end;

    *factor = 0;
    if (!strcmp(text, "none") || !strcmp(text, "copies"))
        return 0;
    if (!strncmp(text, MEASURED, length) && !text[length]) {
        *factor = 1;
        return 0;
    }
    if (!strncmp(text, MEASURED "=", length + 1)) {
        *factor = strtod(text + length + 1, &end);
        if (end != text + length + 1 && !*end && isfinite(*factor) && *factor > 0)
            return 0;
    }
    snprintf(error, size,
             "compute: unknown value '%s': use none, copies, measured, or measured=FACTOR with a "
             "factor above 0",
             text);
    return -1;
}

/* A direct system call: the C library's clocks are virtual in guests. */
static uint64_t cpu_time(void)
{
    struct timespec time;

    syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1000000000ull + time.tv_nsec;
}

void compute_set(double factor)
{
    factor_of_process = factor;
    memset(&thread, 0, sizeof(thread)); /* a forked child starts with no CPU time */
    sample_cost = UINT64_MAX;
    for (int i = 0; factor > 0 && i < 100; i++) {
        uint64_t before = cpu_time(), cost = cpu_time() - before;

        sample_cost = cost < sample_cost ? cost : sample_cost;
    }
}

void compute_begin(void)
{
    if (factor_of_process <= 0)
        return;
    thread.runs = true;
    thread.since = cpu_time();
}

void compute_sample(void)
{
    uint64_t used;

    if (!thread.runs)
        return;
    used = cpu_time() - thread.since;
    thread.sampled = used > sample_cost ? used - sample_cost : 0;
    thread.runs = false;
}

void compute_resume(void)
{
    thread.computed += thread.sampled;
    thread.sampled = 0;
    compute_begin();
}

void compute_discard(void)
{
    thread.sampled = 0;
    compute_begin();
}

uint64_t compute_end(void)
{
    uint64_t computed;

    if (factor_of_process <= 0)
        return 0;
    compute_sample();
    computed = thread.computed + thread.sampled;
    thread.computed = thread.sampled = 0;
    return llround(computed * factor_of_process);
}
