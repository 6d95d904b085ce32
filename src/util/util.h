/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UTIL_UTIL_H
#define UTIL_UTIL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

#define container_of(ptr, type, member) ((type *)((char *)(ptr) - offsetof(type, member)))

#define PAGE_BYTES   4096ull /* x86-64 */
#define CACHE_LINE   64
#define cache_aligned __attribute__((aligned(CACHE_LINE)))

#define load_relaxed(p)     atomic_load_explicit(p, memory_order_relaxed)
#define load_acquire(p)     atomic_load_explicit(p, memory_order_acquire)
#define store_relaxed(p, v) atomic_store_explicit(p, v, memory_order_relaxed)
#define store_release(p, v) atomic_store_explicit(p, v, memory_order_release)

static inline uint32_t round_up_pow2(uint32_t n)
{
    return n <= 1 ? 1 : 1u << (32 - __builtin_clz(n - 1));
}

static inline uint64_t round_up(uint64_t n, uint64_t to)
{
    return (n + to - 1) / to * to;
}

static inline uint64_t now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

/* Cheap; accurate to a few milliseconds. */
static inline uint64_t coarse_now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
    return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

/* memcpy() for short lengths: no call, and no loop up to 16 bytes. */
static inline void copy_short(void *to, const void *from, uint32_t n)
{
    char *t = to;
    const char *f = from;

    if (n >= 16) {
        for (uint32_t i = 0; i + 16 < n; i += 16)
            memcpy(t + i, f + i, 16);
        memcpy(t + n - 16, f + n - 16, 16);
    } else if (n >= 8) {
        uint64_t first, last;
        memcpy(&first, f, 8);
        memcpy(&last, f + n - 8, 8);
        memcpy(t, &first, 8);
        memcpy(t + n - 8, &last, 8);
    } else {
        for (uint32_t i = 0; i < n; i++)
            t[i] = f[i];
    }
}

/* Asks for the cache line that will be written next. An address that is not mapped does no harm. */
static inline void prefetch_for_writing(const void *at)
{
#if defined(__x86_64__)
    /* The built-in gives a shared copy of the line where the compiler may not assume this one. */
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)at));
#else
    __builtin_prefetch(at, 1);
#endif
}

static inline void cpu_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
