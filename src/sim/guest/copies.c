/* SPDX-License-Identifier: BSD-2-Clause */
/* Loaded with --compute=copies: what programs and their libraries copy with memcpy() and memmove()
 * takes the time that the adapter file states for copies. */
#include "sim/guest/interface.h"
#include "util/util.h"

#include "verbena.h"

#include <dlfcn.h>
#include <link.h>

#define EXPORT        __attribute__((visibility("default")))
#define SHORTEST      256 /* headers, which adapter files do not charge for either, are shorter */
#define LIBRARIES_MAX 4

typedef void *(*copy_call)(void *, const void *, size_t);

static copy_call real_memcpy, real_memmove;
static struct {
    uintptr_t begin, end;
} own[LIBRARIES_MAX]; /* Verbena's libraries, whose copies belong to the model */
static uint32_t own_count;

static int find_own(struct dl_phdr_info *info, size_t size, void *unused)
{
    if (!strstr(info->dlpi_name, "/libverbena"))
        return 0;
    for (int i = 0; i < info->dlpi_phnum && own_count < LIBRARIES_MAX; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];

        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X))
            continue;
        own[own_count].begin = info->dlpi_addr + part->p_vaddr;
        own[own_count].end = own[own_count].begin + part->p_memsz;
        own_count++;
    }
    return 0;
}

__attribute__((constructor)) static void find_libraries(void)
{
    dl_iterate_phdr(find_own, NULL);
    real_memmove = (copy_call)dlsym(RTLD_NEXT, "memmove");
    real_memcpy = (copy_call)dlsym(RTLD_NEXT, "memcpy");
}

static bool is_own(const void *caller)
{
    for (uint32_t i = 0; i < own_count; i++) {
        if ((uintptr_t)caller >= own[i].begin && (uintptr_t)caller < own[i].end)
            return true;
    }
    return false;
}

static void charge(size_t length, const void *caller)
{
    if (length >= SHORTEST && real_memcpy && verbena_guest_sched.joined() && !is_own(caller))
        verbena_copy(length);
}

/* For copies before the constructor; the compiler must not make it a call of memmove(). */
static void *copy_bytes(void *to, const void *from, size_t length)
{
    volatile char *t = to;
    const volatile char *f = from;

    if (t < f) {
        for (size_t i = 0; i < length; i++)
            t[i] = f[i];
    } else {
        while (length--)
            t[length] = f[length];
    }
    return to;
}

EXPORT void *memcpy(void *restrict to, const void *restrict from, size_t length)
{
    charge(length, __builtin_return_address(0));
    return real_memcpy ? real_memcpy(to, from, length) : copy_bytes(to, from, length);
}

EXPORT void *memmove(void *to, const void *from, size_t length)
{
    charge(length, __builtin_return_address(0));
    return real_memmove ? real_memmove(to, from, length) : copy_bytes(to, from, length);
}
