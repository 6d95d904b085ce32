/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Intercepts memory calls of the C library. The library's own functions execute them, so that
 * others that intercept them (UCX) see them too.
 */

/* Both the 32- and 64-bit offset names are defined here. */
#undef _FILE_OFFSET_BITS

#include "dma/mapped/share.h"
#include "hca/observer.h"
#include "util/next.h"

#include <malloc.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/shm.h>

#define EXPORT __attribute__((visibility("default")))

/* If the program has a sanitizer, the next definitions are the C library's, and the sanitizer's
 * free() does not know their memory. ThreadSanitizer also uses these calls before instrumented code
 * may run. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ALLOCATIONS_STAY 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ALLOCATIONS_STAY 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define MAPPINGS_STAY 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MAPPINGS_STAY 1
#endif
#endif

#ifndef MAPPINGS_STAY

/* ---- unmapping, and calls that expect private memory ----
 *
 * Affected regions are updated afterwards. Calls inside the C library, for instance in free(), are
 * not intercepted. */

static void tell_observer(const void *addr, size_t length)
{
    if (unlikely(hca_observer && hca_observer->memory_unmaps && length))
        hca_observer->memory_unmaps(addr, round_up(length, PAGE_BYTES));
}

EXPORT int munmap(void *addr, size_t length)
{
    tell_observer(addr, length);

    bool registered = share_change_begin((uintptr_t)addr, length);
    int result = NEXT(munmap)(addr, length);

    if (!result && registered)
        share_change_gone((uintptr_t)addr, length);
    if (registered)
        share_change_end();
    return result;
}

#define DEFINE_MMAP(name, offset_type)                                                        \
    EXPORT void *name(void *addr, size_t length, int prot, int flags, int fd, offset_type at) \
    {                                                                                         \
        if (flags & MAP_FIXED)                                                                \
            tell_observer(addr, length);                                                      \
                                                                                              \
        bool registered = flags & MAP_FIXED && share_change_begin((uintptr_t)addr, length);   \
        void *result = NEXT(name)(addr, length, prot, flags, fd, at);                         \
                                                                                              \
        if (registered && result != MAP_FAILED)                                               \
            share_change_gone((uintptr_t)result, length);                                     \
        if (registered)                                                                       \
            share_change_end();                                                               \
        return result;                                                                        \
    }

DEFINE_MMAP(mmap, off_t)
DEFINE_MMAP(mmap64, off64_t)

EXPORT void *mremap(void *addr, size_t old_length, size_t length, int flags, ...)
{
    uintptr_t from = (uintptr_t)addr, to;
    void *target = NULL, *result;
    bool moves, lands;
    size_t kept;
    va_list more;

    if (flags & MREMAP_FIXED) {
        va_start(more, flags);
        target = va_arg(more, void *);
        va_end(more);
        tell_observer(target, length);
    }
    moves = share_change_begin(from, old_length);
    lands = flags & MREMAP_FIXED && share_change_begin((uintptr_t)target, length);
    result = NEXT(mremap)(addr, old_length, length, flags, target);
    to = (uintptr_t)result;
    kept = to == from ? round_up(length, PAGE_BYTES) : 0;
    if (result != MAP_FAILED && kept < old_length) {
        tell_observer((char *)addr + kept, old_length - kept);
        if (moves)
            share_change_gone(from + kept, old_length - kept);
    }
    if (lands && result != MAP_FAILED)
        share_change_gone(to, length);
    if (lands)
        share_change_end();
    if (moves)
        share_change_end();
    return result;
}

EXPORT int shmdt(const void *addr)
{
    uint64_t length = share_segment_at(addr);
    bool registered = length && share_change_begin((uintptr_t)addr, length);
    int result = NEXT(shmdt)(addr);

    if (!result && registered)
        share_change_gone((uintptr_t)addr, length);
    if (registered)
        share_change_end();
    return result;
}

EXPORT int mprotect(void *addr, size_t length, int prot)
{
    bool registered = share_change_begin((uintptr_t)addr, length);
    int result = NEXT(mprotect)(addr, length, prot);

    if (registered)
        share_change_end();
    return result;
}

EXPORT int madvise(void *addr, size_t length, int advice)
{
    bool discards = advice == MADV_DONTNEED || advice == MADV_FREE;
    bool registered = discards && share_change_begin((uintptr_t)addr, length);
    int result;

    if (!discards || !share_discard((uintptr_t)addr, length, advice, &result))
        result = NEXT(madvise)(addr, length, advice);
    if (registered)
        share_change_end();
    return result;
}

#endif

#ifndef ALLOCATIONS_STAY

/* ---- page-aligned allocations get whole pages ----
 *
 * Peers map whole pages of registered memory: no other data should share those pages.
 */

static size_t whole_pages(size_t alignment, size_t size)
{
    if (alignment < PAGE_BYTES || size > SIZE_MAX - PAGE_BYTES)
        return size;
    return round_up(size, PAGE_BYTES);
}

EXPORT int posix_memalign(void **memory, size_t alignment, size_t size)
{
    return NEXT(posix_memalign)(memory, alignment, whole_pages(alignment, size));
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    return NEXT(aligned_alloc)(alignment, whole_pages(alignment, size));
}

EXPORT void *memalign(size_t alignment, size_t size)
{
    return NEXT(memalign)(alignment, whole_pages(alignment, size));
}

EXPORT void *valloc(size_t size)
{
    return NEXT(valloc)(whole_pages(PAGE_BYTES, size));
}

#endif
