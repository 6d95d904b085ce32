/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/guest/guest.h"

#include <link.h>

__thread int guest_bypass;

static struct {
    uintptr_t begin, end;
} internal;

static int find_library(struct dl_phdr_info *info, size_t size, void *address)
{
    uintptr_t begin = UINTPTR_MAX, end = 0;

    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];

        if (part->p_type != PT_LOAD)
            continue;
        if (info->dlpi_addr + part->p_vaddr < begin)
            begin = info->dlpi_addr + part->p_vaddr;
        if (info->dlpi_addr + part->p_vaddr + part->p_memsz > end)
            end = info->dlpi_addr + part->p_vaddr + part->p_memsz;
    }
    if ((uintptr_t)address < begin || (uintptr_t)address >= end)
        return 0;
    internal.begin = begin;
    internal.end = end;
    return 1;
}

bool guest_is_internal(const void *caller)
{
    return (uintptr_t)caller >= internal.begin && (uintptr_t)caller < internal.end;
}

void guest_find_internal(void)
{
    dl_iterate_phdr(find_library, (void *)vsched);
}
