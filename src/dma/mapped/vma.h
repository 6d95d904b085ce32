/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DMA_MAPPED_VMA_H
#define DMA_MAPPED_VMA_H

/* Queries the mappings of this process. */

#include "util/util.h"

#include <sys/types.h>

struct vma {
    uint64_t start, end;
    uint64_t offset; /* of start, in the file */
    uint64_t inode;  /* 0: no file */
    dev_t dev;
    uint64_t page_size;
    bool readable, writable, shared;
    bool is_stack;
    bool is_sysv; /* its inode is an id, which a file of ours may have as its inode, too */
};

/* A descriptor for queries; -1 with errno: needs Linux 6.11. */
int vma_open(void);
/* The mapping that covers the address; false if there is none. */
bool vma_at(int view, uint64_t addr, struct vma *vma);
/* The first shared file mapping at or after the address. */
bool vma_next_shared(int view, uint64_t addr, struct vma *vma);
/* Whether any of it is in transparent huge pages. */
bool vma_has_huge_pages(uint64_t addr, uint64_t length);

#endif
