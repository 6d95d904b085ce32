/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UTIL_KERNEL_H
#define UTIL_KERNEL_H

/* Linux interfaces newer than the system headers. */

#include <linux/types.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>

/* Linux 6.11: which mapping covers an address (ioctl on /proc/PID/maps). */
struct kernel_procmap_query {
    __u64 size;
    __u64 query_flags;
    __u64 query_addr;
    __u64 vma_start, vma_end;
    __u64 vma_flags;
    __u64 vma_page_size;
    __u64 vma_offset;
    __u64 inode;
    __u32 dev_major, dev_minor;
    __u32 vma_name_size;
    __u32 build_id_size;
    __u64 vma_name_addr;
    __u64 build_id_addr;
};
#define KERNEL_PROCMAP_QUERY   _IOWR('f', 17, struct kernel_procmap_query)
#define KERNEL_VMA_READABLE    0x01
#define KERNEL_VMA_WRITABLE    0x02
#define KERNEL_VMA_EXECUTABLE  0x04
#define KERNEL_VMA_SHARED      0x08
#define KERNEL_VMA_OR_NEXT     0x10
#define KERNEL_VMA_FILE_BACKED 0x20

/* The inodes of /proc/PID/ns/pid and ns/user outside all containers, in every kernel. */
#define KERNEL_FIRST_PID_NAMESPACE  0xeffffffcul
#define KERNEL_FIRST_USER_NAMESPACE 0xeffffffdul

/* Linux 6.8: moves pages to another address, unless they are pinned. */
struct kernel_uffdio_move {
    __u64 dst, src, len;
    __u64 mode;
    __s64 moved;
};
#define KERNEL_UFFD_FEATURE_MOVE (1 << 16)
#define KERNEL_UFFDIO_MOVE       _IOWR(0xAA, 0x05, struct kernel_uffdio_move)

/* Linux 6.7: the kinds of pages in a range (ioctl on /proc/PID/pagemap). */
struct kernel_page_region {
    __u64 start, end;
    __u64 categories;
};
struct kernel_pagemap_scan {
    __u64 size;
    __u64 flags;
    __u64 start, end;
    __u64 walk_end;
    __u64 vec, vec_len;
    __u64 max_pages;
    __u64 category_inverted;
    __u64 category_mask;
    __u64 category_anyof_mask;
    __u64 return_mask;
};
#define KERNEL_PAGEMAP_SCAN _IOWR('f', 16, struct kernel_pagemap_scan)
#define KERNEL_PAGE_IS_HUGE (1 << 6)

#endif
