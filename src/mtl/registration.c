/* SPDX-License-Identifier: BSD-2-Clause */
/* Entries never overlap. The table has a lock of its own, because any thread may unmap memory, even
 * inside the verbs library or the allocator. Nothing that could unmap memory is called while the
 * lock is held. */
#include "mtl/registration.h"

#include "mtl/log.h"
#include "mtl/mtl.h"

#include <opal/mca/base/mca_base_framework.h>
#include <opal/mca/memory/base/base.h>
#include <opal/memoryhooks/memory.h>

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>

static struct spinlock lock;
static struct registration **table; /* sorted by address */
static uint32_t capacity, count;
static struct registration **retired; /* stale and unused: to be deregistered */
static uint32_t retired_count;
static bool hooked;
static uint64_t use_clock;

/* The first entry that ends after the address. */
static uint32_t index_of(uintptr_t address)
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

static void remove_at(uint32_t index)
{
    struct registration *registration = table[index];

    memmove(&table[index], &table[index + 1], (--count - index) * sizeof(*table));
    registration->stale = true;
    if (!registration->users)
        retired[retired_count++] = registration;
}

/* Memory hook: called by the thread that unmaps memory. */
static void unmapped(void *start, size_t length, void *unused, bool from_alloc)
{
    uintptr_t from = (uintptr_t)start, to = from + length;

    spin_lock(&lock);
    for (uint32_t index = index_of(from); index < count && table[index]->start < to;)
        remove_at(index);
    spin_unlock(&lock);
}

static void deregister(struct registration *registration)
{
    if (unlikely(recording))
        record_deregistered(registration->end - registration->start);
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

struct heap {
    char *end;
    bool noticed;
};

static void notice(void *start, size_t length, void *cookie, bool from_alloc)
{
    struct heap *heap = cookie;

    heap->noticed |= (char *)start < heap->end && (char *)start + length >= heap->end;
}

/* Lets the heap shrink, and returns whether Open MPI saw it. */
static bool sees_heap_shrink(void)
{
    struct heap heap = { .end = sbrk(0) };

    if (opal_mem_hooks_register_release(notice, &heap) != OPAL_SUCCESS)
        return false;
    malloc_trim(0);
    opal_mem_hooks_unregister_release(notice);
    return heap.noticed;
}

/* Open MPI 5 does not see it with the C library of Debian 13. What is freed then stays in the heap;
 * the second call keeps what the first would change: large blocks come from the heap once one of
 * their size was freed. */
static void keep_heap(void)
{
    mallopt(M_TRIM_THRESHOLD, -1);
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
}

int registrations_init(uint32_t entries)
{
    capacity = entries;
    table = calloc(capacity + 1, sizeof(*table));
    retired = calloc(capacity + 1, sizeof(*retired));
    if (!table || !retired)
        return ENOMEM;
    /* Without hooks the cache stays empty: memory could be unmapped unnoticed. */
    hooked = mca_base_framework_open(&opal_memory_base_framework, 0) == OPAL_SUCCESS &&
             (opal_mem_hooks_support_level() & OPAL_MEMORY_FREE_SUPPORT) &&
             opal_mem_hooks_register_release(unmapped, NULL) == OPAL_SUCCESS;
    if (hooked && !sees_heap_shrink())
        keep_heap();
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
    uint32_t index;

    spin_lock(&lock);
    index = index_of(start);
    if (index < count && table[index]->start <= start && table[index]->end >= end) {
        found = table[index];
        found->users++;
        found->used_at = ++use_clock;
    }
    spin_unlock(&lock);
    return found;
}

/* Heap buffers share pages. If one registration replaced that of its neighbour, the two would evict
 * each other again and again; so the new registration covers both. */
static void cover_neighbours(uintptr_t *start, uintptr_t *end)
{
    spin_lock(&lock);
    for (uint32_t index = index_of(*start); index < count && table[index]->start < *end; index++) {
        if (table[index]->start < *start)
            *start = table[index]->start;
        if (table[index]->end > *end)
            *end = table[index]->end;
    }
    spin_unlock(&lock);
}

/* Evicts the least recently used entry if the cache is full. The caller holds the lock. */
static void evict_oldest(void)
{
    uint32_t oldest = count;

    if (count + retired_count < capacity)
        return;
    for (uint32_t i = 0; i < count; i++) {
        if (!table[i]->users && (oldest == count || table[i]->used_at < table[oldest]->used_at))
            oldest = i;
    }
    if (oldest < count)
        remove_at(oldest);
}

/* Replaces the entries that it overlaps. If the cache is full, the registration is used once. */
static void insert(struct registration *registration)
{
    uint32_t index;

    spin_lock(&lock);
    index = index_of(registration->start);
    while (index < count && table[index]->start < registration->end)
        remove_at(index);
    evict_oldest();
    if (hooked && count + retired_count < capacity) {
        index = index_of(registration->start);
        memmove(&table[index + 1], &table[index], (count++ - index) * sizeof(*table));
        table[index] = registration;
        registration->stale = false;
        registration->used_at = ++use_clock;
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

        /* Read-only memory can still be sent. */
        if (!region)
            region = ibv_reg_mr(pd, (void *)start, end - start, IBV_ACCESS_REMOTE_READ);
        registration->regions[i] = region;
        if (!region) {
            mtl_log("cannot register %zu bytes of user memory: %s (check ulimit -l; on the "
                    "software adapter, verbena doctor)",
                    end - start, strerror(errno));
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
    if (unlikely(recording))
        record_registered(to - from);
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
