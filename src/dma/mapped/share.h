#ifndef LIVE_SHARE_H
#define LIVE_SHARE_H

/* The owner's side of registered memory that peers map. */

#include "hca/mr.h"
#include "dma/mapped/rules.h"

/* A region gets its memory, or gives it back: see hca/engine.h. */
void share_attach(struct shared_mr *mr);
void share_detach(struct shared_mr *mr);

/* The program has unmapped, moved or replaced this memory of its own: peers must not go on using
 * what was there, and nobody may touch it but through the kernel. */
void share_memory_gone(uint64_t addr, uint64_t length);

/* madvise() for memory that it expects to be private: true if it was done here. */
bool share_discard(uint64_t addr, uint64_t length, int advice, int *result);

/* Held while memory is exchanged and while a child is forked, with signals and cancellation put
 * off. */
void share_lock(void);
void share_unlock(void);
/* A forked child has no region, and no file of its parent's. Ends the lock in it. */
void share_forget(void);

/* How many regions met which fate, since the start: for --stats, and for the log. */
void share_report(void);

#endif
