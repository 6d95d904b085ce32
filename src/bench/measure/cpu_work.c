/* SPDX-License-Identifier: BSD-2-Clause */
#include "cpu_work.h"
#include "bench/clock.h"

#include <string.h>

void cpu_work_copy(void *to, const void *from, size_t size)
{
    if (vtime.on)
        vtime.copy(size);
    memcpy(to, from, size);
}

/* One store per number, as a program would do it. */
static void store_numbers(char *to, size_t stride, const char *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        memcpy(to + i * stride, from + i * sizeof(double), sizeof(double));
}

void cpu_work_scatter(void *to, size_t stride, const void *from, size_t size, size_t count)
{
    const char *block = from;
    char *destination = to;

    if (vtime.on)
        vtime.copy(size * count);
    if (size == sizeof(double)) {
        store_numbers(destination, stride, block, count);
        return;
    }
    for (size_t i = 0; i < count; i++)
        memcpy(destination + i * stride, block + i * size, size);
}

void cpu_work_compute(uint64_t ns)
{
    uint64_t start = clock_ticks();

    if (vtime.on) {
        vtime.compute(ns);
        return;
    }
    while (clock_ns(clock_ticks() - start) < ns)
        ;
}
