#include "sim/turn.h"

#include "hca/proc.h"
#include "sim/compute.h"
#include "sim/place.h"
#include "sim/watch.h"
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

static __thread struct entity *self;
static void (*resumed)(void);
static pthread_key_t end_of_thread;
static pthread_once_t prepared = PTHREAD_ONCE_INIT;

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

static uint32_t turn_of(const struct entity *entity)
{
    return entity - world->entities + 1;
}

static bool has_turn(const struct entity *entity)
{
    return load_acquire(&world->turn) == turn_of(entity);
}

/* When the thread goes on by itself. */
static uint64_t due_time(const struct entity *entity, uint32_t state)
{
    if (state == ENTITY_READY)
        return entity->clock;
    return state == ENTITY_WAITING || state == ENTITY_PARKED ? entity->deadline : TURN_NEVER;
}

/* A guest that rests may have limits of patience of its own, and what a thread waits for may be
 * done by one that takes no part. They look up now and then, but only if time passes anyway. */
static uint64_t restless_time(const struct entity *entity, uint32_t state)
{
    if (state == ENTITY_PARKED && entity->guest)
        return entity->rested_at + round_up(PATIENCE_NS, entity->period);
    return state == ENTITY_WAITING ? entity->clock + PATIENCE_NS : TURN_NEVER;
}

struct candidate {
    struct entity *entity;
    uint64_t time;
};

static void consider(struct candidate *best, struct entity *entity, uint64_t time)
{
    if (time == TURN_NEVER)
        return;
    if (!best->entity || time < best->time ||
        (time == best->time && entity->order < best->entity->order))
        *best = (struct candidate){ entity, time };
}

/* True if anybody rests, for whom it is worth that time passes. */
static bool find_candidates(struct candidate *due, struct candidate *restless)
{
    bool resting = false;

    *due = *restless = (struct candidate){ NULL, TURN_NEVER };
    for (uint32_t i = 0; i < world->entity_high; i++) {
        struct entity *entity = &world->entities[i];
        uint32_t state = load_acquire(&entity->state);

        resting |= state == ENTITY_PARKED || state == ENTITY_BLOCKED || state == ENTITY_WAITING;
        consider(due, entity, due_time(entity, state));
        consider(restless, entity, restless_time(entity, state));
    }
    return resting;
}

static void run_first_event(void)
{
    struct event event;

    event_pop(&event);
    if (event.time > world->now)
        world->now = event.time;
    world->events_run++;
    event_dispatch(&event);
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

        if (!next->entity && (!events || !resting))
            return false;
        if (restless.time < next->time && (!events || restless.time < time))
            *next = restless;
        if (!events || next->time < time)
            return true;
        limit = next->time < restless.time ? next->time : restless.time;
        do
            run_first_event();
        while (!world->woken && event_next_time(&time) && time <= limit);
        world->woken = false;
    }
}

/* Gives the turn to whoever is next; true if that is us. */
static bool pass_on(struct entity *me)
{
    struct candidate next;
    bool found = find_next(&next);

    inside_flush();
    if (!found) {
        store_release(&world->turn, NOBODY);
        return false;
    }
    if (next.time > next.entity->clock)
        next.entity->clock = next.time;
    store_relaxed(&next.entity->state, ENTITY_RUNNING);
    store_release(&world->turn, turn_of(next.entity));
    if (next.entity == me)
        return true;
    futex_wake(&next.entity->wake);
    return false;
}

/* Those who wait for one of these look again at that time. */
static void stir_at(uint64_t time, uint32_t what)
{
    for (uint32_t i = 0; i < world->entity_high; i++) {
        struct entity *entity = &world->entities[i];
        uint32_t state = load_relaxed(&entity->state);

        if (state == ENTITY_PARKED && entity->guest && what & STIR_DATA && time > entity->rested_at)
            entity->clock = entity->rested_at + round_up(time - entity->rested_at, entity->period);
        else if (state == ENTITY_WAITING && entity->waits_for & what)
            entity->clock = time > entity->clock ? time : entity->clock;
        else
            continue;
        entity->quiet_polls = 0;
        store_release(&entity->state, ENTITY_READY);
    }
}

static void forget_dead(struct entity *me)
{
    for (uint32_t i = 0; i < world->entity_high; i++) {
        struct entity *entity = &world->entities[i];

        if (load_relaxed(&entity->state) != ENTITY_FREE && !entity_alive(entity)) {
            store_release(&entity->state, ENTITY_FREE);
            stir_at(entity->clock > me->clock ? entity->clock : me->clock, STIR_DATA | STIR_ROOM);
        }
    }
}

