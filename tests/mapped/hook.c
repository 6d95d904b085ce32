/* SPDX-License-Identifier: BSD-2-Clause */
#include "hook.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

void (*hook_before_munmap)(void *addr);

int munmap(void *addr, size_t length)
{
    if (hook_before_munmap)
        hook_before_munmap(addr);
    return (int)syscall(SYS_munmap, addr, length);
}
