/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/sched/sched.h"

#include "hca/proc.h"
#include "hca/shm_lock.h"
#include "sim/sched/compute.h"
#include "sim/sched/vthread_table.h"
#include "sim/sched/vthread_watch.h"
#include "util/log.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NOBODY      0
#define WATCH_NS    50000000 /* between two looks whether the one who has the turn lives */
#define ENDING_NS   1000000  /* the same, when it is about to end */
#define FROZEN_NS   5000000  /* a parked thread looks up so often while nothing can happen */

#define PATIENCE_NS 1000000 /* virtual: between two looks of a guest that rests */
#define GLANCES_NS  10000   /* virtual: that a guest may be ahead by looking at its clock */
#define QUIET_LOOKS 8       /* in vain, before a guest that polls is put to rest */

struct sched *sched;

static const struct sched_hooks *hooks;
static __thread struct vthread *self;
static void (*resumed)(void);
static pthread_key_t end_of_thread;
static pthread_once_t prepared = PTHREAD_ONCE_INIT;

void sched_set_hooks(const struct sched_hooks *with)
{
    hooks = with;
}

/* True: nothing has happened for so long. */
static bool futex_sleep(_Atomic uint32_t *word, uint32_t value, uint64_t ns)
{
    struct timespec timeout = { ns / 1000000000, ns % 1000000000 };

    return syscall(SYS_futex, word, FUTEX_WAIT, value, &timeout, NULL, 0) && errno == ETIMEDOUT;
}

