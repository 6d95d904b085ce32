/* SPDX-License-Identifier: BSD-2-Clause */
/* The clock of measurements: virtual time, or the time stamp counter if it is invariant, or else
 * CLOCK_MONOTONIC. */
#ifndef BENCH_CLOCK_H
#define BENCH_CLOCK_H

#include "util/vtime.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

struct bench_clock {
    bool counter; /* read the time stamp counter */
    double ns_per_tick;
};

extern struct bench_clock bench_clock;

/* Chooses and calibrates the clock. Takes some milliseconds. */
void clock_start(void);
const char *clock_name(void);

static inline uint64_t monotonic_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ull + now.tv_nsec;
}

/* The clock for time limits of an experiment. In virtual time it is the model's, so that results do
 * not depend on the speed of the machine. */
static inline uint64_t experiment_ns(void)
{
    return __builtin_expect(vtime.on, 0) ? vtime.now() : monotonic_ns();
}

static inline uint64_t clock_ticks(void)
{
    if (__builtin_expect(vtime.on, 0))
        return vtime.now();
#if defined(__x86_64__)
    if (bench_clock.counter)
        return __rdtsc();
#endif
    return monotonic_ns();
}

static inline double clock_ns(uint64_t ticks)
{
    return ticks * bench_clock.ns_per_tick;
}

#endif
