/* Entries never overlap. The table is guarded by a lock of its own, because memory is unmapped by
 * any thread, also by one that is within the verbs or the allocator; nothing that could unmap
 * memory is called with it held. */
#include "mtl/registration.h"

#include "mtl/log.h"
#include "mtl/mtl.h"

#include <opal/mca/base/mca_base_framework.h>
#include <opal/mca/memory/base/base.h>
#include <opal/memoryhooks/memory.h>

#include <errno.h>
#include <stdlib.h>

static struct spinlock lock;
static struct registration **table; /* by address */
static uint32_t room, count;
static struct registration **retired; /* stale and unused: to be deregistered */
static uint32_t retired_count;
static bool hooked;
static uint64_t clock_hand;

/* The first entry that ends behind the address. */
static uint32_t place_of(uintptr_t address)
{
    uint32_t low = 0, high = count;

    while (low < high) {
        uint32_t middle = (low + high) / 2;

        if (table[middle]->end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void remove_at(uint32_t place)
{
    struct registration *registration = table[place];

    memmove(&table[place], &table[place + 1], (--count - place) * sizeof(*table));
    registration->stale = true;
    if (!registration->users)
        retired[retired_count++] = registration;
}

/* Called by whoever unmaps memory, in the middle of that. */
static void unmapped(void *start, size_t length, void *unused, bool from_alloc)
{
    uintptr_t from = (uintptr_t)start, to = from + length;

    spin_lock(&lock);
    for (uint32_t place = place_of(from); place < count && table[place]->start < to;)
        remove_at(place);
    spin_unlock(&lock);
}

static void deregister(struct registration *registration)
{
    for (uint32_t i = 0; i < devices.count; i++) {
        if (registration->regions[i])
            ibv_dereg_mr(registration->regions[i]);
    }
    free(registration);
}

static void deregister_retired(void)
{
    for (;;) {
        struct registration *registration;

        spin_lock(&lock);
        registration = retired_count ? retired[--retired_count] : NULL;
        spin_unlock(&lock);
        if (!registration)
            return;
        deregister(registration);
    }
}

int registrations_init(uint32_t wanted)
{
    room = wanted;
    table = calloc(room + 1, sizeof(*table));
    retired = calloc(room + 1, sizeof(*retired));
    if (!table || !retired)
        return ENOMEM;
    /* Without hooks nothing can be kept: what is registered may be unmapped unseen. */
    hooked = mca_base_framework_open(&opal_memory_base_framework, 0) == OPAL_SUCCESS &&
             (opal_mem_hooks_support_level() & OPAL_MEMORY_FREE_SUPPORT) &&
             opal_mem_hooks_register_release(unmapped, NULL) == OPAL_SUCCESS;
    return 0;
}

void registrations_free(void)
{
    if (hooked)
        opal_mem_hooks_unregister_release(unmapped);
    hooked = false;
    spin_lock(&lock);
    while (count)
        remove_at(count - 1);
    spin_unlock(&lock);
    if (retired)
        deregister_retired();
    free(table);
    free(retired);
    table = retired = NULL;
}

static struct registration *find(uintptr_t start, uintptr_t end)
{
    struct registration *found = NULL;
    uint32_t place;

    spin_lock(&lock);
    place = place_of(start);
    if (place < count && table[place]->start <= start && table[place]->end >= end) {
        found = table[place];
        found->users++;
        found->used_at = ++clock_hand;
    }
    spin_unlock(&lock);
    return found;
}

/* Buffers of the heap share pages: whoever took the place of its neighbour would lose its own to it
 * the next time, and both would be registered again and again. So the new one covers both. */
static void cover_neighbours(uintptr_t *start, uintptr_t *end)
{
    spin_lock(&lock);
    for (uint32_t place = place_of(*start); place < count && table[place]->start < *end; place++) {
        if (table[place]->start < *start)
            *start = table[place]->start;
        if (table[place]->end > *end)
            *end = table[place]->end;
    }
    spin_unlock(&lock);
}

/* Called with the lock held. What nobody uses and was used longest ago makes room. */
static void make_room(void)
{
    uint32_t oldest = count;

    if (count + retired_count < room)
        return;
    for (uint32_t i = 0; i < count; i++) {
        if (!table[i]->users && (oldest == count || table[i]->used_at < table[oldest]->used_at))
            oldest = i;
    }
    if (oldest < count)
        remove_at(oldest);
}

/* Takes the place of those it overlaps. If there is no room, it is used once. */
static void insert(struct registration *registration)
{
    uint32_t place;

    spin_lock(&lock);
    place = place_of(registration->start);
    while (place < count && table[place]->start < registration->end)
        remove_at(place);
    make_room();
    if (hooked && count + retired_count < room) {
        place = place_of(registration->start);
        memmove(&table[place + 1], &table[place], (count++ - place) * sizeof(*table));
        table[place] = registration;
        registration->stale = false;
        registration->used_at = ++clock_hand;
    }
    spin_unlock(&lock);
}

static struct registration *make(uintptr_t start, uintptr_t end)
{
    struct registration *registration = calloc(1, sizeof(*registration));
    int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

    if (!registration)
        return NULL;
    *registration = (struct registration){ .start = start, .end = end, .users = 1, .stale = true };
    for (uint32_t i = 0; i < devices.count; i++) {
        struct ibv_pd *pd = devices.device[i].pd;
        struct ibv_mr *region = ibv_reg_mr(pd, (void *)start, end - start, access);

        /* Memory that the program may only read can still be sent. */
        if (!region)
            region = ibv_reg_mr(pd, (void *)start, end - start, IBV_ACCESS_REMOTE_READ);
        registration->regions[i] = region;
        if (!region) {
            mtl_log("%zu bytes cannot be registered: %s", end - start, strerror(errno));
            deregister(registration);
            return NULL;
        }
    }
    mtl.counters.registrations++;
    return registration;
}

struct registration *registration_get(const void *start, uint64_t length)
{
    uintptr_t from = (uintptr_t)start / PAGE * PAGE;
    uintptr_t to = round_up((uintptr_t)start + length, PAGE);
    struct registration *registration = find(from, to);

    if (registration)
        return registration;
    deregister_retired();
    cover_neighbours(&from, &to);
    registration = make(from, to);
    if (registration)
        insert(registration);
    return registration;
}

void registration_put(struct registration *registration)
{
    bool last;

    spin_lock(&lock);
    last = !--registration->users && registration->stale;
    spin_unlock(&lock);
    if (last)
        deregister(registration);
}
