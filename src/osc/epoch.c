/* SPDX-License-Identifier: BSD-2-Clause */
/* Fences, and post, start, complete, wait. MPI_Win_post() and MPI_Win_complete() write counters
 * into the memory of the peer, which polls its own. */
#include "osc/osc.h"

#include <opal/runtime/opal_progress.h>

#include <stdlib.h>

#define PROBE_NS 500000000ull /* between two checks whether a silent peer is alive */

/* Under MPI_Win_lock_all(), the first operation on a target takes its lock. */
static int lock_if_due(struct osc_window *window, struct osc_target *target)
{
    int status = OMPI_SUCCESS;

    while (target->locking)
        rma_wait();
    if (target->lock == OSC_UNLOCKED) {
        target->locking = true;
        status = osc_lock_take(window, target, OSC_SHARED);
        target->locking = false;
    }
    return status;
}

int osc_may_access(struct osc_window *window, struct osc_target *target)
{
    switch (window->access) {
    case OSC_FENCED:
        window->fence_used = true;
        return OMPI_SUCCESS;
    case OSC_STARTED:
        return target->started ? OMPI_SUCCESS : OMPI_ERR_RMA_SYNC;
    case OSC_LOCKED:
        return target->lock != OSC_UNLOCKED ? OMPI_SUCCESS : OMPI_ERR_RMA_SYNC;
    case OSC_LOCKED_ALL:
        return lock_if_due(window, target);
    default:
        return OMPI_ERR_RMA_SYNC;
    }
}

static bool drain_short_puts(struct rma_op *puts)
{
    bool failed;

    while (puts->left > 1)
        rma_wait();
    failed = puts->failed;
    puts->failed = false;
    return failed;
}

int osc_drain(struct osc_window *window, struct osc_target *target)
{
    const uint32_t *pending = target ? &target->pending : &window->pending;
    struct osc_target *first = target ? target : window->target;
    struct osc_target *end = target ? target + 1 : window->target + window->ranks;
    bool failed = false;

    for (struct osc_target *each = first; each < end; each++)
        failed |= drain_short_puts(&each->short_puts);
    while (*pending)
        rma_wait();
    failed |= window->failed;
    window->failed = false;
    return failed ? mtl_unreachable() : OMPI_SUCCESS;
}

int osc_wait_counter(struct osc_target *target, const _Atomic uint64_t *counter, uint64_t value)
{
    uint64_t next = coarse_now_ns() + PROBE_NS;

    while (load_acquire(counter) < value) {
        if (target->peer->endpoint->failed)
            return mtl_unreachable();
        if (!vtime.on && coarse_now_ns() > next) {
            if (!rma_is_alive(target->peer))
                return mtl_unreachable();
            next = coarse_now_ns() + PROBE_NS;
        }
        rma_wait();
    }
    return OMPI_SUCCESS;
}

/* ---- fence ---- */

void osc_leave_fence(struct osc_window *window)
{
    if (window->access == OSC_FENCED && !window->fence_used)
        window->access = OSC_NO_ACCESS;
}

static int barrier(struct osc_window *window)
{
    return window->comm->c_coll->coll_barrier(window->comm,
                                              window->comm->c_coll->coll_barrier_module);
}

int osc_fence(int assert, struct ompi_win_t *win)
{
    struct osc_window *window = osc_window_of(win);
    int status, barrier_status;

    mtl_enter();
    if ((window->access != OSC_NO_ACCESS && window->access != OSC_FENCED) || window->exposed) {
        mtl_leave();
        return OMPI_ERR_RMA_SYNC;
    }
    status = osc_drain(window, NULL);
    window->access = assert &MPI_MODE_NOSUCCEED ? OSC_NO_ACCESS : OSC_FENCED;
    window->fence_used = false;
    mtl_leave();
    barrier_status = barrier(window);
    return status == OMPI_SUCCESS ? barrier_status : status;
}

/* ---- post, start, complete, wait ---- */

/* Ranks of the window that are in the group; NULL if there is no memory. */
static int *ranks_of(struct osc_window *window, ompi_group_t *group)
{
    int size = ompi_group_size(group);
    int *ranks = malloc((2 * size + 1) * sizeof(*ranks));

    if (!ranks)
        return NULL;
    for (int i = 0; i < size; i++)
        ranks[size + i] = i;
    ompi_group_translate_ranks(group, size, ranks + size, window->win->w_group, ranks);
    return ranks;
}

/* Writes a counter into the memory of the target; nobody waits. */
static int tell(struct osc_window *window, struct osc_target *target, uint64_t where,
                uint64_t count)
{
    struct rma_copy word;
    struct osc_async_op *op = osc_async_begin_word(window, target, where, &word);

    if (!op)
        return OMPI_ERR_OUT_OF_RESOURCE;
    *(uint64_t *)word.local = count;
    rma_write(osc_async_rma(op), &word, RMA_IN_ORDER);
    osc_async_end(op);
    return OMPI_SUCCESS;
}

