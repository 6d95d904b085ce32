/* SPDX-License-Identifier: BSD-2-Clause */
#include "dma/mapped/vma.h"

#include "util/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static bool query(int view, uint64_t addr, uint64_t flags, struct vma *vma)
{
    char name[32] = "";
    struct kernel_procmap_query q = { .size = sizeof(q),
                                      .query_flags = flags,
                                      .query_addr = addr,
                                      .vma_name_addr = (uintptr_t)name,
                                      .vma_name_size = sizeof(name) };

    int err = ioctl(view, KERNEL_PROCMAP_QUERY, &q) ? errno : 0;
    if (err == ENAMETOOLONG) { /* the path does not matter */
        q.vma_name_addr = 0;
        q.vma_name_size = 0;
        err = ioctl(view, KERNEL_PROCMAP_QUERY, &q) ? errno : 0;
    }
    if (err)
        return false;
    *vma = (struct vma){ .start = q.vma_start,
                         .end = q.vma_end,
                         .offset = q.vma_offset,
                         .inode = q.inode,
                         .dev = makedev(q.dev_major, q.dev_minor),
                         .page_size = q.vma_page_size,
                         .readable = q.vma_flags & KERNEL_VMA_READABLE,
                         .writable = q.vma_flags & KERNEL_VMA_WRITABLE,
                         .shared = q.vma_flags & KERNEL_VMA_SHARED,
                         .is_stack = !strcmp(name, "[stack]"),
                         .is_sysv = !strncmp(name, "/SYSV", 5) };
    return true;
}

int vma_open(void)
{
    int view = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    struct vma vma;

    if (view >= 0 && !query(view, (uintptr_t)&vma, 0, &vma)) {
        close(view);
        errno = ENOSYS;
        return -1;
    }
    return view;
}

bool vma_at(int view, uint64_t addr, struct vma *vma)
{
    return query(view, addr, 0, vma);
}

bool vma_next_shared(int view, uint64_t addr, struct vma *vma)
{
    return query(view, addr, KERNEL_VMA_OR_NEXT | KERNEL_VMA_SHARED | KERNEL_VMA_FILE_BACKED, vma);
}

bool vma_has_huge_pages(uint64_t addr, uint64_t length)
{
    struct kernel_page_region found;
    struct kernel_pagemap_scan scan = { .size = sizeof(scan),
                                        .start = addr,
                                        .end = addr + length,
                                        .vec = (uintptr_t)&found,
                                        .vec_len = 1,
                                        .max_pages = 1,
                                        .category_mask = KERNEL_PAGE_IS_HUGE,
                                        .return_mask = KERNEL_PAGE_IS_HUGE };
    int pages = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

    if (pages < 0)
        return false;
    int regions = ioctl(pages, KERNEL_PAGEMAP_SCAN, &scan);
    close(pages);
    return regions > 0;
}