/* Takes a turn that is nobody's, or was that of a process which has died. */
static bool take_free_turn(struct entity *me)
{
    uint32_t turn = load_acquire(&world->turn);

    if (turn != NOBODY && entity_alive(&world->entities[turn - 1]))
        return false;
    if (!atomic_compare_exchange_strong(&world->turn, &turn, turn_of(me)))
        return false;
    if (turn != NOBODY)
        forget_dead(me);
    return true;
}

/* A thread may sleep in the kernel in ways that are not seen from here. Found so, it loses the
 * turn; it comes back at its next call. Nothing else in here depends on real time. */
static bool take_from_sleeper(struct entity *me, struct watch *watch)
{
    uint32_t turn = load_acquire(&world->turn);
    struct entity *holder =
        turn == NOBODY || turn == turn_of(me) ? NULL : &world->entities[turn - 1];

    if (!watch_finds_asleep(watch, holder) ||
        !atomic_compare_exchange_strong(&world->turn, &turn, turn_of(me)))
        return false;
    store_release(&holder->state, ENTITY_OUT);
    return true;
}

static bool running(const struct entity *me)
{
    return has_turn(me) && load_acquire(&me->state) == ENTITY_RUNNING;
}

static uint64_t patience_with_holder(void)
{
    uint32_t turn = load_acquire(&world->turn);

    return turn != NOBODY && world->entities[turn - 1].known_by_pid ? ENDING_NS : WATCH_NS;
}

/* Sleeps until we are running. One that is parked also comes back when nothing can happen, so that
 * the program can look at its own limits of patience; no time has passed then. */
static void sleep_for_turn(struct entity *me, bool may_return_frozen)
{
    struct watch watch = { NULL, 0 };

    while (!running(me)) {
        uint32_t value = load_acquire(&me->wake);
        bool nobody = load_acquire(&world->turn) == NOBODY;

        if (running(me))
            return;
        if (nobody && load_acquire(&me->state) == ENTITY_READY && take_free_turn(me)) {
            if (pass_on(me))
                return;
            continue;
        }
        if (!futex_sleep(&me->wake, value, nobody ? FROZEN_NS : patience_with_holder()) ||
            (!take_free_turn(me) && !take_from_sleeper(me, &watch)))
            continue;
        if (pass_on(me))
            return;
        if (may_return_frozen && take_free_turn(me)) {
            store_relaxed(&me->state, ENTITY_RUNNING);
            return;
        }
    }
}

static void wait_for_turn(struct entity *me, bool may_return_frozen)
{
    store_release(&me->awaits_turn, true);
    sleep_for_turn(me, may_return_frozen);
    store_release(&me->awaits_turn, false);
    me->calls++;
    if (resumed)
        resumed();
}

static void give_up_turn(struct entity *me, enum entity_state state)
{
    store_release(&me->state, state);
    if (has_turn(me))
        pass_on(me);
}

/* One that has lost its turn meanwhile comes back at the present. */
static void come_back(struct entity *me)
{
    if (likely(has_turn(me)))
        return;
    if (me->clock < world->now)
        me->clock = world->now;
    store_release(&me->state, ENTITY_READY);
    wait_for_turn(me, false);
}

