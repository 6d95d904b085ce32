/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/clock.h"

#include <stdio.h>
#include <string.h>

#define CALIBRATION_NS 10000000

struct bench_clock bench_clock = { .ns_per_tick = 1 };

/* The kernel uses the counter as its clock source only if it is invariant and synchronized. */
static bool counter_is_invariant(void)
{
    FILE *file = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "r");
    char name[32] = "";

    if (!file)
        return false;
    if (!fgets(name, sizeof(name), file))
        name[0] = '\0';
    fclose(file);
    return !strncmp(name, "tsc", 3) || !strncmp(name, "kvm-clock", 9);
}

void clock_start(void)
{
    vtime_find();
    if (vtime.on)
        return;
#if defined(__x86_64__)
    uint64_t start_ns, start, end_ns, end;

    if (!counter_is_invariant())
        return;
    start_ns = monotonic_ns();
    start = __rdtsc();
    do {
        end_ns = monotonic_ns();
        end = __rdtsc();
    } while (end_ns - start_ns < CALIBRATION_NS);
    if (end <= start)
        return;
    bench_clock.ns_per_tick = (double)(end_ns - start_ns) / (end - start);
    bench_clock.counter = true;
#else
    (void)counter_is_invariant;
#endif
}

const char *clock_name(void)
{
    if (vtime.on)
        return "virtual time";
    return bench_clock.counter ? "time stamp counter" : "CLOCK_MONOTONIC";
}
