/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DMA_MAPPED_EXTENT_H
#define DMA_MAPPED_EXTENT_H

/*
 * The files behind exchanged memory (swap.h): one for each range, sealed, sparse and much larger
 * than the range, so that mremap() grows into zeros.
 *
 * The program may have split, moved or unmapped a range since: only the kernel knows what is mapped
 * where. So files are identified by inode. An extent exists while any of its file is mapped, but
 * its descriptor may be closed; then munmap() alone frees the memory.
 */

#include "dma/mapped/vma.h"

struct extent {
    uint64_t inode;
    dev_t dev;
    int fd;         /* -1: closed, by us or by the program */
    unsigned users; /* regions */
    uint64_t bytes;
    uint64_t idle_since; /* a counter */
};

/* Called with the share lock held. */
struct extent *extent_find(const struct vma *vma);
/* Creates and opens a file for `bytes` bytes. NULL with errno. */
struct extent *extent_create(uint64_t bytes);
/* Deletes an extent that is not mapped yet. */
void extent_discard(struct extent *extent);
/* Its descriptor, reopened through that mapping if need be and possible; else -1. */
int extent_fd(struct extent *extent, const struct vma *vma);
void extent_use(struct extent *extent);
void extent_unuse(struct extent *extent);
/* Whether extents use so many descriptors that the program may run out. */
bool extent_too_many(void);
unsigned extent_count(void);
/* In a forked child: close the descriptors first, forget the extents later. */
void extent_close_all(void);
void extent_forget(void);

#endif