static void leave_at_end(void *entity)
{
    self = entity;
    turn_leave();
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

static void become(struct entity *me)
{
    self = me;
    pthread_once(&prepared, prepare);
    pthread_setspecific(end_of_thread, me);
    wait_for_turn(me, false);
}

static struct entity *join(void)
{
    struct entity *me;

    shm_lock(&world->join_lock);
    me = place_find_free();
    if (me) {
        me->order = place_own_order();
        me->clock = world->now;
        me->pid = getpid();
        me->tid = syscall(SYS_gettid);
        place_joined_unannounced(me);
        store_release(&me->state, ENTITY_READY);
    }
    shm_unlock(&world->join_lock);
    if (me)
        become(me);
    return me;
}

bool turn_takes_part(void)
{
    return self != NULL;
}

struct entity *turn_self(void)
{
    if (likely(self != NULL))
        return self;
    return join();
}

void turn_leave(void)
{
    struct entity *me = self;

    if (!me)
        return;
    self = NULL;
    pthread_setspecific(end_of_thread, NULL);
    if (me->guest)
        come_back(me);
    if (has_turn(me))
        stir_at(me->clock, STIR_DATA | STIR_LOCK);
    give_up_turn(me, ENTITY_FREE);
}

uint64_t turn_now(void)
{
    struct entity *me = turn_self();

    return me ? me->clock : world->now;
}

uint64_t turn_read(void)
{
    struct entity *me = turn_self();

    if (!me)
        return world->now;
    me->clock += compute_end();
    compute_begin();
    return me->clock;
}

static void await(struct entity *me)
{
    me->clock += compute_end();
    come_back(me);
    me->calls++;
    store_release(&me->state, ENTITY_READY);
    if (!pass_on(me))
        wait_for_turn(me, false);
    me->shown_at = me->clock;
    compute_begin();
}

void turn_charge(double ns)
{
    struct entity *me = turn_self();

    if (!me)
        return;
    me->clock += llround(ns);
    await(me);
    me->acted_at = me->clock;
}

void turn_await(void)
{
    turn_charge(0);
}

static bool rest(struct entity *me, enum entity_state state, double period, uint64_t deadline)
{
    me->clock += compute_end();
    come_back(me);
    me->rested_at = me->clock;
    me->period = period < 1 ? 1 : llround(period);
    me->deadline = deadline;
    me->woken = false;
    store_release(&me->state, state);
    if (!pass_on(me))
        wait_for_turn(me, true);
    /* Nothing else makes time pass: then the looking of a guest does. */
    if (state == ENTITY_PARKED && me->guest && me->clock == me->rested_at)
        me->clock += round_up(PATIENCE_NS, me->period);
    compute_begin();
    return me->woken;
}

bool turn_park(double period)
{
    struct entity *me = turn_self();

    return me && rest(me, ENTITY_PARKED, period, TURN_NEVER);
}

uint32_t turn_changes(void)
{
    struct entity *me = turn_self();

    if (!me)
        return 0;
    me->spins = true;
    return me->changes;
}

bool turn_spin(double period, uint32_t changes, uint64_t until)
{
    struct entity *me = turn_self();

    if (!me)
        return false;
    turn_await();
    return me->changes != changes || rest(me, ENTITY_PARKED, period, until);
}

bool turn_block(void)
{
    struct entity *me = turn_self();

    return me && rest(me, ENTITY_BLOCKED, 0, TURN_NEVER);
}

/* A descriptor that it waits for may be that of a completion channel. */
static bool waits_for_adapter(const struct entity *entity)
{
    return entity->waits_for & STIR_DATA;
}

/* From an interrupt to a thread that runs. */
static uint64_t waking_time(enum turn_change change)
{
    const struct parameters *p = &world->parameters;

    return llround(change == CHANGE_SENT && p->host.wake_send > 0 ? p->host.wake_send
                                                                  : p->host.wake_receive);
}

void turn_wake(uint32_t proc, enum turn_change change)
{
    bool interrupts = change >= CHANGE_SENT;

    for (uint32_t i = 0; i < world->entity_high; i++) {
        struct entity *entity = &world->entities[i];
        uint32_t state = load_relaxed(&entity->state);
        uint64_t late = world->now > entity->rested_at ? world->now - entity->rested_at : 0;

        if (entity->proc != proc)
            continue;
        entity->changes++;
        if (entity->only_polls && change == CHANGE_MEMORY)
            continue;
        entity->quiet_polls = 0;
        if (state == ENTITY_PARKED)
            entity->clock = entity->rested_at + round_up(late, entity->period);
        else if (interrupts && (state == ENTITY_BLOCKED ||
                                (state == ENTITY_WAITING && waits_for_adapter(entity))))
            entity->clock = entity->rested_at + late + waking_time(change);
        else
            continue;
        entity->woken = true;
        store_release(&entity->state, ENTITY_READY);
        world->woken = true;
    }
}

void turn_wrote(int32_t pid)
{
    struct entity *me = turn_self();

    if (!me)
        return;
    turn_await();
    for (uint32_t i = 0; i < world->entity_high; i++) {
        struct entity *entity = &world->entities[i];
        uint64_t late = me->clock > entity->rested_at ? me->clock - entity->rested_at : 0;

        if (load_relaxed(&entity->state) == ENTITY_FREE || proc_slot(entity->proc)->pid != pid)
            continue;
        entity->quiet_polls = 0;
        entity->changes++;
        if (load_relaxed(&entity->state) != ENTITY_PARKED)
            continue;
        entity->clock = entity->rested_at + round_up(late, entity->period);
        entity->woken = true;
        store_release(&entity->state, ENTITY_READY);
    }
}

void turn_together_begin(uint32_t count)
{
    struct entity *me = turn_self();
    struct together *group = &world->together;

    if (!me)
        return;
    turn_await();
    me->round = group->round;
    group->wanted = count;
    group->arrived++;
    if (me->clock > group->latest)
        group->latest = me->clock;
    give_up_turn(me, ENTITY_TOGETHER);
}

/* All are there: they start together. */
static void release_group(struct together *group)
{
    for (uint32_t i = 0; i < world->entity_high; i++) {
        struct entity *entity = &world->entities[i];

        if (load_relaxed(&entity->state) != ENTITY_TOGETHER)
            continue;
        entity->clock = group->latest;
        store_release(&entity->state, ENTITY_READY);
        futex_wake(&entity->wake);
    }
    group->arrived = group->ended = 0;
    group->latest = 0;
    group->round++;
}

static void cancel(struct entity *me, struct together *group)
{
    shm_lock(&world->join_lock);
    if (group->round == me->round && group->arrived)
        group->arrived--;
    store_release(&me->state, ENTITY_READY);
    shm_unlock(&world->join_lock);
}

static uint32_t living(void)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < world->entity_high; i++) {
        struct entity *entity = &world->entities[i];

        count += load_acquire(&entity->state) != ENTITY_FREE && proc_word_alive(entity->process);
    }
    return count;
}

