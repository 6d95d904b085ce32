/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DMA_MAPPED_SHARE_H
#define DMA_MAPPED_SHARE_H

/* The owner's side of registered memory that peers map. */

#include "hca/mr.h"
#include "dma/mapped/rules.h"

/* attach_memory and detach_memory of struct hca_engine. */
void share_attach(struct shared_mr *mr);
void share_detach(struct shared_mr *mr);

/* The program has unmapped, moved or replaced this memory: peers must no longer use their mappings,
 * and all processes access it through the kernel only. */
void share_memory_gone(uint64_t addr, uint64_t length);

/* madvise() calls that expect private memory; true: executed here. */
bool share_discard(uint64_t addr, uint64_t length, int advice, int *result);

/* Held while memory is exchanged and during fork(), with signals and cancellation blocked. */
void share_lock(void);
void share_unlock(void);
/* In a forked child: forgets all regions and files of the parent, and releases the lock. */
void share_forget(void);

/* Logs how many regions were mapped or copied, and why: for --stats. */
void share_report(void);

#endif
