/* SPDX-License-Identifier: BSD-2-Clause */
/* Passive target: locks are words in the target's memory, taken by atomics. A lock is released
 * after everything else is complete, by an atomic that nobody waits for: what follows on the same
 * rail comes after it. */
#include "osc/osc.h"

#include <opal/runtime/opal_progress.h>

static uint64_t exclusive(const struct osc_window *window)
{
    return (uint64_t)(window->rank + 1) << 32;
}

static struct rma_copy lock_word(struct osc_target *target, void *buffer)
{
    return (struct rma_copy){ .local = buffer,
                              .regions = rma_buffer_regions(),
                              .remote = target->info.state + offsetof(struct osc_state, lock),
                              .rkeys = target->info.state_rkeys };
}

/* Adds to the lock word; nobody waits. */
static int add(struct osc_window *window, struct osc_target *target, uint64_t value)
{
    void *buffer = rma_buffer_get();
    struct osc_async_op *op = osc_async_begin(window, target, buffer);
    struct rma_copy word = lock_word(target, buffer);

    if (!op) {
        rma_buffer_put(buffer);
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    rma_fetch_add(osc_async_rma(op), &word, value);
    osc_async_end(op);
    return OMPI_SUCCESS;
}

/* Returns the old value in *old. */
static bool try(struct osc_window *window, struct osc_target *target, enum osc_lock kind,
                uint64_t *old)
{
    void *buffer = rma_buffer_get();
    struct rma_copy word = lock_word(target, buffer);
    struct osc_sync_op op;
    bool ok;

    osc_sync_begin(&op, target);
    if (kind == OSC_SHARED)
        rma_fetch_add(&op.op, &word, 1);
    else
        rma_compare_swap(&op.op, &word, 0, exclusive(window));
    ok = osc_sync_end(&op);
    *old = *(uint64_t *)buffer;
    rma_buffer_put(buffer);
    return ok;
}

bool osc_holder_failed(const struct osc_window *window, uint64_t mark)
{
    return mark && mark <= (uint64_t)window->ranks &&
           window->target[mark - 1].peer->endpoint->failed;
}

int osc_lock_take(struct osc_window *window, struct osc_target *target, enum osc_lock kind)
{
    uint64_t old;

    while (kind != OSC_NOCHECK) {
        if (!try(window, target, kind, &old))
            return mtl_unreachable();
        if (kind == OSC_SHARED ? !(old >> 32) : !old || old >> 32 == exclusive(window) >> 32)
            break;
        if (osc_holder_failed(window, old >> 32))
            return mtl_unreachable();
        if (kind == OSC_SHARED && add(window, target, -1ull) != OMPI_SUCCESS)
            return OMPI_ERR_OUT_OF_RESOURCE;
        rma_wait();
    }
    target->lock = kind;
    return OMPI_SUCCESS;
}

static int release(struct osc_window *window, struct osc_target *target)
{
    enum osc_lock kind = target->lock;

    target->lock = OSC_UNLOCKED;
    if (kind == OSC_NOCHECK || kind == OSC_UNLOCKED)
        return OMPI_SUCCESS;
    return add(window, target, kind == OSC_SHARED ? -1ull : -exclusive(window));
}

int osc_lock(int type, int rank, int assert, struct ompi_win_t *win)
{
    struct osc_window *window = osc_window_of(win);
    struct osc_target *target = &window->target[rank];
    enum osc_lock kind = type == MPI_LOCK_EXCLUSIVE ? OSC_EXCLUSIVE : OSC_SHARED;
    int status = OMPI_ERR_RMA_SYNC;

    mtl_enter();
    if (window->access == OSC_FENCED && !window->fence_used)
        window->access = OSC_NO_ACCESS;
    if ((window->access == OSC_NO_ACCESS || window->access == OSC_LOCKED) &&
        target->lock == OSC_UNLOCKED) {
        status = osc_lock_take(window, target, assert &MPI_MODE_NOCHECK ? OSC_NOCHECK : kind);
        if (status == OMPI_SUCCESS) {
            window->access = OSC_LOCKED;
            window->locks++;
        }
    }
    mtl_leave();
    return status;
}

int osc_unlock(int rank, struct ompi_win_t *win)
{
    struct osc_window *window = osc_window_of(win);
    struct osc_target *target = &window->target[rank];
    int status = OMPI_ERR_RMA_SYNC, released;

    mtl_enter();
    if (window->access == OSC_LOCKED && target->lock != OSC_UNLOCKED) {
        status = osc_drain(window, target);
        released = release(window, target);
        status = status == OMPI_SUCCESS ? released : status;
        if (!--window->locks)
            window->access = OSC_NO_ACCESS;
    }
    mtl_leave();
    return status;
}

/* Locks are taken by the first operation on each target. */
int osc_lock_all(int assert, struct ompi_win_t *win)
{
    struct osc_window *window = osc_window_of(win);
    int status = OMPI_ERR_RMA_SYNC;

    mtl_enter();
    if (window->access == OSC_FENCED && !window->fence_used)
        window->access = OSC_NO_ACCESS;
    if (window->access == OSC_NO_ACCESS) {
        window->access = OSC_LOCKED_ALL;
        for (int i = 0; i < window->ranks; i++)
            window->target[i].lock = assert &MPI_MODE_NOCHECK ? OSC_NOCHECK : OSC_UNLOCKED;
        status = OMPI_SUCCESS;
    }
    mtl_leave();
    return status;
}

int osc_unlock_all(struct ompi_win_t *win)
{
    struct osc_window *window = osc_window_of(win);
    int status = OMPI_ERR_RMA_SYNC;

    mtl_enter();
    if (window->access == OSC_LOCKED_ALL) {
        status = osc_drain(window, NULL);
        for (int i = 0; i < window->ranks; i++) {
            int released = release(window, &window->target[i]);

            status = status == OMPI_SUCCESS ? released : status;
        }
        window->access = OSC_NO_ACCESS;
    }
    mtl_leave();
    return status;
}

int osc_flush(int rank, struct ompi_win_t *win)
{
    struct osc_window *window = osc_window_of(win);
    int status = OMPI_ERR_RMA_SYNC;

    mtl_enter();
    if (window->access == OSC_LOCKED_ALL || window->access == OSC_LOCKED)
        status = osc_drain(window, &window->target[rank]);
    mtl_leave();
    return status;
}

int osc_flush_all(struct ompi_win_t *win)
{
    struct osc_window *window = osc_window_of(win);
    int status = OMPI_ERR_RMA_SYNC;

    mtl_enter();
    if (window->access == OSC_LOCKED_ALL || window->access == OSC_LOCKED)
        status = osc_drain(window, NULL);
    mtl_leave();
    return status;
}

int osc_sync(struct ompi_win_t *win)
{
    atomic_thread_fence(memory_order_seq_cst);
    /* A program that polls its own window must let others proceed. */
    opal_progress();
    return OMPI_SUCCESS;
}