void turn_together_end(bool all)
{
    struct entity *me = self;
    struct together *group = &world->together;

    if (!me)
        return;
    if (all) {
        shm_lock(&world->join_lock);
        if (++group->ended >= group->wanted)
            release_group(group);
        shm_unlock(&world->join_lock);
    } else {
        cancel(me, group);
    }
    while (load_acquire(&me->state) == ENTITY_TOGETHER) {
        uint32_t value = load_acquire(&me->wake);

        if (load_acquire(&me->state) != ENTITY_TOGETHER)
            break;
        futex_sleep(&me->wake, value, WATCH_NS);
        if (load_acquire(&me->wake) == value && living() < group->wanted)
            cancel(me, group);
    }
    /* Not before the whole group is let go: time would pass without those who are not yet. */
    shm_lock(&world->join_lock);
    shm_unlock(&world->join_lock);
    wait_for_turn(me, false);
}

/* ---- guests ---- */

void turn_stir(uint32_t what, double latency)
{
    struct entity *me = turn_self();

    if (!me)
        return;
    come_back(me);
    stir_at(me->clock + llround(latency), what);
}

void turn_on_resume(void (*call)(void))
{
    resumed = call;
}

uint32_t turn_number(void)
{
    struct entity *me = turn_self();

    return me ? me->number : 0;
}

uint64_t turn_activity(void)
{
    return self && has_turn(self) ? self->calls + 1 : 0;
}

void turn_glance(double ns)
{
    struct entity *me = turn_self();
    uint64_t ahead;

    if (!me)
        return;
    me->clock += compute_end() + llround(ns);
    me->calls++;
    ahead = me->clock - me->shown_at;
    if (!has_turn(me) || ahead > GLANCES_NS || ahead * 4 > me->clock - me->acted_at)
        await(me);
    else
        compute_begin();
}

void turn_wait(uint64_t deadline, uint32_t waits_for)
{
    struct entity *me = turn_self();

    if (!me)
        return;
    me->waits_for = waits_for;
    rest(me, ENTITY_WAITING, 0, deadline);
}

void turn_step_out(void)
{
    if (!self)
        return;
    come_back(self);
    give_up_turn(self, ENTITY_OUT);
}

void turn_idle(double period)
{
    struct entity *me = turn_self();

    if (!me)
        return;
    if (++me->quiet_polls < QUIET_LOOKS) {
        turn_charge(period);
        return;
    }
    rest(me, ENTITY_PARKED, period, TURN_NEVER);
}

struct entity *turn_reserve(void)
{
    struct entity *me = turn_self(), *entity;

    if (!me)
        return NULL;
    turn_await();
    shm_lock(&world->join_lock);
    entity = place_find_free();
    if (entity) {
        if (me->guest)
            place_make_guest(entity, me->order);
        else
            entity->order = place_own_order();
        entity->clock = me->clock;
        store_release(&entity->state, ENTITY_READY);
    }
    shm_unlock(&world->join_lock);
    return entity;
}

void turn_give_back(struct entity *entity)
{
    store_release(&entity->state, ENTITY_FREE);
}

void turn_take(struct entity *entity)
{
    entity->process = proc_word(proc_self);
    entity->proc = proc_self;
    entity->pid = getpid();
    entity->tid = syscall(SYS_gettid);
    entity->known_by_pid = false;
    become(entity);
}

bool turn_arrive(void)
{
    struct entity *me;

    if (self)
        return true;
    shm_lock(&world->join_lock);
    me = place_left_behind();
    if (!me && (me = place_find_free())) {
        place_make_guest(me, segment_config()->node << 20);
        me->clock = place_next_round_time();
        store_release(&me->state, ENTITY_READY);
    }
    shm_unlock(&world->join_lock);
    if (me)
        turn_take(me);
    return me;
}

void turn_ending(void)
{
    struct entity *me = self;

    if (!me)
        return;
    come_back(me);
    for (uint32_t i = 0; i < world->entity_high; i++) {
        struct entity *entity = &world->entities[i];

        if (load_relaxed(&entity->state) == ENTITY_FREE)
            continue;
        if (entity->guest && entity->process == me->process)
            entity->known_by_pid = true;
        else
            futex_wake(&entity->wake); /* they look more often now */
    }
}

void turn_stop(void)
{
    if (self && self->guest)
        turn_ending();
    else
        turn_leave();
}
