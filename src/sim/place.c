#include "sim/place.h"

#include "hca/proc.h"
#include "sim/turn.h"
#include "util/log.h"

#include <stdlib.h>
#include <unistd.h>

/* Virtual: guests that come from outside start at multiples of this. */
#define ARRIVAL_NS 100000000

uint32_t place_own_order(void)
{
    static _Atomic uint32_t threads;
    const char *rank = getenv("VERBENA_RANK");
    uint32_t place = rank ? strtoul(rank, NULL, 10) : segment_config()->node;

    return place << 12 | (atomic_fetch_add(&threads, 1) & 0xfff);
}

struct entity *place_find_free(void)
{
    for (uint32_t i = 0; i < ENTITIES_MAX; i++) {
        struct entity *entity = &world->entities[i];

        if (load_acquire(&entity->state) != ENTITY_FREE)
            continue;
        if (i >= world->entity_high)
            world->entity_high = i + 1;
        entity->process = proc_word(proc_self);
        entity->proc = proc_self;
        entity->quiet_polls = 0;
        entity->guest = entity->known_by_pid = entity->spins = entity->watched = false;
        entity->pid = entity->tid = 0;
        entity->waits_for = 0;
        entity->deadline = TURN_NEVER;
        return entity;
    }
    log_error("more than %d threads in the modelled fabric", ENTITIES_MAX);
    return NULL;
}

void place_make_guest(struct entity *entity, uint32_t order)
{
    entity->guest = true;
    entity->number = ++world->guest_count;
    entity->order = order + entity->number;
}

bool place_is_alone(const struct entity *me)
{
    for (uint32_t i = 0; i < world->entity_high; i++) {
        const struct entity *entity = &world->entities[i];

        if (entity != me && load_acquire(&entity->state) != ENTITY_FREE &&
            entity->process == me->process)
            return false;
    }
    return true;
}

static bool watches_strangers;

void place_watch_strangers(void)
{
    watches_strangers = true;
}

/* Threads that nobody has announced belong to somebody who may have them wait for each other in
 * ways that are not seen from here. */
void place_joined_unannounced(struct entity *me)
{
    if (!watches_strangers || place_is_alone(me))
        return;
    for (uint32_t i = 0; i < world->entity_high; i++) {
        struct entity *entity = &world->entities[i];

        if (entity == me ||
            (load_acquire(&entity->state) != ENTITY_FREE && entity->process == me->process))
            entity->watched = true;
    }
}

struct entity *place_left_behind(void)
{
    struct entity *found = NULL;

    for (uint32_t i = 0; i < world->entity_high; i++) {
        struct entity *entity = &world->entities[i];

        if (load_acquire(&entity->state) == ENTITY_FREE || !entity->known_by_pid ||
            entity->pid != getpid())
            continue;
        if (found || entity->tid != entity->pid)
            store_release(&entity->state, ENTITY_FREE);
        else
            found = entity;
    }
    return found;
}

uint64_t place_next_round_time(void)
{
    uint64_t latest = world->now;
    bool alone = true;

    for (uint32_t i = 0; i < world->entity_high; i++) {
        const struct entity *entity = &world->entities[i];

        if (load_acquire(&entity->state) == ENTITY_FREE)
            continue;
        alone = false;
        if (entity->clock > latest)
            latest = entity->clock;
    }
    return alone && !latest ? 0 : round_up(latest + 1, ARRIVAL_NS);
}
