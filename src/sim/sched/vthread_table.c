/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/sched/vthread_table.h"

#include "hca/proc.h"
#include "sim/sched/sched.h"
#include "sim/sched/vthread_watch.h"
#include "util/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Virtual: guests started from outside join at multiples of this time. */
#define ARRIVAL_NS 100000000

uint32_t vthread_next_order(void)
{
    static _Atomic uint32_t threads;
    const char *rank = getenv("VERBENA_RANK");
    uint32_t major = rank ? strtoul(rank, NULL, 10) : segment_config()->node;

    return major << 12 | (atomic_fetch_add(&threads, 1) & 0xfff);
}

/* A thread that has left, and hands over, still writes what the next owner would use. */
static bool is_free(const struct vthread *vthread)
{
    return load_acquire(&vthread->state) == VTHREAD_FREE &&
           (!load_acquire(&vthread->hands_over) || !vthread_alive(vthread));
}

struct vthread *vthread_alloc(void)
{
    for (uint32_t i = 0; i < VTHREADS_MAX; i++) {
        struct vthread *vthread = &sched->vthreads[i];

        if (!is_free(vthread))
            continue;
        if (i >= sched->vthread_high)
            sched->vthread_high = i + 1;
        vthread->process = proc_word(proc_self);
        vthread->proc = proc_self;
        vthread->empty_polls = 0;
        vthread->heard = sched->data_notifications;
        vthread->stalled_polls = vthread->stuck_polls = 0;
        vthread->guest = vthread->known_by_pid = vthread->spins = vthread->watched = false;
        vthread->tries_others = vthread->is_ahead = vthread->sleeps_if_unchanged = false;
        vthread->waits_for_cqe = false;
        vthread->polls_only = NULL;
        vthread->pid = vthread->tid = 0;
        store_relaxed(&vthread->sleeps_long, false);
        store_relaxed(&vthread->hands_over, false);
        vthread->waits_for = 0;
        vthread->deadline = SCHED_NEVER;
        return vthread;
    }
    log_error("too many threads in virtual time: the limit is %d", VTHREADS_MAX);
    return NULL;
}

void vthread_make_guest(struct vthread *vthread, uint32_t order)
{
    vthread->guest = true;
    vthread->number = ++sched->guest_count;
    vthread->order = order + vthread->number;
}

/* No other thread of its process has a vthread. */
static bool is_alone(const struct vthread *me)
{
    for (uint32_t i = 0; i < sched->vthread_high; i++) {
        const struct vthread *vthread = &sched->vthreads[i];

        if (vthread != me && load_acquire(&vthread->state) != VTHREAD_FREE &&
            vthread->process == me->process)
            return false;
    }
    return true;
}

static bool watches_unreserved;

void vthread_watch_unreserved(void)
{
    watches_unreserved = true;
}

/* Unreserved threads belong to a runtime, such as OpenMP, that may let them wait for each other in
 * ways that this library does not intercept. */
void vthread_joined_unreserved(struct vthread *me)
{
    if (!watches_unreserved || is_alone(me))
        return;
    for (uint32_t i = 0; i < sched->vthread_high; i++) {
        struct vthread *vthread = &sched->vthreads[i];

        if (vthread == me ||
            (load_acquire(&vthread->state) != VTHREAD_FREE && vthread->process == me->process))
            vthread->watched = true;
    }
}

struct vthread *vthread_left_by_exec(void)
{
    struct vthread *found = NULL;

    for (uint32_t i = 0; i < sched->vthread_high; i++) {
        struct vthread *vthread = &sched->vthreads[i], *other = vthread;

        if (load_acquire(&vthread->state) == VTHREAD_FREE || !vthread->known_by_pid ||
            vthread->pid != getpid())
            continue;
        /* exec keeps only the thread that called it, which is running. */
        if (!found || load_acquire(&sched->running) == i + 1) {
            other = found;
            found = vthread;
        }
        if (other)
            store_release(&other->state, VTHREAD_FREE);
    }
    return found;
}

#define START_TIMEOUT_MS 10000

static void await_programs(unsigned count)
{
    static const struct timespec pause = { .tv_nsec = 200000 };

    for (int tries = 0; tries < START_TIMEOUT_MS * 5; tries++) {
        if (load_acquire(&sched->programs) >= count)
            return;
        clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
    }
}

static bool starts_with_others(unsigned *before, unsigned *all)
{
    const char *text = getenv("VERBENA_START");

    return text && sscanf(text, "%u/%u", before, all) == 2;
}

void vthread_await_turn(void)
{
    unsigned before, all;

    if (starts_with_others(&before, &all))
        await_programs(before);
}

void vthread_await_others(void)
{
    unsigned before, all;

    if (starts_with_others(&before, &all))
        await_programs(all);
}

uint64_t vthread_arrival_time(void)
{
    uint64_t latest = sched->now;
    bool alone = true;

    for (uint32_t i = 0; i < sched->vthread_high; i++) {
        const struct vthread *vthread = &sched->vthreads[i];

        if (load_acquire(&vthread->state) == VTHREAD_FREE)
            continue;
        alone = false;
        if (vthread->clock > latest)
            latest = vthread->clock;
    }
    return alone && !latest ? 0 : round_up(latest + 1, ARRIVAL_NS);
}
