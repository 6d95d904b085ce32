#ifndef LIVE_RULES_H
#define LIVE_RULES_H

/* Which regions peers may map, and why the others stay with the cross-process copy. */

#include "dma/mapped/swap.h"
#include "dma/mapped/vma.h"
#include "dma/mr_mode.h"

enum share_reason {
    SHARED, /* no reason against it */
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
    SHARE_REASONS,
};

/* For people: "pages are pinned by the kernel". */
const char *rules_reason_text(enum share_reason reason);

/* A region that is being registered. */
struct candidate {
    enum mr_mode mode;
    uint64_t addr, length;
    unsigned access;
};

/* What can be told without looking at its memory. */
enum share_reason rules_for_region(const struct candidate *c);
/* What one stretch of its memory says, if it is not a file of ours already. */
enum share_reason rules_for_stretch(const struct candidate *c, const struct vma *vma,
                                    uint64_t start, uint64_t length);
/* What an attempt to exchange it came to (swap.h). */
enum share_reason rules_after_swap(int err);

#endif
