/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/sched/sched.h"

#include "hca/proc.h"
#include "hca/shm_lock.h"
#include "sim/sched/ahead.h"
#include "sim/sched/compute.h"
#include "sim/sched/processes.h"
#include "sim/sched/stall.h"
#include "sim/sched/vthread_index.h"
#include "sim/sched/vthread_notify.h"
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

#define NO_VTHREAD      0
#define WATCH_NS        50000000 /* real: between two checks that the running thread is alive */
#define EXIT_WATCH_NS   1000000  /* the same, when it is about to exit */
#define WATCH_SHARE     8        /* that many vthreads check at this rate, together */

#define IDLE_STEP_NS    1000000 /* virtual: a guest that polls moves time by this if nothing else does */
#define CLOCK_LEAD_NS   10000   /* virtual: reading the clock may put a guest this far ahead */
#define EMPTY_POLLS_MAX 8       /* in a row, before a guest is put into VTHREAD_POLLING */

struct sched *sched;

static const struct sched_hooks *hooks;
static __thread struct vthread *self;
static __thread bool retired; /* takes no part any more, for good */
static void (*on_resume)(void);
static pthread_key_t exit_key;
static pthread_once_t prepared = PTHREAD_ONCE_INIT;

void sched_set_hooks(const struct sched_hooks *with)
{
    hooks = with;
    stall_init();
}

void sched_report_deadlock(const struct sched_reason *why)
{
    uint64_t now = self->clock;

    /* What the report calls must not wait in virtual time. */
    self = NULL;
    retired = true;
    hooks->deadlocked(now, why);
}

/* Returns true if nobody woke this thread within 'ns'. */
static bool futex_sleep(_Atomic uint32_t *word, uint32_t value, uint64_t ns)
{
    struct timespec timeout = { ns / 1000000000, ns % 1000000000 };

    return syscall(SYS_futex, word, FUTEX_WAIT, value, &timeout, NULL, 0) && errno == ETIMEDOUT;
}

