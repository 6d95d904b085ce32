/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/sched/sched.h"

#include "hca/proc.h"
#include "hca/shm_lock.h"
#include "sim/sched/compute.h"
#include "sim/sched/stall.h"
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

#define RECHECK_NS      1000000 /* virtual: a waiting guest rechecks its own deadlines this often */
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

/* When the vthread continues without being woken. */
static uint64_t due_time(const struct vthread *vthread, uint32_t state)
{
    if (state == VTHREAD_READY)
        return vthread->clock;
    return state == VTHREAD_WAITING || state == VTHREAD_POLLING ? vthread->deadline : SCHED_NEVER;
}

/* When a waiting guest rechecks: it may have timeouts of its own, or wait for a thread that has not
 * joined. It only does so if virtual time advances anyway. */
static uint64_t recheck_time(const struct vthread *vthread, uint32_t state)
{
    if (state == VTHREAD_POLLING && vthread->guest)
        return vthread->idle_since + round_up(RECHECK_NS, vthread->period);
    return state == VTHREAD_WAITING ? vthread->clock + RECHECK_NS : SCHED_NEVER;
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

/* Returns true if a vthread waits for something that the passing of time may bring. */
static bool find_candidates(struct candidate *due, struct candidate *recheck)
{
    bool resting = false;

    *due = *recheck = (struct candidate){ NULL, SCHED_NEVER };
    for (uint32_t i = 0; i < sched->vthread_high; i++) {
        struct vthread *vthread = &sched->vthreads[i];
        uint32_t state = load_acquire(&vthread->state);

        resting |= state == VTHREAD_POLLING || state == VTHREAD_BLOCKED || state == VTHREAD_WAITING;
        consider(due, vthread, due_time(vthread, state));
        consider(recheck, vthread, recheck_time(vthread, state));
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

/* Runs events until a vthread is due; at equal times events come first. Returns false if no vthread
 * is due and no event can change that. Time does not advance for vthreads in a barrier alone. */
static bool find_next(struct candidate *next)
{
    for (;;) {
        struct candidate recheck;
        bool resting = find_candidates(next, &recheck);
        uint64_t time, limit;
        bool events = event_next_time(&time);

        if (!next->vthread && (!events || !resting))
            return false;
        if (recheck.time < next->time && (!events || recheck.time < time))
            *next = recheck;
        if (!events || next->time < time)
            return true;
        limit = next->time < recheck.time ? next->time : recheck.time;
        do
            run_first_event();
        while (!sched->woken && event_next_time(&time) && time <= limit);
        sched->woken = false;
    }
}

/* Switches to the next vthread; returns true if that is the caller. */
static bool run_next(struct vthread *me)
{
    struct candidate next;
    bool found = find_next(&next);

    hooks->before_switch();
    if (!found) {
        store_release(&sched->running, NO_VTHREAD);
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

/* When a polling vthread sees a change. Polls are 'period' apart and begin independently of the
 * change, so on average half a period passes; taking the average keeps times continuous, where a
 * fixed grid of polls would lock them to its multiples. The poll that has just failed is finished
 * first. */
static uint64_t poll_that_sees(const struct vthread *vthread, uint64_t change)
{
    uint64_t seen = change + vthread->period / 2, next = vthread->idle_since + vthread->period;

    return seen > next ? seen : next;
}

/* Wakes, at 'time', the guests that wait for one of the notifications in 'what'. A guest that is about
 * to wait, because its polls were empty so far, polls everything again first. */
static void notify_at(uint64_t time, uint32_t what)
{
    for (uint32_t i = 0; i < sched->vthread_high; i++) {
        struct vthread *vthread = &sched->vthreads[i];
        uint32_t state = load_relaxed(&vthread->state);

        if (what & NOTIFY_DATA)
            vthread->empty_polls = 0;
        if (state == VTHREAD_POLLING && vthread->guest && what & NOTIFY_DATA)
            vthread->clock = poll_that_sees(vthread, time);
        else if (state == VTHREAD_WAITING && vthread->waits_for & what)
            vthread->clock = time > vthread->clock ? time : vthread->clock;
        else
            continue;
        vthread->empty_polls = 0;
        store_release(&vthread->state, VTHREAD_READY);
    }
}

static void reap_dead(struct vthread *me)
{
    for (uint32_t i = 0; i < sched->vthread_high; i++) {
        struct vthread *vthread = &sched->vthreads[i];

        if (load_relaxed(&vthread->state) != VTHREAD_FREE && !vthread_alive(vthread)) {
            store_release(&vthread->state, VTHREAD_FREE);
            notify_at(vthread->clock > me->clock ? vthread->clock : me->clock,
                      NOTIFY_DATA | NOTIFY_SPACE);
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
    if (id != NO_VTHREAD)
        reap_dead(me);
    return true;
}

/* A thread may sleep in the kernel in ways that this library does not intercept. If the running
 * thread does, it is detached until its next call. Nothing else here depends on real time. */
static bool preempt_sleeper(struct vthread *me, struct watch *watch)
{
    uint32_t id = load_acquire(&sched->running);
    struct vthread *runner =
        id == NO_VTHREAD || id == vthread_id(me) ? NULL : &sched->vthreads[id - 1];

    if (!vthread_watch_asleep(watch, runner) ||
        !atomic_compare_exchange_strong(&sched->running, &id, vthread_id(me)))
        return false;
    store_release(&runner->state, VTHREAD_DETACHED);
    return true;
}

static bool may_run(const struct vthread *me)
{
    return is_running(me) && load_acquire(&me->state) == VTHREAD_RUNNING;
}

static uint64_t watch_interval(void)
{
    uint32_t id = load_acquire(&sched->running);

    return id != NO_VTHREAD && sched->vthreads[id - 1].known_by_pid ? EXIT_WATCH_NS : WATCH_NS;
}

/* Sleeps until this vthread runs. With 'may_return_stalled' it also returns when nothing can
 * happen, without time passing, so that the program can check its own timeouts. */
static void sleep_until_running(struct vthread *me, bool may_return_stalled)
{
    struct watch watch = { NULL, 0 };

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
        if (!futex_sleep(&me->wake, value, nobody ? STALL_POLL_NS : watch_interval()) ||
            (!claim_if_free(me) && !preempt_sleeper(me, &watch)))
            continue;
        if (run_next(me))
            return;
        if (may_return_stalled && claim_if_free(me)) {
            store_relaxed(&me->state, VTHREAD_RUNNING);
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
    if (is_running(me))
        run_next(me);
}

/* A vthread that was detached continues at the current time. */
static void rejoin(struct vthread *me)
{
    if (likely(is_running(me)))
        return;
    if (me->clock < sched->now)
        me->clock = sched->now;
    store_release(&me->state, VTHREAD_READY);
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

static void start_vthread(struct vthread *me)
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
    }
    shm_unlock(&sched->join_lock);
    if (me)
        start_vthread(me);
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
    pthread_setspecific(exit_key, NULL);
    if (me->guest)
        rejoin(me);
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

static void sync_clock(struct vthread *me)
{
    me->clock += compute_end();
    rejoin(me);
    me->calls++;
    store_release(&me->state, VTHREAD_READY);
    if (!run_next(me))
        wait_until_running(me, false);
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

static const struct sched_reason polls = { "polls its completion queues", -1, false };
static const struct sched_reason spins = { "spins on memory", -1, false };
static const struct sched_reason sleeps = { "sleeps until an adapter interrupts it", -1, false };

static bool wait_for_change(struct vthread *me, enum vthread_state state, double period,
                            uint64_t deadline, const struct sched_reason *why)
{
    stall_waits_for(me, why);
    me->clock += compute_end();
    rejoin(me);
    me->idle_since = me->clock;
    me->period = period < 1 ? 1 : llround(period);
    me->deadline = deadline;
    me->woken_by_change = false;
    store_release(&me->state, state);
    if (!run_next(me))
        wait_until_running(me, true);
    /* Nothing else advances time: let the polling of a guest do so. */
    if (state == VTHREAD_POLLING && me->guest && me->clock == me->idle_since)
        me->clock += round_up(RECHECK_NS, me->period);
    compute_begin();
    return me->woken_by_change;
}

bool sched_poll_wait(double period)
{
    struct vthread *me = sched_self();

    return me && wait_for_change(me, VTHREAD_POLLING, period, SCHED_NEVER, &polls);
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

    for (uint32_t i = 0; i < sched->vthread_high; i++) {
        struct vthread *vthread = &sched->vthreads[i];
        uint32_t state = load_relaxed(&vthread->state);
        uint64_t late = sched->now > vthread->idle_since ? sched->now - vthread->idle_since : 0;

        if (vthread->proc != proc || (cq && vthread->polls_only && vthread->polls_only != cq))
            continue;
        vthread->changes++;
        if (vthread->waits_for_cqe && change == CHANGE_MEMORY)
            continue;
        vthread->empty_polls = 0;
        if (state == VTHREAD_POLLING)
            vthread->clock = poll_that_sees(vthread, sched->now);
        else if (interrupts && (state == VTHREAD_BLOCKED ||
                                (state == VTHREAD_WAITING && waits_for_channel(vthread))))
            vthread->clock = vthread->idle_since + late + wake_latency(change);
        else
            continue;
        vthread->woken_by_change = true;
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

        if (load_relaxed(&vthread->state) == VTHREAD_FREE || proc_slot(vthread->proc)->pid != pid)
            continue;
        vthread->empty_polls = 0;
        vthread->changes++;
        if (load_relaxed(&vthread->state) != VTHREAD_POLLING)
            continue;
        vthread->clock = poll_that_sees(vthread, me->clock);
        vthread->woken_by_change = true;
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

/* All members have arrived: they continue at the same time. */
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
        futex_sleep(&me->wake, value, WATCH_NS);
        if (load_acquire(&me->wake) == value && count_alive() < group->wanted)
            cancel(me, group);
    }
    /* Wait until the whole group is released: time would advance without the others. */
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
    rejoin(me);
    notify_at(me->clock + llround(latency), what);
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
    wait_for_change(me, VTHREAD_WAITING, 0, deadline, why);
}

void sched_detach(void)
{
    if (!self)
        return;
    rejoin(self);
    give_up_running(self, VTHREAD_DETACHED);
}

void sched_poll_idle(double period, const struct sched_reason *why)
{
    struct vthread *me = sched_self();

    if (!me)
        return;
    if (++me->empty_polls < EMPTY_POLLS_MAX) {
        sched_charge(period);
        return;
    }
    wait_for_change(me, VTHREAD_POLLING, period, SCHED_NEVER, why);
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
    start_vthread(vthread);
}

bool sched_join_guest(void)
{
    struct vthread *me;
    bool is_new = false;

    if (self)
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
    shm_unlock(&sched->join_lock);
    if (is_new)
        vthread_await_others();
    if (me)
        sched_adopt(me);
    return me;
}

void sched_exiting(void)
{
    struct vthread *me = self;

    if (!me)
        return;
    rejoin(me);
    for (uint32_t i = 0; i < sched->vthread_high; i++) {
        struct vthread *vthread = &sched->vthreads[i];

        if (load_relaxed(&vthread->state) == VTHREAD_FREE)
            continue;
        if (vthread->guest && vthread->process == me->process)
            vthread->known_by_pid = true;
        else
            futex_wake(&vthread->wake); /* they now check more often (EXIT_WATCH_NS) */
    }
}

void sched_exec_failed(void)
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
