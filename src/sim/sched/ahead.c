/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/sched/ahead.h"

#include "sim/memory/pool.h"
#include "sim/sched/sched.h"
#include "sim/sched/vthread_index.h"

/* A guest may look at its memory at any time, as may a thread that spins on memory: what is due by then
 * must have been written. Threads of one process share QPs. */
bool ahead_allowed(const struct vthread *me)
{
    return !me->guest && !me->spins && vthread_index_is_alone(me);
}

bool ahead_add(struct vthread *me, const struct event *event)
{
    struct ahead_event *added = pool_take_block(sizeof(*added));

    if (!added)
        return false;
    *added = (struct ahead_event){ .created = me->clock,
                                   .time = event->time,
                                   .object = event->object,
                                   .argument = event->argument,
                                   .kind = event->kind };
    if (me->ahead_first)
        me->ahead_last->next = added;
    else
        me->ahead_first = added;
    me->ahead_last = added;
    return true;
}

static void create_first(struct vthread *vthread)
{
    struct ahead_event *first = vthread->ahead_first;

    vthread->ahead_first = first->next;
    event_at(first->time, first->kind, first->object, first->argument);
    pool_give_block(first, sizeof(*first));
}

void ahead_create_all(struct vthread *vthread)
{
    while (vthread->ahead_first)
        create_first(vthread);
}

static void poll_in_vain(struct vthread *vthread)
{
    vthread->polls_before_sleep--;
    vthread->empty_polls++;
    vthread->clock += vthread->period;
}

static void begin_to_poll(struct vthread *vthread)
{
    vthread->sleeps_if_unchanged = false;
    vthread->has_slept = true;
    vthread->empty_polls++;
    vthread->waits_for_cqe = vthread->sleeps_for_cqe;
    vthread->idle_since = vthread->yielded_at = vthread->last_action_at = vthread->clock;
    store_release(&vthread->state, VTHREAD_POLLING);
}

bool ahead_act(struct vthread *vthread)
{
    if (vthread->ahead_first)
        create_first(vthread);
    else if (!vthread->sleeps_if_unchanged || vthread->heard != sched->data_notifications)
        return false;
    else if (vthread->polls_before_sleep)
        poll_in_vain(vthread);
    else
        begin_to_poll(vthread);
    vthread_index_update(vthread);
    return true;
}
