/* SPDX-License-Identifier: BSD-2-Clause */
/* The clock of the measurements: that of the model in virtual time, else the processor's time stamp
 * counter where it is steady, else the system's monotonic clock. */
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

/* Chooses and calibrates; takes some milliseconds. */
void clock_start(void);
const char *clock_name(void);

static inline uint64_t monotonic_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ull + now.tv_nsec;
}

/* The time that limits of an experiment are about: in virtual time the model's, so that nothing
 * which is measured depends on how fast the machine is. */
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