static void futex_wake(_Atomic uint32_t *word)
{
    atomic_fetch_add(word, 1);
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static uint32_t vthread_id(const struct vthread *vthread)
{
    return vthread - sched->vthreads + 1;
}

static bool is_running(const struct vthread *vthread)
{
    return load_acquire(&sched->running) == vthread_id(vthread);
}

/* When the thread goes on by itself. */
static uint64_t due_time(const struct vthread *vthread, uint32_t state)
{
    if (state == VTHREAD_READY)
        return vthread->clock;
    return state == VTHREAD_WAITING || state == VTHREAD_POLLING ? vthread->deadline : SCHED_NEVER;
}

/* A guest that rests may have limits of patience of its own, and what a thread waits for may be
 * done by one that takes no part. They look up now and then, but only if time passes anyway. */
static uint64_t look_time(const struct vthread *vthread, uint32_t state)
{
    if (state == VTHREAD_POLLING && vthread->guest)
        return vthread->idle_since + round_up(PATIENCE_NS, vthread->period);
    return state == VTHREAD_WAITING ? vthread->clock + PATIENCE_NS : SCHED_NEVER;
}

struct candidate {
    struct vthread *vthread;
    uint64_t time;
};

static void consider(struct candidate *best, struct vthread *vthread, uint64_t time)
{
    if (time == SCHED_NEVER)
        return;
    if (!best->vthread || time < best->time ||
        (time == best->time && vthread->order < best->vthread->order))
        *best = (struct candidate){ vthread, time };
}

/* True if anybody rests, for whom it is worth that time passes. */
static bool find_candidates(struct candidate *due, struct candidate *restless)
{
    bool resting = false;

    *due = *restless = (struct candidate){ NULL, SCHED_NEVER };
    for (uint32_t i = 0; i < sched->vthread_high; i++) {
        struct vthread *vthread = &sched->vthreads[i];
        uint32_t state = load_acquire(&vthread->state);

        resting |= state == VTHREAD_POLLING || state == VTHREAD_BLOCKED || state == VTHREAD_WAITING;
        consider(due, vthread, due_time(vthread, state));
        consider(restless, vthread, look_time(vthread, state));
    }
    return resting;
}

static void run_first_event(void)
{
    struct event event;

    event_pop(&event);
    if (event.time > sched->now)
        sched->now = event.time;
    sched->events_run++;
    hooks->dispatch(&event);
}

/* Lets the adapters work until a thread is due; events come first when times are equal. False:
 * nobody is due, and nothing inside will change that. Time does not pass for those who wait for
 * each other outside alone. */
static bool find_next(struct candidate *next)
{
    for (;;) {
        struct candidate restless;
        bool resting = find_candidates(next, &restless);
        uint64_t time, limit;
        bool events = event_next_time(&time);

        if (!next->vthread && (!events || !resting))
            return false;
        if (restless.time < next->time && (!events || restless.time < time))
            *next = restless;
        if (!events || next->time < time)
            return true;
        limit = next->time < restless.time ? next->time : restless.time;
        do
            run_first_event();
        while (!sched->woken && event_next_time(&time) && time <= limit);
        sched->woken = false;
    }
}

/* Gives the turn to whoever is next; true if that is us. */
static bool pass_on(struct vthread *me)
{
    struct candidate next;
    bool found = find_next(&next);

    hooks->before_switch();
    if (!found) {
        store_release(&sched->running, NOBODY);
        return false;
    }
    if (next.time > next.vthread->clock)
        next.vthread->clock = next.time;
    store_relaxed(&next.vthread->state, VTHREAD_RUNNING);
    store_release(&sched->running, vthread_id(next.vthread));
    if (next.vthread == me)
        return true;
    sched->switches++;
    futex_wake(&next.vthread->wake);
    return false;
}

/* Those who wait for one of these look again at that time. */
static void notify_at(uint64_t time, uint32_t what)
{
    for (uint32_t i = 0; i < sched->vthread_high; i++) {
        struct vthread *vthread = &sched->vthreads[i];
        uint32_t state = load_relaxed(&vthread->state);

        if (state == VTHREAD_POLLING && vthread->guest && what & NOTIFY_DATA && time > vthread->idle_since)
            vthread->clock = vthread->idle_since + round_up(time - vthread->idle_since, vthread->period);
        else if (state == VTHREAD_WAITING && vthread->waits_for & what)
            vthread->clock = time > vthread->clock ? time : vthread->clock;
        else
            continue;
        vthread->empty_polls = 0;
        store_release(&vthread->state, VTHREAD_READY);
    }
}

static void forget_dead(struct vthread *me)
{
    for (uint32_t i = 0; i < sched->vthread_high; i++) {
        struct vthread *vthread = &sched->vthreads[i];

        if (load_relaxed(&vthread->state) != VTHREAD_FREE && !vthread_alive(vthread)) {
            store_release(&vthread->state, VTHREAD_FREE);
            notify_at(vthread->clock > me->clock ? vthread->clock : me->clock, NOTIFY_DATA | NOTIFY_SPACE);
        }
    }
}

/* Takes a turn that is nobody's, or was that of a process which has died. */
static bool take_free_cpu(struct vthread *me)
{
    uint32_t turn = load_acquire(&sched->running);

    if (turn != NOBODY && vthread_alive(&sched->vthreads[turn - 1]))
        return false;
    if (!atomic_compare_exchange_strong(&sched->running, &turn, vthread_id(me)))
        return false;
    if (turn != NOBODY)
        forget_dead(me);
    return true;
}

/* A thread may sleep in the kernel in ways that are not seen from here. Found so, it loses the
 * turn; it comes back at its next call. Nothing else in here depends on real time. */
static bool take_from_sleeper(struct vthread *me, struct watch *watch)
{
    uint32_t turn = load_acquire(&sched->running);
    struct vthread *holder =
        turn == NOBODY || turn == vthread_id(me) ? NULL : &sched->vthreads[turn - 1];

    if (!vthread_watch_asleep(watch, holder) ||
        !atomic_compare_exchange_strong(&sched->running, &turn, vthread_id(me)))
        return false;
    store_release(&holder->state, VTHREAD_OUTSIDE);
    return true;
}

static bool running(const struct vthread *me)
{
    return is_running(me) && load_acquire(&me->state) == VTHREAD_RUNNING;
}

/* The number does not change while nothing happens. */
static uint64_t steps(void)
{
    return sched->events_run + sched->switches;
}

static void note_stalled(struct vthread *me)
{
    if (me->stalled_at != steps())
        me->stalled_looks = 0;
    me->stalled_at = steps();
    me->stalled_looks++;
}

uint64_t sched_stalled_ms(void)
{
    struct vthread *me = sched_self();

    return me && me->stalled_at == steps() ? me->stalled_looks * (FROZEN_NS / 1000000) : 0;
}

static uint64_t patience_with_holder(void)
{
    uint32_t turn = load_acquire(&sched->running);

    return turn != NOBODY && sched->vthreads[turn - 1].known_by_pid ? ENDING_NS : WATCH_NS;
}

/* Sleeps until we are running. One that is parked also comes back when nothing can happen, so that
 * the program can look at its own limits of patience; no time has passed then. */
static void sleep_until_running(struct vthread *me, bool may_return_frozen)
{
    struct watch watch = { NULL, 0 };

    while (!running(me)) {
        uint32_t value = load_acquire(&me->wake);
        bool nobody = load_acquire(&sched->running) == NOBODY;

        if (running(me))
            return;
        if (nobody && load_acquire(&me->state) == VTHREAD_READY && take_free_cpu(me)) {
            if (pass_on(me))
                return;
            continue;
        }
        if (!futex_sleep(&me->wake, value, nobody ? FROZEN_NS : patience_with_holder()) ||
            (!take_free_cpu(me) && !take_from_sleeper(me, &watch)))
            continue;
        if (pass_on(me))
            return;
        if (may_return_frozen && take_free_cpu(me)) {
            note_stalled(me);
            store_relaxed(&me->state, VTHREAD_RUNNING);
            return;
        }
    }
}

static void wait_until_running(struct vthread *me, bool may_return_frozen)
{
    store_release(&me->waits_to_run, true);
    sleep_until_running(me, may_return_frozen);
    store_release(&me->waits_to_run, false);
    me->calls++;
    if (resumed)
        resumed();
}

static void give_up_running(struct vthread *me, enum vthread_state state)
{
    store_release(&me->state, state);
    if (is_running(me))
        pass_on(me);
}

/* One that has lost its turn meanwhile comes back at the present. */
static void come_back(struct vthread *me)
{
    if (likely(is_running(me)))
        return;
    if (me->clock < sched->now)
        me->clock = sched->now;
    store_release(&me->state, VTHREAD_READY);
    wait_until_running(me, false);
}

static void leave_at_end(void *vthread)
{
    self = vthread;
    sched_leave();
}

/* The place in the order is its parent's. */
static void forget_in_child(void)
{
    self = NULL;
}

static void prepare(void)
{
    pthread_key_create(&end_of_thread, leave_at_end);
    pthread_atfork(NULL, NULL, forget_in_child);
}

static void become(struct vthread *me)
{
    self = me;
    pthread_once(&prepared, prepare);
    pthread_setspecific(end_of_thread, me);
    wait_until_running(me, false);
}

static struct vthread *join(void)
{
    struct vthread *me;

    shm_lock(&sched->join_lock);
    me = vthread_alloc();
    if (me) {
        me->order = vthread_next_order();
        me->clock = sched->now;
        me->pid = getpid();
        me->tid = syscall(SYS_gettid);
        vthread_joined_unannounced(me);
        store_release(&me->state, VTHREAD_READY);
    }
    shm_unlock(&sched->join_lock);
    if (me)
        become(me);
    return me;
}

bool sched_joined(void)
{
    return self != NULL;
}

struct vthread *sched_self(void)
{
    if (likely(self != NULL))
        return self;
    return join();
}

void sched_leave(void)
{
    struct vthread *me = self;

    if (!me)
        return;
    self = NULL;
    pthread_setspecific(end_of_thread, NULL);
    if (me->guest)
        come_back(me);
    if (is_running(me))
        notify_at(me->clock, NOTIFY_DATA | NOTIFY_LOCK);
    give_up_running(me, VTHREAD_FREE);
}

uint64_t sched_now(void)
{
    struct vthread *me = sched_self();

    return me ? me->clock : sched->now;
}

uint64_t sched_read_clock(void)
{
    struct vthread *me = sched_self();

    if (!me)
        return sched->now;
    me->clock += compute_end();
    compute_begin();
    return me->clock;
}

static void await(struct vthread *me)
{
    me->clock += compute_end();
    come_back(me);
    me->calls++;
    store_release(&me->state, VTHREAD_READY);
    if (!pass_on(me))
        wait_until_running(me, false);
    me->shown_at = me->clock;
    compute_begin();
}

void sched_charge(double ns)
{
    struct vthread *me = sched_self();

    if (!me)
        return;
    me->clock += llround(ns);
    await(me);
    me->acted_at = me->clock;
}

void sched_sync(void)
{
    sched_charge(0);
}

static bool rest(struct vthread *me, enum vthread_state state, double period, uint64_t deadline)
{
    me->clock += compute_end();
    come_back(me);
    me->idle_since = me->clock;
    me->period = period < 1 ? 1 : llround(period);
    me->deadline = deadline;
    me->woken = false;
    store_release(&me->state, state);
    if (!pass_on(me))
        wait_until_running(me, true);
    /* Nothing else makes time pass: then the looking of a guest does. */
    if (state == VTHREAD_POLLING && me->guest && me->clock == me->idle_since)
        me->clock += round_up(PATIENCE_NS, me->period);
    compute_begin();
    return me->woken;
}

bool sched_poll_wait(double period)
{
    struct vthread *me = sched_self();

    return me && rest(me, VTHREAD_POLLING, period, SCHED_NEVER);
}

uint32_t sched_changes(void)
{
    struct vthread *me = sched_self();

    if (!me)
        return 0;
    me->spins = true;
    return me->changes;
}

bool sched_spin_wait(double period, uint32_t changes, uint64_t until)
{
    struct vthread *me = sched_self();

    if (!me)
        return false;
    sched_sync();
    return me->changes != changes || rest(me, VTHREAD_POLLING, period, until);
}

bool sched_block(void)
{
    struct vthread *me = sched_self();

    return me && rest(me, VTHREAD_BLOCKED, 0, SCHED_NEVER);
}

/* A descriptor that it waits for may be that of a completion channel. */
static bool waits_for_adapter(const struct vthread *vthread)
{
    return vthread->waits_for & NOTIFY_DATA;
}

/* From an interrupt to a thread that runs. */
static uint64_t waking_time(enum sched_change change)
{
    return change == CHANGE_SENT && sched->wake_send_ns ? sched->wake_send_ns : sched->wake_recv_ns;
}

void sched_wake(uint32_t proc, enum sched_change change)
{
    bool interrupts = change >= CHANGE_SENT;

    for (uint32_t i = 0; i < sched->vthread_high; i++) {
        struct vthread *vthread = &sched->vthreads[i];
        uint32_t state = load_relaxed(&vthread->state);
        uint64_t late = sched->now > vthread->idle_since ? sched->now - vthread->idle_since : 0;

        if (vthread->proc != proc)
            continue;
        vthread->changes++;
        if (vthread->only_polls && change == CHANGE_MEMORY)
            continue;
        vthread->empty_polls = 0;
        if (state == VTHREAD_POLLING)
            vthread->clock = vthread->idle_since + round_up(late, vthread->period);
        else if (interrupts && (state == VTHREAD_BLOCKED ||
                                (state == VTHREAD_WAITING && waits_for_adapter(vthread))))
            vthread->clock = vthread->idle_since + late + waking_time(change);
        else
            continue;
        vthread->woken = true;
        store_release(&vthread->state, VTHREAD_READY);
        sched->woken = true;
    }
}

void sched_memory_written(int32_t pid)
{
    struct vthread *me = sched_self();

    if (!me)
        return;
    sched_sync();
    for (uint32_t i = 0; i < sched->vthread_high; i++) {
        struct vthread *vthread = &sched->vthreads[i];
        uint64_t late = me->clock > vthread->idle_since ? me->clock - vthread->idle_since : 0;

        if (load_relaxed(&vthread->state) == VTHREAD_FREE || proc_slot(vthread->proc)->pid != pid)
            continue;
        vthread->empty_polls = 0;
        vthread->changes++;
        if (load_relaxed(&vthread->state) != VTHREAD_POLLING)
            continue;
        vthread->clock = vthread->idle_since + round_up(late, vthread->period);
        vthread->woken = true;
        store_release(&vthread->state, VTHREAD_READY);
    }
}

void sched_barrier_begin(uint32_t count)
{
    struct vthread *me = sched_self();
    struct vthread_barrier *group = &sched->barrier;

    if (!me)
        return;
    sched_sync();
    me->round = group->round;
    group->wanted = count;
    group->arrived++;
    if (me->clock > group->latest)
        group->latest = me->clock;
    give_up_running(me, VTHREAD_IN_BARRIER);
}

/* All are there: they start barrier. */
static void release_group(struct vthread_barrier *group)
{
    for (uint32_t i = 0; i < sched->vthread_high; i++) {
        struct vthread *vthread = &sched->vthreads[i];

        if (load_relaxed(&vthread->state) != VTHREAD_IN_BARRIER)
            continue;
        vthread->clock = group->latest;
        store_release(&vthread->state, VTHREAD_READY);
        futex_wake(&vthread->wake);
    }
    group->arrived = group->ended = 0;
    group->latest = 0;
    group->round++;
}

static void cancel(struct vthread *me, struct vthread_barrier *group)
{
    shm_lock(&sched->join_lock);
    if (group->round == me->round && group->arrived)
        group->arrived--;
    store_release(&me->state, VTHREAD_READY);
    shm_unlock(&sched->join_lock);
}

static uint32_t living(void)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < sched->vthread_high; i++) {
        struct vthread *vthread = &sched->vthreads[i];

        count += load_acquire(&vthread->state) != VTHREAD_FREE && proc_word_alive(vthread->process);
    }
    return count;
}