static const _Atomic uint64_t *own_posted(struct osc_window *window, int by)
{
    return (_Atomic uint64_t *)(uintptr_t)osc_posted(window, &window->target[window->rank], by);
}

static const _Atomic uint64_t *own_completed(struct osc_window *window, int by)
{
    return (_Atomic uint64_t *)(uintptr_t)osc_completed(window, &window->target[window->rank], by);
}

int osc_post(struct ompi_group_t *group, int assert, struct ompi_win_t *win)
{
    struct osc_window *window = osc_window_of(win);
    int status = OMPI_SUCCESS;

    if (window->exposed)
        return OMPI_ERR_RMA_SYNC;
    window->post_ranks = ranks_of(window, group);
    if (!window->post_ranks)
        return OMPI_ERR_OUT_OF_RESOURCE;
    OBJ_RETAIN(group);
    window->post_group = group;
    window->exposed = true;
    mtl_enter();
    for (int i = 0; i < ompi_group_size(group) && status == OMPI_SUCCESS; i++) {
        struct osc_target *target = &window->target[window->post_ranks[i]];

        status = tell(window, target, osc_posted(window, target, window->rank), ++target->posts);
    }
    mtl_leave();
    return status;
}

int osc_start(struct ompi_group_t *group, int assert, struct ompi_win_t *win)
{
    struct osc_window *window = osc_window_of(win);
    int status = OMPI_SUCCESS;

    osc_leave_fence(window);
    if (window->access != OSC_NO_ACCESS)
        return OMPI_ERR_RMA_SYNC;
    window->start_ranks = ranks_of(window, group);
    if (!window->start_ranks)
        return OMPI_ERR_OUT_OF_RESOURCE;
    OBJ_RETAIN(group);
    window->start_group = group;
    window->access = OSC_STARTED;
    mtl_enter();
    for (int i = 0; i < ompi_group_size(group) && status == OMPI_SUCCESS; i++) {
        int rank = window->start_ranks[i];
        struct osc_target *target = &window->target[rank];

        target->started = true;
        status = osc_wait_counter(target, own_posted(window, rank), ++target->posts_seen);
    }
    mtl_leave();
    return status;
}

int osc_complete(struct ompi_win_t *win)
{
    struct osc_window *window = osc_window_of(win);
    int status;

    if (window->access != OSC_STARTED)
        return OMPI_ERR_RMA_SYNC;
    mtl_enter();
    status = osc_drain(window, NULL);
    for (int i = 0; i < ompi_group_size(window->start_group); i++) {
        struct osc_target *target = &window->target[window->start_ranks[i]];

        target->started = false;
        tell(window, target, osc_completed(window, target, window->rank), ++target->completes);
    }
    window->access = OSC_NO_ACCESS;
    mtl_leave();
    OBJ_RELEASE(window->start_group);
    window->start_group = NULL;
    free(window->start_ranks);
    window->start_ranks = NULL;
    return status;
}

static void end_exposure(struct osc_window *window)
{
    for (int i = 0; i < ompi_group_size(window->post_group); i++)
        window->target[window->post_ranks[i]].completes_seen++;
    window->exposed = false;
    OBJ_RELEASE(window->post_group);
    window->post_group = NULL;
    free(window->post_ranks);
    window->post_ranks = NULL;
}

int osc_wait(struct ompi_win_t *win)
{
    struct osc_window *window = osc_window_of(win);
    int status = OMPI_SUCCESS;

    if (!window->exposed)
        return OMPI_ERR_RMA_SYNC;
    mtl_enter();
    for (int i = 0; i < ompi_group_size(window->post_group) && status == OMPI_SUCCESS; i++) {
        int rank = window->post_ranks[i];
        struct osc_target *target = &window->target[rank];

        status = osc_wait_counter(target, own_completed(window, rank), target->completes_seen + 1);
    }
    end_exposure(window);
    mtl_leave();
    return status;
}

int osc_test(struct ompi_win_t *win, int *flag)
{
    struct osc_window *window = osc_window_of(win);

    if (!window->exposed)
        return OMPI_ERR_RMA_SYNC;
    opal_progress();
    *flag = 1;
    for (int i = 0; i < ompi_group_size(window->post_group); i++) {
        int rank = window->post_ranks[i];

        *flag &= load_acquire(own_completed(window, rank)) > window->target[rank].completes_seen;
    }
    if (*flag)
        end_exposure(window);
    return OMPI_SUCCESS;
}
