#ifndef HCA_EPOCH_H
#define HCA_EPOCH_H

/*
 * Epochs: a thread is inside one while it touches what belongs to another process. Whoever takes
 * such a thing away first makes it unfindable, then waits a grace period until every thread that
 * might still hold it has left its epoch, or has died.
 *
 * Entering costs a plain store: the waiting side pays with membarrier(2). Where that is refused,
 * strong_fences makes everyone pay.
 */

#include "hca/segment.h"

#include <assert.h>

extern _Thread_local struct thread_line *epoch_line __attribute__((tls_model("initial-exec")));

/* Before the first grace period of this process: whether membarrier(2) can be relied on. */
void epoch_choose_fences(void);
int epoch_init(void);
/* In a forked child. */
void epoch_forget(void);
void epoch_claim_line(void);
/* For the one thread that others wait for inside an epoch: it must not have to share a line. */
void epoch_claim_agent_line(void);
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

/* Waits until every thread that is inside an epoch now has left it. False: one of them is stopped
 * there, and may still write to what it had found. */
bool epoch_grace(void);

/* Releases what nobody can find any more, after a grace period. If a thread was given up on, then
 * only when that has gone on. */
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

/* A process has not answered for long: its threads that are inside an epoch count as stopped. */
void epoch_give_up_on(unsigned proc);

#endif
