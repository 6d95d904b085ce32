#ifndef HCA_EPOCH_H
#define HCA_EPOCH_H

/*
 * Epochs: a thread is inside one while it touches what belongs to another process. Whoever takes
 * such a thing away first makes it unfindable, then waits a grace period until every thread that
 * might still hold it has left its epoch, or has died.
 *
 * Entering costs a plain store: the waiting side pays with membarrier(2). Where that does not
 * exist, strong_fences makes everyone pay.
 */

#include "hca/segment.h"

#include <assert.h>

extern _Thread_local struct thread_line *epoch_line __attribute__((tls_model("initial-exec")));

int epoch_init(void);
void epoch_claim_line(void);
void epoch_shared_enter(void);
void epoch_shared_exit(void);
extern struct thread_line *epoch_overflow_line;

static inline void epoch_enter(void)
{
    if (unlikely(!epoch_line))
        epoch_claim_line();
    if (unlikely(epoch_line == epoch_overflow_line))
        epoch_shared_enter();
    /* Odd whatever was there: a damaged line is right again after one round. */
    store_relaxed(&epoch_line->epoch, (load_relaxed(&epoch_line->epoch) + 1) | 1);
    if (unlikely(load_relaxed(&seg->strong_fences)))
        atomic_thread_fence(memory_order_seq_cst);
    else
        atomic_signal_fence(memory_order_seq_cst);
}

static inline void epoch_exit(void)
{
    store_release(&epoch_line->epoch, (load_relaxed(&epoch_line->epoch) | 1) + 1);
    if (unlikely(epoch_line == epoch_overflow_line))
        epoch_shared_exit();
}

/* Waits until every thread that is inside an epoch now has left it. */
void epoch_grace(void);

#endif