void sched_barrier_end(bool all)
{
    struct vthread *me = self;
    struct vthread_barrier *group = &sched->barrier;

    if (!me)
        return;
    if (all) {
        shm_lock(&sched->join_lock);
        if (++group->ended >= group->wanted)
            release_group(group);
        shm_unlock(&sched->join_lock);
    } else {
        cancel(me, group);
    }
    while (load_acquire(&me->state) == VTHREAD_IN_BARRIER) {
        uint32_t value = load_acquire(&me->wake);

        if (load_acquire(&me->state) != VTHREAD_IN_BARRIER)
            break;
        futex_sleep(&me->wake, value, WATCH_NS);
        if (load_acquire(&me->wake) == value && living() < group->wanted)
            cancel(me, group);
    }
    /* Not before the whole group is let go: time would pass without those who are not yet. */
    shm_lock(&sched->join_lock);
    shm_unlock(&sched->join_lock);
    wait_until_running(me, false);
}

/* ---- guests ---- */

void sched_notify(uint32_t what, double latency)
{
    struct vthread *me = sched_self();

    if (!me)
        return;
    come_back(me);
    notify_at(me->clock + llround(latency), what);
}

void sched_on_resume(void (*call)(void))
{
    resumed = call;
}

uint32_t sched_guest_number(void)
{
    struct vthread *me = sched_self();

    return me ? me->number : 0;
}

