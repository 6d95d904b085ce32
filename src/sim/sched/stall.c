/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/sched/stall.h"

#include "hca/proc.h"
#include "hca/shm_lock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STALLS_OPEN        400  /* in a row of every thread: two seconds and more of real time */
#define STALLS_CLOSED      40   /* the same if no program can come any more */
#define CERTAIN_WEIGHT     4    /* of a stall that nothing else can end either */
#define REPORTS_TIMEOUT_MS 5000 /* for the other threads to report as well */
#define DEADLOCK_STATUS    1

/* What counts as a deadlock. */
static enum { DEADLOCK_AUTO, DEADLOCK_OFF, DEADLOCK_ANY } mode;
/* Programs that are expected to join: before that, a stall is no deadlock. */
static uint32_t programs_expected = 2;
static uint32_t stalls_needed = STALLS_OPEN;

#define POLLS_SHARE 64 /* that many threads poll at the full rate, together */

/* Of many threads each polls less often, and each of its polls counts for more. */
static uint32_t weight_of_poll(void)
{
    return 1 + sched->vthread_high / POLLS_SHARE;
}

uint64_t stall_interval(void)
{
    return (uint64_t)STALL_POLL_NS * weight_of_poll();
}

static __thread const struct sched_reason *reason;

void stall_init(void)
{
    const char *text = getenv("VERBENA_DEADLOCK");
    uint32_t number = text ? strtoul(text, NULL, 10) : 0;

    if (text && !strcmp(text, "off"))
        mode = DEADLOCK_OFF;
    else if (text && (!strcmp(text, "any") || number))
        mode = DEADLOCK_ANY;
    if (number) {
        programs_expected = number;
        stalls_needed = STALLS_CLOSED;
    }
}

/* Does not change while nothing happens. */
static uint64_t steps(void)
{
    return sched->events_run + sched->switches;
}

uint64_t sched_stalled_ms(void)
{
    struct vthread *me = sched_self();

    return me && me->stalled_at == steps() ? me->stalled_polls * (STALL_POLL_NS / 1000000) : 0;
}

void stall_waits_for(struct vthread *me, const struct sched_reason *why)
{
    reason = why;
    me->waits_for_outside = !why || why->outside;
}

void stall_watches_clock(struct vthread *me)
{
    me->stuck_polls = 0;
}

void sched_found_ready(void)
{
    struct vthread *me = sched_self();

    if (me)
        me->stuck_polls = 0;
}

static bool rests(uint32_t state)
{
    return state == VTHREAD_POLLING || state == VTHREAD_BLOCKED || state == VTHREAD_WAITING;
}

static bool is_stuck(const struct vthread *vthread, bool is_me)
{
    if (!vthread->guest || (!is_me && !rests(load_acquire(&vthread->state))))
        return false;
    return vthread->stalled_at == steps() && vthread->stuck_polls >= stalls_needed &&
           vthread->deadline == SCHED_NEVER;
}

/* Whether every thread is stuck. Threads that have not returned from a stall yet are given time. */
static bool is_deadlock(const struct vthread *me)
{
    uint32_t count = 0;

    if (mode == DEADLOCK_OFF || load_acquire(&sched->programs) < programs_expected)
        return false;
    for (uint32_t i = 0; i < sched->vthread_high; i++) {
        const struct vthread *vthread = &sched->vthreads[i];

        if (load_acquire(&vthread->state) == VTHREAD_FREE)
            continue;
        if (!is_stuck(vthread, vthread == me))
            return false;
        count++;
    }
    sched->deadlocked_threads = count;
    return true;
}

/* A process that has left virtual time, but not ended, has not closed its sockets yet. */
static bool somebody_leaves(void)
{
    proc_reap_dead();
    for (unsigned i = 0; i < load_acquire(&seg->proc_high) && i < MAX_PROCS; i++) {
        if (load_acquire(&proc_slot(i)->state) == PROC_LEAVING)
            return true;
    }
    return false;
}

static void wait_for_reports(void)
{
    static const struct timespec pause = { .tv_nsec = 1000000 };

    for (int ms = 0; ms < REPORTS_TIMEOUT_MS; ms++) {
        if (load_acquire(&sched->deadlock_reports) >= sched->deadlocked_threads)
            return;
        clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
    }
}

/* Each thread reports its own wait, one at a time; then all processes end. */
static void report_and_exit(void)
{
    shm_lock(&sched->deadlock_lock);
    sched_report_deadlock(reason);
    atomic_fetch_add(&sched->deadlock_reports, 1);
    shm_unlock(&sched->deadlock_lock);
    wait_for_reports();
    fflush_unlocked(stdout);
    _exit(DEADLOCK_STATUS);
}

void stall_check(void)
{
    if (unlikely(load_acquire(&sched->deadlocked)))
        report_and_exit();
}

static bool has_children(void)
{
    return !syscall(SYS_waitid, P_ALL, 0, NULL, WEXITED | WNOHANG | WNOWAIT, NULL);
}

static bool is_internet_socket(int fd)
{
    int domain = AF_UNSPEC;
    socklen_t size = sizeof(domain);

    getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size);
    return domain == AF_INET || domain == AF_INET6;
}

/* Whether nobody is left who could end this wait: all programs have joined, and neither a child nor
 * a pipe or local socket leads to a process that has not. */
static bool is_certain(const struct vthread *me)
{
    if (stalls_needed != STALLS_CLOSED)
        return false;
    return !me->waits_for_outside ||
           (reason && !has_children() && (reason->fd < 0 || is_internet_socket(reason->fd)));
}

void stall_note(struct vthread *me)
{
    if (me->stalled_at != steps())
        me->stalled_polls = me->stuck_polls = 0;
    me->stalled_at = steps();
    me->stalled_polls += weight_of_poll();
    if (me->waits_for_outside && mode != DEADLOCK_ANY)
        me->stuck_polls = 0;
    else
        me->stuck_polls += (is_certain(me) ? CERTAIN_WEIGHT : 1) * weight_of_poll();
    if (!is_deadlock(me))
        return;
    if (somebody_leaves()) {
        me->stuck_polls = 0;
        return;
    }
    store_release(&sched->deadlocked, 1);
    report_and_exit();
}
