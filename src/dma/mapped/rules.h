/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DMA_MAPPED_RULES_H
#define DMA_MAPPED_RULES_H

/* Which regions peers may map, and why others are copied. */

#include "dma/mapped/swap.h"
#include "dma/mapped/vma.h"
#include "dma/mr_mode.h"

enum share_reason {
    SHARED, /* peers may map it */
    WHY_ASKED,
    WHY_KERNEL,
    WHY_THREADS,
    WHY_NOT_REMOTE,
    WHY_ON_DEMAND,
    WHY_UNALIGNED,
    WHY_LARGE,
    WHY_NOT_THERE,
    WHY_PIECES,
    WHY_FILE,
    WHY_READ_ONLY,
    WHY_STACK,
    WHY_HUGE,
    WHY_THP,
    WHY_DESCRIPTORS,
    WHY_LET_GO,
    WHY_PINNED,
    WHY_LOCKED,
    WHY_WATCHED,
    WHY_NO_MEMORY,
    WHY_UNUSED,
    SHARE_REASONS,
};

/* A message such as "pages are pinned by the kernel". */
const char *rules_reason_text(enum share_reason reason);

/* A region that peers may map. */
struct candidate {
    enum mr_mode mode;
    uint64_t addr, length;
    unsigned access;
    bool in_background; /* the program runs meanwhile */
};

/* Rules for every region, when it is registered, in the thread that registers it. */
enum share_reason rules_for_region(const struct candidate *c);
/* Rules for memory that is to be exchanged. */
enum share_reason rules_for_exchange(const struct candidate *c);
/* Rules for one range of its memory that is not exchanged yet. */
enum share_reason rules_for_range(const struct candidate *c, const struct vma *vma, uint64_t start,
                                  uint64_t length);
/* The reason for an error of swap_for_file(). */
enum share_reason rules_after_swap(int err);

#endif
