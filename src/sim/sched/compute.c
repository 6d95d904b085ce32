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
static uint64_t look_cost; /* of looking at the processor time, which counts as processor time */

static __thread struct {
    bool runs;
    uint64_t since;  /* processor time */
    uint64_t looked; /* computed or waited between the last two looks */
    uint64_t computed;
} thread;

int compute_read(const char *text, double *factor, char *error, size_t size)
{
    size_t length = strlen(MEASURED);
    char *end;

    *factor = 0;
    if (!strcmp(text, "none"))
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
             "compute: %s is neither none nor measured nor measured=FACTOR, with a "
             "factor above 0",
             text);
    return -1;
}

/* Not by the C library, whose clocks are virtual in programs that know nothing of this. */
static uint64_t processor_time(void)
{
    struct timespec time;

    syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1000000000ull + time.tv_nsec;
}

void compute_set(double factor)
{
    factor_of_process = factor;
    memset(&thread, 0, sizeof(thread)); /* in a forked child: processor time starts anew */
    look_cost = UINT64_MAX;
    for (int i = 0; factor > 0 && i < 100; i++) {
        uint64_t before = processor_time(), cost = processor_time() - before;

        look_cost = cost < look_cost ? cost : look_cost;
    }
}

void compute_begin(void)
{
    if (factor_of_process <= 0)
        return;
    thread.runs = true;
    thread.since = processor_time();
}

void compute_look(void)
{
    uint64_t used;

    if (!thread.runs)
        return;
    used = processor_time() - thread.since;
    thread.looked = used > look_cost ? used - look_cost : 0;
    thread.runs = false;
}

void compute_go_on(void)
{
    thread.computed += thread.looked;
    thread.looked = 0;
    compute_begin();
}

void compute_waited(void)
{
    thread.looked = 0;
    compute_begin();
}

uint64_t compute_end(void)
{
    uint64_t computed;

    if (factor_of_process <= 0)
        return 0;
    compute_look();
    computed = thread.computed + thread.looked;
    thread.computed = thread.looked = 0;
    return llround(computed * factor_of_process);
}
