/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/sched/vthread_notify.h"

#include "sim/sched/sched.h"
#include "sim/sched/vthread_index.h"

uint64_t vthread_poll_that_sees(const struct vthread *vthread, uint64_t change)
{
    return sched_poll_that_sees(change, vthread->idle_since, vthread->period);
}

uint32_t vthread_empty_polls(struct vthread *vthread)
{
    if (vthread->heard != sched->data_notifications) {
        vthread->heard = sched->data_notifications;
        vthread->empty_polls = 0;
    }
    return vthread->empty_polls;
}

uint32_t vthread_count_empty_poll(struct vthread *vthread)
{
    return vthread->empty_polls = vthread_empty_polls(vthread) + 1;
}

/* A guest that has only ever polled CQs sees nothing of what other processes do. */
static bool may_see(const struct vthread *vthread, const struct notification *n)
{
    return vthread->guest && n->what & NOTIFY_DATA &&
           (vthread->tries_others || vthread->process == n->from->process);
}

static bool concerns(const struct vthread *vthread, const struct notification *n)
{
    return vthread->waits_for & n->what &&
           (!vthread->waits_key || !n->key || vthread->waits_key == n->key);
}

static void wake_if_concerned(struct vthread *vthread, const struct notification *n)
{
    uint32_t state = load_relaxed(&vthread->state);

    if (state == VTHREAD_POLLING && may_see(vthread, n))
        vthread->clock = vthread_poll_that_sees(vthread, n->time);
    else if (state == VTHREAD_WAITING && concerns(vthread, n))
        vthread->clock = n->time > vthread->clock ? n->time : vthread->clock;
    else
        return;
    vthread->empty_polls = 0;
    store_release(&vthread->state, VTHREAD_READY);
    vthread_index_update(vthread);
}

static void notify_list(uint32_t list, const struct notification *n)
{
    struct vthread *next;

    for (struct vthread *vthread = vthread_index_first_listener(list); vthread; vthread = next) {
        next = vthread_index_next_listener(vthread);
        wake_if_concerned(vthread, n);
    }
}

static void notify_own_process(const struct notification *n)
{
    for (struct vthread *vthread = vthread_index_first_of(n->from->proc); vthread;
         vthread = vthread_index_next_of(vthread))
        wake_if_concerned(vthread, n);
}

void vthread_notify(const struct notification *n)
{
    vthread_index_refresh();
    if (n->what & NOTIFY_DATA)
        sched->data_notifications++;
    if (n->what & NOTIFY_LOCK)
        notify_list(LISTENS_TO_LOCKS, n);
    if (!(n->what & (NOTIFY_DATA | NOTIFY_SPACE)))
        return;
    notify_own_process(n);
    notify_list(LISTENS_TO_ALL, n);
    if (n->key) {
        notify_list(vthread_index_listeners_of(n->key), n);
        return;
    }
    for (uint32_t list = LISTENS_BY_KEY; list < LISTENER_LISTS; list++)
        notify_list(list, n);
}
