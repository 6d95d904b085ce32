#ifndef LIVE_EXTENT_H
#define LIVE_EXTENT_H

/*
 * The files behind memory that was exchanged (swap.h): one to each stretch, sealed, sparse and much
 * larger than the stretch, so that mremap() grows into zeros.
 *
 * What counts is what the kernel says is mapped where: a stretch may be cut, moved or gone since.
 * So a file is known by its inode. It must stay known while any of it is mapped, but its descriptor
 * may be let go, and then munmap() alone frees the memory.
 */

#include "dma/mapped/vma.h"

struct extent {
    uint64_t inode;
    dev_t dev;
    int fd;         /* -1: let go, or closed by the program */
    unsigned users; /* regions */
    uint64_t bytes;
    uint64_t idle_since; /* a counter */
};

/* Called with the share lock held. */
struct extent *extent_find(const struct vma *vma);
/* A new file for that many bytes, with its descriptor open. NULL with errno. */
struct extent *extent_create(uint64_t bytes);
/* Gives up one that nothing maps yet. */
void extent_discard(struct extent *extent);
/* Its descriptor, if it has one or can have one again by way of that mapping; else -1. */
int extent_fd(struct extent *extent, const struct vma *vma);
void extent_use(struct extent *extent);
void extent_unuse(struct extent *extent);
/* No more descriptors for the sake of speed: the program may need them. */
bool extent_too_many(void);
unsigned extent_count(void);
/* In a forked child: first the descriptors, later what is known of the files. */
void extent_close_all(void);
void extent_forget(void);

#endif
