/* SPDX-License-Identifier: BSD-2-Clause */
/* How processes and threads of guests come and go: fork, exec, exit. */
#include "sim/sched/processes.h"

#include "hca/proc.h"
#include "hca/shm_lock.h"
#include "sim/sched/sched.h"
#include "sim/sched/vthread_index.h"
#include "sim/sched/vthread_table.h"

#include <sys/syscall.h>
#include <unistd.h>

struct vthread *sched_reserve(void)
{
    struct vthread *me = sched_self(), *vthread;

    if (!me)
        return NULL;
    sched_sync();
    shm_lock(&sched->join_lock);
    vthread = vthread_alloc();
    if (vthread) {
        if (me->guest)
            vthread_make_guest(vthread, me->order);
        else
            vthread->order = vthread_next_order();
        vthread->clock = me->clock;
        store_release(&vthread->state, VTHREAD_READY);
        vthread_index_stale();
    }
    shm_unlock(&sched->join_lock);
    return vthread;
}

void sched_unreserve(struct vthread *vthread)
{
    store_release(&vthread->state, VTHREAD_FREE);
    vthread_index_stale();
}

void sched_adopt(struct vthread *vthread)
{
    vthread->process = proc_word(proc_self);
    vthread->proc = proc_self;
    vthread->pid = getpid();
    vthread->tid = syscall(SYS_gettid);
    vthread->known_by_pid = false;
    vthread_index_stale();
    sched_start(vthread);
}

bool sched_join_guest(void)
{
    struct vthread *me;
    bool is_new = false;

    if (sched_current())
        return true;
    vthread_await_turn();
    shm_lock(&sched->join_lock);
    me = vthread_left_by_exec();
    if (me && load_acquire(&me->state) == VTHREAD_DETACHED) {
        me->clock = me->clock < sched->now ? sched->now : me->clock;
        store_release(&me->state, VTHREAD_READY);
    } else if (!me && (me = vthread_alloc())) {
        is_new = true;
        vthread_make_guest(me, segment_config()->node << 20);
        me->clock = vthread_arrival_time();
        store_release(&me->state, VTHREAD_READY);
        atomic_fetch_add(&sched->programs, 1);
    }
    vthread_index_stale();
    shm_unlock(&sched->join_lock);
    if (is_new)
        vthread_await_others();
    if (me)
        sched_adopt(me);
    return me;
}

static bool can_watch(const struct vthread *vthread, const struct vthread *runner)
{
    return load_acquire(&vthread->state) != VTHREAD_FREE && vthread->process != runner->process &&
           load_acquire(&vthread->waits_to_run);
}

/* Wakes a vthread of another process, which then checks often (EXIT_WATCH_NS) whether this one has
 * ended. */
static void call_watcher(const struct vthread *me)
{
    uint32_t id = load_relaxed(&sched->watcher);

    for (uint32_t i = 0; !id || !can_watch(&sched->vthreads[id - 1], me); i++) {
        if (i == sched->vthread_high)
            return;
        id = i + 1;
    }
    store_release(&sched->watcher, id);
    sched_wake_thread(&sched->vthreads[id - 1]);
}

void sched_exiting(void)
{
    struct vthread *me = sched_current();

    if (!me)
        return;
    sched_rejoin(me);
    for (uint32_t i = 0; i < sched->vthread_high; i++) {
        struct vthread *vthread = &sched->vthreads[i];

        if (load_relaxed(&vthread->state) != VTHREAD_FREE && vthread->guest &&
            vthread->process == me->process)
            vthread->known_by_pid = true;
    }
    call_watcher(me);
}

void sched_exec_failed(void)
{
    struct vthread *me = sched_current();

    if (!me)
        return;
    for (uint32_t i = 0; i < sched->vthread_high; i++) {
        struct vthread *vthread = &sched->vthreads[i];

        if (load_relaxed(&vthread->state) == VTHREAD_FREE || vthread->process != me->process)
            continue;
        if (!vthread->pid || vthread->pid == me->pid) /* else reserved for a child */
            vthread->known_by_pid = false;
    }
}

void sched_stop(void)
{
    struct vthread *me = sched_current();

    if (me && me->guest)
        sched_exiting();
    else
        sched_leave();
}