void sched_wake_thread(struct vthread *vthread)
{
    atomic_fetch_add(&vthread->wake, 1);
    syscall(SYS_futex, &vthread->wake, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static uint32_t vthread_id(const struct vthread *vthread)
{
    return vthread - sched->vthreads + 1;
}

static bool is_running(const struct vthread *vthread)
{
    return load_acquire(&sched->running) == vthread_id(vthread);
}

struct candidate {
    struct vthread *vthread;
    uint64_t time;
};

static void run_first_event(void)
{
    struct event event;

    event_pop(&event);
    if (event.time > sched->now)
        sched->now = event.time;
    sched->events_run++;
    hooks->dispatch(&event);
}

/* Runs events until a vthread is due; at equal times events come first. Returns false if no vthread
 * is due and no event can change that. Time does not advance for vthreads in a barrier alone. */
static bool find_next(struct candidate *next)
{
    for (;;) {
        struct candidate recheck;
        uint64_t time, limit;
        bool events = event_next_time(&time);

        vthread_index_refresh();
        next->vthread = vthread_index_due();
        next->time = next->vthread ? next->vthread->due : SCHED_NEVER;
        recheck.vthread = vthread_index_recheck();
        recheck.time = recheck.vthread ? recheck.vthread->recheck : SCHED_NEVER;
        if (!next->vthread && (!events || !sched->index.resting))
            return false;
        if (recheck.time < next->time && (!events || recheck.time < time))
            *next = recheck;
        if (!events || next->time < time) {
            if (ahead_act(next->vthread))
                continue;
            return true;
        }
        limit = next->time < recheck.time ? next->time : recheck.time;
        do
            run_first_event();
        while (!sched->woken && event_next_time(&time) && time <= limit);
        sched->woken = false;
    }
}

/* In a stall, threads return to their programs every few milliseconds. Those that went to sleep before it
 * began do not know. */
static void begin_stall(void)
{
    atomic_store(&sched->running, NO_VTHREAD);
    for (uint32_t i = 0; atomic_load(&sched->long_sleepers) && i < sched->vthread_high; i++) {
        if (atomic_load(&sched->vthreads[i].sleeps_long))
            sched_wake_thread(&sched->vthreads[i]);
    }
}

/* Returns true if the caller runs. If not, *nobody tells whether nobody does. */
static bool switch_to_next(struct vthread *me, bool *nobody)
{
    struct candidate next;

    *nobody = !find_next(&next);
    hooks->before_switch();
    if (*nobody) {
        begin_stall();
        return false;
    }
    if (next.time > next.vthread->clock)
        next.vthread->clock = next.time;
    store_relaxed(&next.vthread->state, VTHREAD_RUNNING);
    vthread_index_update(next.vthread);
    if (next.vthread != me) {
        sched->switches++;
        if (load_relaxed(&me->state) != VTHREAD_FREE)
            store_relaxed(&sched->watcher, vthread_id(me));
    }
    store_release(&sched->running, vthread_id(next.vthread));
    if (next.vthread == me)
        return true;
    sched_wake_thread(next.vthread);
    return false;
}

/* Switches to the next vthread; returns true if that is the caller. */
static bool run_next(struct vthread *me)
{
    bool nobody;

    return switch_to_next(me, &nobody);
}

static void reap_dead(struct vthread *me)
{
    for (uint32_t i = 0; i < sched->vthread_high; i++) {
        struct vthread *vthread = &sched->vthreads[i];

        if (load_relaxed(&vthread->state) != VTHREAD_FREE && !vthread_alive(vthread)) {
            ahead_create_all(vthread);
            store_release(&vthread->state, VTHREAD_FREE);
            vthread_index_stale();
            vthread_notify(&(struct notification){
                .time = vthread->clock > me->clock ? vthread->clock : me->clock,
                .what = NOTIFY_DATA | NOTIFY_SPACE,
                .from = vthread });
        }
    }
}

/* Claims the right to run if no vthread has it, or if its process has died. */
static bool claim_if_free(struct vthread *me)
{
    uint32_t id = load_acquire(&sched->running);

    if (id != NO_VTHREAD && vthread_alive(&sched->vthreads[id - 1]))
        return false;
    if (!atomic_compare_exchange_strong(&sched->running, &id, vthread_id(me)))
        return false;
    if (id != NO_VTHREAD) {
        vthread_index_stale(); /* the dead one may have been changing it */
        vthread_index_refresh();
        reap_dead(me);
    }
    return true;
}

static bool claim_if_nobody_runs(struct vthread *me)
{
    uint32_t id = NO_VTHREAD;

    return atomic_compare_exchange_strong(&sched->running, &id, vthread_id(me));
}

/* A thread may sleep in the kernel in ways that this library does not intercept. If the running
 * thread does, it is detached until its next call. Nothing else here depends on real time. */
static bool preempt_sleeper(struct vthread *me, struct watch *watch)
{
    uint32_t id = load_acquire(&sched->running), state = VTHREAD_RUNNING;
    struct vthread *runner =
        id == NO_VTHREAD || id == vthread_id(me) ? NULL : &sched->vthreads[id - 1];

    if (!vthread_watch_asleep(watch, runner) ||
        !atomic_compare_exchange_strong(&sched->running, &id, vthread_id(me)))
        return false;
    /* It may have woken by now, and have rejoined. */
    atomic_compare_exchange_strong(&runner->state, &state, VTHREAD_DETACHED);
    vthread_index_stale();
    return true;
}

static bool may_run(const struct vthread *me)
{
    return is_running(me) && load_acquire(&me->state) == VTHREAD_RUNNING;
}

/* Of many vthreads each checks rarely. */
static uint64_t rare_interval(void)
{
    return WATCH_NS * (1ull + sched->vthread_high / WATCH_SHARE);
}

/* One vthread watches the running one closely: the last that ran. */
static uint64_t watch_interval(const struct vthread *me)
{
    uint32_t id = load_acquire(&sched->running);

    if (load_relaxed(&sched->watcher) != vthread_id(me))
        return rare_interval();
    return id != NO_VTHREAD && sched->vthreads[id - 1].known_by_pid ? EXIT_WATCH_NS : WATCH_NS;
}

/* Sleeps until somebody wakes this vthread. Returns true if nobody did for as long as it may sleep. */
static bool sleep_once(struct vthread *me, uint32_t value, bool nobody_runs)
{
    bool timed_out;

    if (nobody_runs)
        return futex_sleep(&me->wake, value, stall_interval());
    atomic_fetch_add(&sched->long_sleepers, 1);
    atomic_store(&me->sleeps_long, true);
    timed_out = atomic_load(&sched->running) != NO_VTHREAD &&
                futex_sleep(&me->wake, value, watch_interval(me));
    store_release(&me->sleeps_long, false);
    atomic_fetch_sub(&sched->long_sleepers, 1);
    return timed_out;
}

/* Sleeps until this vthread runs. With 'may_return_stalled' it also returns when nothing can
 * happen, without time passing, so that the program can check its own timeouts. */
static void sleep_until_running(struct vthread *me, bool may_return_stalled)
{
    struct watch watch = { NULL, 0 };
    bool stalled;

    while (!may_run(me)) {
        uint32_t value = load_acquire(&me->wake);
        bool nobody = load_acquire(&sched->running) == NO_VTHREAD;

        if (may_run(me))
            return;
        if (may_return_stalled)
            stall_check();
        if (nobody && load_acquire(&me->state) == VTHREAD_READY && claim_if_free(me)) {
            if (run_next(me))
                return;
            continue;
        }
        if (!sleep_once(me, value, nobody) ||
            (!claim_if_free(me) && !preempt_sleeper(me, &watch)))
            continue;
        if (switch_to_next(me, &stalled))
            return;
        /* Whoever was switched to may have died by now, but something did happen. */
        if (stalled && may_return_stalled && claim_if_nobody_runs(me)) {
            store_relaxed(&me->state, VTHREAD_RUNNING);
            vthread_index_stale();
            stall_note(me);
            return;
        }
    }
}

static void wait_until_running(struct vthread *me, bool may_return_stalled)
{
    store_release(&me->waits_to_run, true);
    sleep_until_running(me, may_return_stalled);
    store_release(&me->waits_to_run, false);
    me->calls++;
    if (on_resume)
        on_resume();
}

static void give_up_running(struct vthread *me, enum vthread_state state)
{
    store_release(&me->state, state);
    if (is_running(me)) {
        vthread_index_update(me);
        run_next(me);
    } else {
        vthread_index_stale();
    }
}

void sched_rejoin(struct vthread *me)
{
    if (likely(is_running(me)))
        return;
    if (me->clock < sched->now)
        me->clock = sched->now;
    store_release(&me->state, VTHREAD_READY);
    vthread_index_stale();
    wait_until_running(me, false);
}

static void thread_exited(void *vthread)
{
    self = vthread;
    sched_leave();
}

/* The vthread belongs to the parent. */
static void reset_in_child(void)
{
    self = NULL;
}

static void prepare(void)
{
    pthread_key_create(&exit_key, thread_exited);
    pthread_atfork(NULL, NULL, reset_in_child);
}

void sched_start(struct vthread *me)
{
    self = me;
    pthread_once(&prepared, prepare);
    pthread_setspecific(exit_key, me);
    wait_until_running(me, false);
}

static struct vthread *join(void)
{
    struct vthread *me;

    if (retired)
        return NULL;
    shm_lock(&sched->join_lock);
    me = vthread_alloc();
    if (me) {
        me->order = vthread_next_order();
        me->clock = sched->now;
        me->pid = getpid();
        me->tid = syscall(SYS_gettid);
        vthread_joined_unreserved(me);
        store_release(&me->state, VTHREAD_READY);
        vthread_index_stale();
    }
    shm_unlock(&sched->join_lock);
    if (me)
        sched_start(me);
    return me;
}

struct vthread *sched_current(void)
{
    return self;
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

/* Nothing happens, and nobody else runs, before this thread's clock. */
static bool is_first(const struct vthread *me)
{
    const struct vthread *due, *recheck;
    uint64_t time;

    if (me->ahead_first)
        return false;
    vthread_index_refresh();
    due = vthread_index_due();
    recheck = vthread_index_recheck();
    if (due && (due->due < me->clock || (due->due == me->clock && due->order <= me->order)))
        return false;
    return (!recheck || recheck->recheck >= me->clock) &&
           (!event_next_time(&time) || time > me->clock);
}

static void sync_clock(struct vthread *me)
{
    me->clock += compute_end();
    sched_rejoin(me);
    me->calls++;
    if (!is_first(me)) {
        store_release(&me->state, VTHREAD_READY);
        vthread_index_update(me);
        if (!run_next(me))
            wait_until_running(me, false);
    }
    me->is_ahead = false;
    me->yielded_at = me->clock;
    compute_begin();
}

void sched_charge(double ns)
{
    struct vthread *me = sched_self();

    if (!me)
        return;
    me->clock += llround(ns);
    sync_clock(me);
    me->last_action_at = me->clock;
}

void sched_sync(void)
{
    sched_charge(0);
}

void sched_charge_ahead(double ns)
{
    struct vthread *me = sched_self();

    if (!me || !is_running(me) || !ahead_allowed(me)) {
        sched_charge(ns);
        return;
    }
    me->clock += compute_end() + llround(ns);
    me->calls++;
    me->is_ahead = !is_first(me);
    if (!me->is_ahead)
        me->yielded_at = me->clock;
    me->last_action_at = me->clock;
    compute_begin();
}

bool sched_is_ahead(void)
{
    return self && self->is_ahead;
}

void sched_event(uint64_t time, uint32_t kind, void *object, uint32_t argument)
{
    struct vthread *me = sched_self();
    struct event event = { .time = time, .object = object, .argument = argument, .kind = kind };

    if (me && me->is_ahead) {
        if (ahead_add(me, &event))
            return;
        sched_sync();
    }
    event_at(time, kind, object, argument);
}

/* A vthread that stops running does so in its turn. */
static void fall_back_in_line(struct vthread *me)
{
    if (me->is_ahead)
        sync_clock(me);
}

void sched_leave(void)
{
    struct vthread *me = self;

    if (!me)
        return;
    fall_back_in_line(me);
    self = NULL;
    pthread_setspecific(exit_key, NULL);
    if (me->guest)
        sched_rejoin(me);
    if (is_running(me))
        vthread_notify(&(struct notification){
            .time = me->clock, .what = NOTIFY_DATA | NOTIFY_LOCK, .from = me });
    store_release(&me->hands_over, true);
    give_up_running(me, VTHREAD_FREE);
    store_release(&me->hands_over, false);
}

static const struct sched_reason polls = { "polls its completion queues", -1, false };
static const struct sched_reason spins = { "spins on memory", -1, false };
static const struct sched_reason sleeps = { "sleeps until an adapter interrupts it", -1, false };

/* If nothing else does, the polling of a guest advances time. */
static void let_polling_advance_time(struct vthread *me)
{
    if (me->guest && me->clock == me->idle_since)
        me->clock += round_up(IDLE_STEP_NS, me->period);
}

static void set_period(struct vthread *me, double period)
{
    me->period = period < 1 ? 1 : llround(period);
}

static bool wait_for_change(struct vthread *me, enum vthread_state state, double period,
                            uint64_t deadline, const struct sched_reason *why)
{
    fall_back_in_line(me);
    stall_waits_for(me, why);
    me->clock += compute_end();
    sched_rejoin(me);
    me->idle_since = me->clock;
    set_period(me, period);
    me->deadline = deadline;
    me->woken_by_change = false;
    store_release(&me->state, state);
    vthread_index_update(me);
    if (!run_next(me))
        wait_until_running(me, true);
    if (state == VTHREAD_POLLING)
        let_polling_advance_time(me);
    compute_begin();
    return me->woken_by_change;
}

bool sched_poll_wait(double period)
{
    struct vthread *me = sched_self();

    return me && wait_for_change(me, VTHREAD_POLLING, period, SCHED_NEVER, &polls);
}

void sched_polls_on(bool on)
{
    struct vthread *me = sched_self();

    if (me)
        me->polls_on = on;
}

bool sched_sync_or_poll_wait(double period, uint32_t more, bool for_cqe, bool *woken)
{
    struct vthread *me = sched_self();

    if (!me)
        return false;
    me->clock += compute_end();
    sched_rejoin(me);
    me->calls++;
    me->has_slept = false;
    if (!is_first(me)) {
        stall_waits_for(me, &polls);
        set_period(me, period);
        me->deadline = SCHED_NEVER;
        me->woken_by_change = false;
        me->sleeps_for_cqe = for_cqe;
        me->polls_before_sleep = more;
        me->sleeps_if_unchanged = true;
        store_release(&me->state, VTHREAD_READY);
        vthread_index_update(me);
        if (!run_next(me))
            wait_until_running(me, true);
        me->sleeps_if_unchanged = false;
    }
    me->is_ahead = false;
    if (me->has_slept)
        let_polling_advance_time(me);
    else
        me->yielded_at = me->last_action_at = me->clock;
    compute_begin();
    *woken = me->woken_by_change;
    return me->has_slept;
}

bool sched_is_first(void)
{
    struct vthread *me = sched_self();

    return !me || !is_running(me) || is_first(me);
}

uint32_t sched_changes(void)
{
    struct vthread *me = sched_self();

    if (!me)
        return 0;
    fall_back_in_line(me);
    me->spins = true;
    return me->changes;
}

bool sched_spin_wait(double period, uint32_t changes, uint64_t until)
{
    struct vthread *me = sched_self();

    if (!me)
        return false;
    sched_sync();
    return me->changes != changes ||
           wait_for_change(me, VTHREAD_POLLING, period, until, &spins);
}

bool sched_block(void)
{
    struct vthread *me = sched_self();

    return me && wait_for_change(me, VTHREAD_BLOCKED, 0, SCHED_NEVER, &sleeps);
}

/* The descriptor that it waits for may be a completion channel. */
static bool waits_for_channel(const struct vthread *vthread)
{
    return vthread->waits_for & NOTIFY_DATA;
}

/* From the interrupt to the running thread. */
static uint64_t wake_latency(enum sched_change change)
{
    return change == CHANGE_SENT && sched->wake_send_ns ? sched->wake_send_ns : sched->wake_recv_ns;
}

void sched_poll_only(const struct shared_cq *cq)
{
    struct vthread *me = sched_self();

    if (me)
        me->polls_only = cq;
}

void sched_wake(uint32_t proc, enum sched_change change, const struct shared_cq *cq)
{
    bool interrupts = change >= CHANGE_SENT;

    for (struct vthread *vthread = vthread_index_first_of(proc); vthread;
         vthread = vthread_index_next_of(vthread)) {
        uint32_t state = load_relaxed(&vthread->state);
        uint64_t late = sched->now > vthread->idle_since ? sched->now - vthread->idle_since : 0;

        if (vthread->proc != proc || (cq && vthread->polls_only && vthread->polls_only != cq))
            continue;
        vthread->changes++;
        vthread->sleeps_if_unchanged = false;
        if (vthread->waits_for_cqe && change == CHANGE_MEMORY)
            continue;
        vthread->empty_polls = 0;
        if (state == VTHREAD_POLLING)
            vthread->clock = vthread_poll_that_sees(vthread, sched->now);
        else if (interrupts && (state == VTHREAD_BLOCKED ||
                                (state == VTHREAD_WAITING && waits_for_channel(vthread))))
            vthread->clock = vthread->idle_since + late + wake_latency(change);
        else
            continue;
        vthread->woken_by_change = true;
        store_release(&vthread->state, VTHREAD_READY);
        vthread_index_update(vthread);
        sched->woken = true;
    }
}

void sched_memory_written(int32_t pid)
{
    struct vthread *me = sched_self();

    if (!me)
        return;
    sched_sync();
    vthread_index_refresh();
    for (struct vthread *vthread = vthread_index_first_of_pid(pid); vthread;
         vthread = vthread_index_next_of_pid(vthread)) {
        if (load_relaxed(&vthread->state) == VTHREAD_FREE || proc_slot(vthread->proc)->pid != pid)
            continue;
        vthread->empty_polls = 0;
        vthread->changes++;
        vthread->sleeps_if_unchanged = false;
        if (load_relaxed(&vthread->state) != VTHREAD_POLLING)
            continue;
        vthread->clock = vthread_poll_that_sees(vthread, me->clock);
        vthread->woken_by_change = true;
        store_release(&vthread->state, VTHREAD_READY);
        vthread_index_update(vthread);
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

/* All members have arrived: they continue at the same time. */
static void release_group(struct vthread_barrier *group)
{
    for (uint32_t i = 0; i < sched->vthread_high; i++) {
        struct vthread *vthread = &sched->vthreads[i];

        if (load_relaxed(&vthread->state) != VTHREAD_IN_BARRIER)
            continue;
        vthread->clock = group->latest;
        store_release(&vthread->state, VTHREAD_READY);
        sched_wake_thread(vthread);
    }
    group->arrived = group->ended = 0;
    group->latest = 0;
    group->round++;
    vthread_index_stale();
}

static void cancel(struct vthread *me, struct vthread_barrier *group)
{
    shm_lock(&sched->join_lock);
    if (group->round == me->round && group->arrived)
        group->arrived--;
    store_release(&me->state, VTHREAD_READY);
    vthread_index_stale();
    shm_unlock(&sched->join_lock);
}

static uint32_t count_alive(void)
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
        futex_sleep(&me->wake, value, rare_interval());
        if (load_acquire(&me->wake) == value && count_alive() < group->wanted)
            cancel(me, group);
    }
    /* Wait until the whole group is released: time would advance without the others. */
    shm_lock(&sched->join_lock);
    shm_unlock(&sched->join_lock);
    wait_until_running(me, false);
}

/* ---- guests ---- */

void sched_notify(uint32_t what, uint32_t key, double latency)
{
    struct vthread *me = sched_self();

    if (!me)
        return;
    sched_rejoin(me);
    vthread_notify(&(struct notification){
        .time = me->clock + llround(latency), .what = what, .key = key, .from = me });
}

void sched_on_resume(void (*call)(void))
{
    on_resume = call;
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

void sched_charge_clock_read(double ns)
{
    struct vthread *me = sched_self();
    uint64_t ahead;

    if (!me)
        return;
    stall_watches_clock(me);
    me->clock += compute_end() + llround(ns);
    me->calls++;
    ahead = me->clock - me->yielded_at;
    if (!is_running(me) || ahead > CLOCK_LEAD_NS || ahead * 4 > me->clock - me->last_action_at)
        sync_clock(me);
    else
        compute_begin();
}

void sched_wait(uint64_t deadline, uint32_t waits_for, const struct sched_reason *why)
{
    struct vthread *me = sched_self();

    if (!me)
        return;
    me->waits_for = waits_for;
    me->waits_key = why ? why->key : 0;
    wait_for_change(me, VTHREAD_WAITING, 0, deadline, why);
}

void sched_detach(void)
{
    if (!self)
        return;
    sched_rejoin(self);
    fall_back_in_line(self);
    give_up_running(self, VTHREAD_DETACHED);
}

void sched_poll_idle(double period, const struct sched_reason *why)
{
    struct vthread *me = sched_self();

    if (!me)
        return;
    me->tries_others = true;
    if (vthread_count_empty_poll(me) < EMPTY_POLLS_MAX) {
        sched_charge(period);
        return;
    }
    wait_for_change(me, VTHREAD_POLLING, period, SCHED_NEVER, why);
}
