#include "work.h"
#include "clock.h"

#include <string.h>

void work_copy(void *to, const void *from, size_t size)
{
    if (vtime.on)
        vtime.copy(size);
    memcpy(to, from, size);
}

/* A store each, as a program would do it. */
static void store_numbers(char *to, size_t stride, const char *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        memcpy(to + i * stride, from + i * sizeof(double), sizeof(double));
}

void work_scatter(void *to, size_t stride, const void *from, size_t size, size_t count)
{
    char *place = to;
    const char *piece = from;

    if (vtime.on)
        vtime.copy(size * count);
    if (size == sizeof(double)) {
        store_numbers(place, stride, piece, count);
        return;
    }
    for (size_t i = 0; i < count; i++)
        memcpy(place + i * stride, piece + i * size, size);
}

void work_compute(uint64_t ns)
{
    uint64_t start = clock_ticks();

    if (vtime.on) {
        vtime.compute(ns);
        return;
    }
    while (clock_ns(clock_ticks() - start) < ns)
        ;
}