uint64_t sched_activity(void)
{
    return self && is_running(self) ? self->calls + 1 : 0;
}

void sched_look_at_clock(double ns)
{
    struct vthread *me = sched_self();
    uint64_t ahead;

    if (!me)
        return;
    me->clock += compute_end() + llround(ns);
    me->calls++;
    ahead = me->clock - me->shown_at;
    if (!is_running(me) || ahead > GLANCES_NS || ahead * 4 > me->clock - me->acted_at)
        await(me);
    else
        compute_begin();
}

void sched_wait(uint64_t deadline, uint32_t waits_for)
{
    struct vthread *me = sched_self();

    if (!me)
        return;
    me->waits_for = waits_for;
    rest(me, VTHREAD_WAITING, 0, deadline);
}

void sched_step_out(void)
{
    if (!self)
        return;
    come_back(self);
    give_up_running(self, VTHREAD_OUTSIDE);
}

void sched_poll_idle(double period)
{
    struct vthread *me = sched_self();

    if (!me)
        return;
    if (++me->empty_polls < QUIET_LOOKS) {
        sched_charge(period);
        return;
    }
    rest(me, VTHREAD_POLLING, period, SCHED_NEVER);
}

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
    }
    shm_unlock(&sched->join_lock);
    return vthread;
}

