/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Intercepts memory calls of the C library. The library's own functions execute them, so that
 * others that intercept them (UCX) see them too.
 */

/* Both the 32- and 64-bit offset names are defined here. */
#undef _FILE_OFFSET_BITS

#include "dma/mapped/share.h"
#include "util/next.h"

#include <malloc.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>

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

EXPORT int munmap(void *addr, size_t length)
{
    int result = NEXT(munmap)(addr, length);

    if (!result)
        share_memory_gone((uintptr_t)addr, length);
    return result;
}

#define DEFINE_MMAP(name, offset_type)                                                        \
    EXPORT void *name(void *addr, size_t length, int prot, int flags, int fd, offset_type at) \
    {                                                                                         \
        void *result = NEXT(name)(addr, length, prot, flags, fd, at);                         \
                                                                                              \
        if (flags & MAP_FIXED && result != MAP_FAILED)                                        \
            share_memory_gone((uintptr_t)result, length);                                     \
        return result;                                                                        \
    }

DEFINE_MMAP(mmap, off_t)
DEFINE_MMAP(mmap64, off64_t)

EXPORT void *mremap(void *addr, size_t old_length, size_t length, int flags, ...)
{
    uintptr_t from = (uintptr_t)addr, to;
    void *target = NULL, *result;
    va_list more;

    if (flags & MREMAP_FIXED) {
        va_start(more, flags);
        target = va_arg(more, void *);
        va_end(more);
    }
    result = NEXT(mremap)(addr, old_length, length, flags, target);
    if (result == MAP_FAILED)
        return result;
    to = (uintptr_t)result;
    if (to != from)
        share_memory_gone(from, old_length);
    else if (length < old_length)
        share_memory_gone(from + length, old_length - length);
    if (flags & MREMAP_FIXED)
        share_memory_gone(to, length);
    return result;
}

EXPORT int madvise(void *addr, size_t length, int advice)
{
    int result;

    if ((advice == MADV_DONTNEED || advice == MADV_FREE) &&
        share_discard((uintptr_t)addr, length, advice, &result))
        return result;
    return NEXT(madvise)(addr, length, advice);
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
