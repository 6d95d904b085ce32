#include "sim/turn.h"

#include "hca/proc.h"
#include "util/log.h"

#include <limits.h>
#include <linux/futex.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NOBODY    0
#define WATCH_NS  50000000 /* between two looks whether the one who has the turn lives */
#define FROZEN_NS 5000000  /* a parked thread looks up so often while nothing can happen */

static __thread struct entity *self;
static pthread_key_t end_of_thread;
static pthread_once_t prepared = PTHREAD_ONCE_INIT;

static void futex_sleep(_Atomic uint32_t *word, uint32_t value, uint64_t ns)
{
    struct timespec timeout = { ns / 1000000000, ns % 1000000000 };

    syscall(SYS_futex, word, FUTEX_WAIT, value, &timeout, NULL, 0);
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

static bool goes_first(const struct entity *a, const struct entity *b)
{
    return a->clock < b->clock || (a->clock == b->clock && a->order < b->order);
}

static struct entity *first_ready(bool *parked)
{
    struct entity *best = NULL;

    *parked = false;
    for (uint32_t i = 0; i < world->entity_high; i++) {
        struct entity *entity = &world->entities[i];
        uint32_t state = load_acquire(&entity->state);

        if (state == ENTITY_PARKED || state == ENTITY_BLOCKED)
            *parked = true;
        if (state == ENTITY_READY && (!best || goes_first(entity, best)))
            best = entity;
    }
    return best;
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

/* Lets the adapters work until a thread is due; events come first when times are equal. NULL: nobody
 * is due, and nothing inside will change that. Time does not pass for those who wait for each other
 * outside alone. */
static struct entity *next_entity(void)
{
    for (;;) {
        bool parked;
        struct entity *entity = first_ready(&parked);
        uint64_t time;

        if (!event_next_time(&time) || (!entity && !parked) || (entity && entity->clock < time))
            return entity;
        do
            run_first_event();
        while (!world->woken && event_next_time(&time) && (!entity || time <= entity->clock));
        world->woken = false;
    }
}

/* Gives the turn to whoever is next; true if that is us. */
static bool pass_on(struct entity *me)
{
    struct entity *next = next_entity();

    if (!next) {
        store_release(&world->turn, NOBODY);
        return false;
    }
    store_relaxed(&next->state, ENTITY_RUNNING);
    store_release(&world->turn, turn_of(next));
    if (next == me)
        return true;
    futex_wake(&next->wake);
    return false;
}

static void forget_dead(void)
{
    for (uint32_t i = 0; i < world->entity_high; i++) {
        struct entity *entity = &world->entities[i];

        if (load_relaxed(&entity->state) != ENTITY_FREE && !proc_word_alive(entity->process))
            store_release(&entity->state, ENTITY_FREE);
    }
}

/* Takes a turn that is nobody's, or was that of a process which has died. */
static bool take_free_turn(struct entity *me)
{
    uint32_t turn = load_acquire(&world->turn);

    if (turn != NOBODY && proc_word_alive(world->entities[turn - 1].process))
        return false;
    if (!atomic_compare_exchange_strong(&world->turn, &turn, turn_of(me)))
        return false;
    forget_dead();
    return true;
}

static bool running(const struct entity *me)
{
    return has_turn(me) && load_acquire(&me->state) == ENTITY_RUNNING;
}

/* Sleeps until we are running. One that is parked also comes back when nothing can happen, so that
 * the program can look at its own limits of patience; no time has passed then. */
static void wait_for_turn(struct entity *me, bool may_return_frozen)
{
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
        futex_sleep(&me->wake, value, nobody ? FROZEN_NS : WATCH_NS);
        if (load_acquire(&me->wake) != value || !take_free_turn(me))
            continue;
        if (pass_on(me))
            return;
        if (may_return_frozen && take_free_turn(me)) {
            store_relaxed(&me->state, ENTITY_RUNNING);
            return;
        }
    }
}

static void give_up_turn(struct entity *me, enum entity_state state)
{
    store_release(&me->state, state);
    if (has_turn(me))
        pass_on(me);
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

static uint32_t own_order(void)
{
    static _Atomic uint32_t threads;
    const char *rank = getenv("VERBENA_RANK");
    uint32_t place = rank ? strtoul(rank, NULL, 10) : segment_config()->node;

    return place << 12 | (atomic_fetch_add(&threads, 1) & 0xfff);
}

static struct entity *join(void)
{
    struct entity *me = NULL;

    pthread_once(&prepared, prepare);
    shm_lock(&world->join_lock);
    for (uint32_t i = 0; i < ENTITIES_MAX && !me; i++) {
        if (load_acquire(&world->entities[i].state) != ENTITY_FREE)
            continue;
        me = &world->entities[i];
        me->process = proc_word(proc_self);
        me->proc = proc_self;
        me->order = own_order();
        me->quiet_polls = 0;
        me->clock = world->now;
        if (i >= world->entity_high)
            world->entity_high = i + 1;
        store_release(&me->state, ENTITY_READY);
    }
    shm_unlock(&world->join_lock);
    if (!me) {
        log_error("more than %d threads in the modelled fabric", ENTITIES_MAX);
        return NULL;
    }
    self = me;
    pthread_setspecific(end_of_thread, me);
    wait_for_turn(me, false);
    return me;
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
    give_up_turn(me, ENTITY_FREE);
}

uint64_t turn_now(void)
{
    struct entity *me = turn_self();

    return me ? me->clock : world->now;
}

static void await(struct entity *me)
{
    store_release(&me->state, ENTITY_READY);
    if (!pass_on(me))
        wait_for_turn(me, false);
}

void turn_charge(double ns)
{
    struct entity *me = turn_self();

    if (!me)
        return;
    me->clock += llround(ns);
    await(me);
}

void turn_await(void)
{
    turn_charge(0);
}

static bool rest(struct entity *me, enum entity_state state, double period)
{
    me->rested_at = me->clock;
    me->period = period < 1 ? 1 : llround(period);
    me->woken = false;
    store_release(&me->state, state);
    if (!pass_on(me))
        wait_for_turn(me, true);
    return me->woken;
}

bool turn_park(double period)
{
    struct entity *me = turn_self();

    return me && rest(me, ENTITY_PARKED, period);
}

void turn_spin(double period)
{
    struct entity *me = turn_self();
    uint32_t changes;

    if (!me)
        return;
    changes = me->changes;
    turn_await();
    if (me->changes == changes)
        rest(me, ENTITY_PARKED, period);
}

bool turn_block(double wake)
{
    struct entity *me = turn_self();

    return me && rest(me, ENTITY_BLOCKED, wake);
}

void turn_wake(uint32_t proc)
{
    for (uint32_t i = 0; i < world->entity_high; i++) {
        struct entity *entity = &world->entities[i];
        uint32_t state = load_relaxed(&entity->state);
        uint64_t late =
            world->now > entity->rested_at ? world->now - entity->rested_at : 0;

        if (entity->proc != proc)
            continue;
        entity->quiet_polls = 0;
        entity->changes++;
        if (state != ENTITY_PARKED && state != ENTITY_BLOCKED)
            continue;
        if (state == ENTITY_PARKED)
            entity->clock =
                entity->rested_at + (late + entity->period - 1) / entity->period * entity->period;
        else
            entity->clock = entity->rested_at + late + entity->period;
        entity->woken = true;
        store_release(&entity->state, ENTITY_READY);
        world->woken = true;
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
    wait_for_turn(me, false);
}