void sched_unreserve(struct vthread *vthread)
{
    store_release(&vthread->state, VTHREAD_FREE);
}

void sched_adopt(struct vthread *vthread)
{
    vthread->process = proc_word(proc_self);
    vthread->proc = proc_self;
    vthread->pid = getpid();
    vthread->tid = syscall(SYS_gettid);
    vthread->known_by_pid = false;
    become(vthread);
}

bool sched_join_guest(void)
{
    struct vthread *me;

    if (self)
        return true;
    shm_lock(&sched->join_lock);
    me = vthread_left_by_exec();
    if (me && load_acquire(&me->state) == VTHREAD_OUTSIDE) {
        me->clock = me->clock < sched->now ? sched->now : me->clock;
        store_release(&me->state, VTHREAD_READY);
    } else if (!me && (me = vthread_alloc())) {
        vthread_make_guest(me, segment_config()->node << 20);
        me->clock = vthread_arrival_time();
        store_release(&me->state, VTHREAD_READY);
    }
    shm_unlock(&sched->join_lock);
    if (me)
        sched_adopt(me);
    return me;
}

void sched_exiting(void)
{
    struct vthread *me = self;

    if (!me)
        return;
    come_back(me);
    for (uint32_t i = 0; i < sched->vthread_high; i++) {
        struct vthread *vthread = &sched->vthreads[i];

        if (load_relaxed(&vthread->state) == VTHREAD_FREE)
            continue;
        if (vthread->guest && vthread->process == me->process)
            vthread->known_by_pid = true;
        else
            futex_wake(&vthread->wake); /* they look more often now */
    }
}

void sched_not_ending(void)
{
    struct vthread *me = self;

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
    if (self && self->guest)
        sched_exiting();
    else
        sched_leave();
}
