/* SPDX-License-Identifier: BSD-2-Clause */
/* What a receive queue has posted, and where in the program; and the memory of receives, which
 * belongs to the adapter until they complete. */
#ifndef CHECK_RECEIVES_H
#define CHECK_RECEIVES_H

#include "check/stacktrace.h"
#include "hca/observer.h"

/* These are what struct hca_observer has of receives. */
bool receives_posted(struct hca_rq *rq, uint32_t slot, uint32_t pd);
void receives_completes(struct hca_rq *rq, uint32_t slot, enum ibv_wc_status status,
                        uint32_t placed);
void receives_dropped(struct hca_rq *rq, bool for_good);

/* Where the receive in this slot was posted. False: it was not recorded. */
bool receives_stack(const struct hca_rq *rq, uint32_t slot, struct stacktrace *posted);

/* The program accesses this memory: by the instruction at `pc`, or NULL: by a system call. Returns
 * whether pages of receives were in its way; they are not any more. */
bool receives_touched(const void *addr, size_t length, const void *pc);
/* Pages of receives in this memory have to be accessible. */
void receives_accessible(const void *addr, size_t length);
/* The program unmaps this memory: receives in it are not watched any more. */
void receives_unmapped(const void *addr, size_t length);
/* After fork(), in the child: the receives are the parent's. */
void receives_inherit_none(void);

/* A request of a send queue uses this memory. */
void receives_not_here(uint64_t addr, uint64_t length);

#endif
