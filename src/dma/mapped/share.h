/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DMA_MAPPED_SHARE_H
#define DMA_MAPPED_SHARE_H

/* The owner's side of registered memory that peers map. */

#include "hca/mr.h"
#include "dma/mapped/rules.h"

/* attach_memory and detach_memory of struct hca_engine. */
void share_attach(struct shared_mr *mr);
void share_detach(struct shared_mr *mr);

/* share_memory of struct hca_engine: lets peers map the regions that they have used enough. */
void share_used(void);

/* Around a call that may unmap, move or replace this memory, which then is not exchanged meanwhile.
 * Returns whether the other functions need to be called. */
bool share_change_begin(uint64_t addr, uint64_t length);
/* The call has succeeded for this memory: peers must no longer use their mappings, and all processes
 * access it through the kernel only. */
void share_change_gone(uint64_t addr, uint64_t length);
void share_change_end(void);
/* The length of the System V segment that is attached there, if peers may map parts of any; else
 * 0. */
uint64_t share_segment_at(const void *addr);

/* madvise() calls that expect private memory; true: executed here. */
bool share_discard(uint64_t addr, uint64_t length, int advice, int *result);

/* Held while memory is exchanged and during fork(), with signals and cancellation blocked. A thread
 * may take it again: other libraries deregister memory inside munmap(). */
void share_lock(void);
void share_unlock(void);
/* In a forked child: forgets all regions and files of the parent, and releases the lock. */
void share_forget(void);

/* Logs how many regions were mapped or copied, and why: for --stats. */
void share_report(void);

#endif
