/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef HCA_EPOCH_H
#define HCA_EPOCH_H

/*
 * Epochs: a thread is inside an epoch while it accesses objects of another process. To free an
 * object, its owner first makes it unfindable, then waits a grace period until every thread that
 * might still use it has left its epoch, or has died.
 *
 * Entering costs a plain store: the waiting side pays with membarrier(2). Where that is refused,
 * strong_fences makes everyone pay.
 */

#include "hca/segment.h"

#include <assert.h>

extern _Thread_local struct thread_line *epoch_line __attribute__((tls_model("initial-exec")));

/* Call before the first grace period: finds out whether membarrier(2) works. */
void epoch_choose_fences(void);
int epoch_init(void);
/* In a forked child. */
void epoch_forget(void);
void epoch_claim_line(void);
/* For a thread that others wait for inside an epoch: gives it a line of its own. */
void epoch_claim_agent_line(void);
/* Another process may have overwritten lines, for which grace periods then wait: those that no
 * thread of this process uses, and that of the calling thread, which polls in vain. */
void epoch_repair_lines(void);
void epoch_repair_own_line(void);
void epoch_shared_enter(void);
void epoch_shared_exit(void);
extern struct thread_line *epoch_overflow_line;

static inline void epoch_enter(void)
{
    if (unlikely(!epoch_line))
        epoch_claim_line();
    if (unlikely(epoch_line == epoch_overflow_line))
        epoch_shared_enter();
    /* Odd whatever was there: a corrupted line is valid again after one epoch. */
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

/* Waits until every thread that is now inside an epoch has left it. False: a thread is stopped
 * inside its epoch, and may still write to objects it had found. */
bool epoch_grace(void);

/* Frees an unfindable object after a grace period; if a thread is stopped inside its epoch, only
 * after that thread has continued. */
extern atomic_uint epoch_given_up;
void epoch_retire_slowly(void (*release)(void *object, uint64_t detail), void *object,
                         uint64_t detail);
static inline void epoch_retire(void (*release)(void *object, uint64_t detail), void *object,
                                uint64_t detail)
{
    if (likely(!load_acquire(&epoch_given_up)))
        release(object, detail);
    else
        epoch_retire_slowly(release, object, detail);
}

/* A process has not responded for long: treat its threads inside an epoch as stopped. */
void epoch_give_up_on(unsigned proc);

#endif
