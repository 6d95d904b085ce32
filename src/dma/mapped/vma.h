#ifndef LIVE_VMA_H
#define LIVE_VMA_H

/* What the kernel says about mappings of this process. */

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
};

/* A view to ask many questions with; -1 with errno where the kernel has none (Linux 6.11). */
int vma_open(void);
/* The mapping that covers the address; false if there is none. */
bool vma_at(int view, uint64_t addr, struct vma *vma);
/* The first shared mapping of a file at or behind the address. */
bool vma_next_shared(int view, uint64_t addr, struct vma *vma);
/* Whether any of it is in pages larger than usual that the kernel made by itself. */
bool vma_has_huge_pages(uint64_t addr, uint64_t length);

#endif
