/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/arena.h"

#include "hca/epoch.h"
#include "hca/proc.h"
#include "hca/shm_lock.h"
#include "util/file.h"
#include "util/log.h"
#include "util/spinlock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define PERMANENT_OWNER (MAX_PROCS + 1)
#define WARN_NS         10000000000ull

/*
 * Two levels. Units of 64 KiB are allocated from the segment under its lock; each is marked with
 * its owner, so that nothing is lost if a process is killed halfway. Each process cuts its own
 * units into small blocks.
 */

static uint32_t find_run(uint32_t units)
{
    static uint32_t hint; /* where the last free units were found; only saves time */
    uint32_t first = round_up(sizeof(struct segment), UNIT_SIZE) >> UNIT_SHIFT;
    uint32_t end = seg_limit >> UNIT_SHIFT;

    for (int round = 0; round < 2; round++) {
        uint32_t from = round == 0 && hint > first ? hint : first;
        for (uint32_t i = from, run = 0; i < end; i++) {
            run = load_relaxed(&seg->unit_owner[i]) ? 0 : run + 1;
            if (run == units) {
                hint = i + 1;
                return i + 1 - units;
            }
        }
    }
    return 0;
}

/* Senders that wait for memory try again and again. */
static void warn_full(uint64_t units, int err)
{
    static _Atomic uint64_t next;
    uint64_t now = now_ns(), due = load_relaxed(&next);

    if (now < due || !atomic_compare_exchange_strong(&next, &due, now + WARN_NS))
        return;
    log_warn("cannot allocate %lu KiB of the fabric's shared memory: %s: %s",
             (unsigned long)units << (UNIT_SHIFT - 10), segment_path(),
             err == ENOSPC ? "the file system is full; enlarge it (docker run --shm-size=1g, mount "
                             "-o remount,size=1g /dev/shm) or choose another --shm-dir"
                           : strerror(err));
}

static void *alloc_units(uint64_t units, uint16_t owner)
{
    int fd = segment_fd(), err = 0;
    uint32_t first = 0;

    if (fd < 0)
        return NULL;
    shm_lock(&seg->arena_lock);
    if (units < MAX_UNITS)
        first = find_run(units);
    if (!first)
        err = ENOMEM;
    else
        err = file_reserve(fd, (uint64_t)first << UNIT_SHIFT, units << UNIT_SHIFT);
    if (!err) {
        for (uint32_t i = 0; i < units; i++)
            store_relaxed(&seg->unit_owner[first + i], owner);
        if (first + units > seg->units_used)
            seg->units_used = first + units;
    }
    shm_unlock(&seg->arena_lock);
    if (err) {
        warn_full(units, err);
        errno = err == ENOSPC ? ENOMEM : err;
        return NULL;
    }
    return (char *)seg + ((uint64_t)first << UNIT_SHIFT);
}

/* Punch the hole first: no process may get the unit while it still holds old bytes. If the file
 * system cannot punch holes, clear the memory instead. */
static void free_run(uint32_t first, uint32_t units)
{
    uint64_t offset = (uint64_t)first << UNIT_SHIFT, length = (uint64_t)units << UNIT_SHIFT;
    int fd = segment_fd();

    if (fd < 0 || fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, length))
        memset((char *)seg + offset, 0, length);
    for (uint32_t i = 0; i < units; i++)
        store_release(&seg->unit_owner[first + i], 0);
}

void arena_free_owner(unsigned proc)
{
    uint32_t end = seg->units_used < MAX_UNITS ? seg->units_used : MAX_UNITS;

    for (uint32_t i = 0, run = 0; i <= end; i++) {
        bool mine = i < end && load_relaxed(&seg->unit_owner[i]) == proc + 1;
        if (!mine && run)
            free_run(i - run, run);
        run = mine ? run + 1 : 0;
    }
}

uint64_t arena_bytes_used(void)
{
    uint64_t used = segment_head_bytes();

    for (uint32_t i = 0; i < seg->units_used && i < MAX_UNITS; i++)
        if (load_relaxed(&seg->unit_owner[i]))
            used += UNIT_SIZE;
    return used;
}

uint64_t arena_bytes_most(void)
{
    return seg->units_used * (uint64_t)UNIT_SIZE - round_up(sizeof(struct segment), UNIT_SIZE) +
           segment_head_bytes();
}

/* ---- small blocks ---- */

#define SMALLEST_SHIFT 6
#define LARGEST_SHIFT  15
#define CLASSES        (LARGEST_SHIFT - SMALLEST_SHIFT + 1)

/* A unit cut into blocks of one size. Only this process knows where its blocks are. */
struct slab {
    char *base;
    struct slab *next, **link; /* in the list of its class, while it has a free block */
    uint16_t free_count, total;
    uint16_t free_blocks[UNIT_SIZE >> SMALLEST_SHIFT];
};

static struct spinlock slab_lock;
static struct slab *classes[CLASSES];
static struct slab *slab_of_unit[MAX_UNITS];

static unsigned class_of(uint64_t size)
{
    unsigned c = 0;

    while ((1ull << (c + SMALLEST_SHIFT)) < size)
        c++;
    return c;
}

static void list_slab(unsigned c, struct slab *slab)
{
    slab->next = classes[c];
    slab->link = &classes[c];
    if (slab->next)
        slab->next->link = &slab->next;
    classes[c] = slab;
}

static void unlist_slab(struct slab *slab)
{
    *slab->link = slab->next;
    if (slab->next)
        slab->next->link = slab->link;
}

static struct slab *new_slab(unsigned c)
{
    struct slab *slab = malloc(sizeof(*slab));
    char *base = slab ? alloc_units(1, proc_self + 1) : NULL;

    if (!base) {
        free(slab);
        return NULL;
    }
    slab->base = base;
    slab->total = UNIT_SIZE >> (c + SMALLEST_SHIFT);
    slab->free_count = slab->total;
    for (unsigned i = 0; i < slab->total; i++)
        slab->free_blocks[i] = slab->total - 1 - i;
    slab_of_unit[seg_offset(base) >> UNIT_SHIFT] = slab;
    list_slab(c, slab);
    return slab;
}

static void free_units(void *base, uint64_t size)
{
    uint64_t first = seg_offset(base) >> UNIT_SHIFT;
    uint64_t units = round_up(size, UNIT_SIZE) >> UNIT_SHIFT;
    bool ours = first + units <= MAX_UNITS;

    shm_lock(&seg->arena_lock);
    for (uint64_t i = 0; i < units && ours; i++)
        ours = load_relaxed(&seg->unit_owner[first + i]) == proc_self + 1;
    if (ours) /* in a corrupted segment another process may own it now */
        free_run(first, units);
    shm_unlock(&seg->arena_lock);
}

/* At the same offset in every block, the busiest lines of all queues would fall into one set of the
 * processor's cache, which holds eight. Use a block's spare bytes to spread them. */
static uint64_t shift_of(const char *block, unsigned c, uint64_t size)
{
    uint64_t spare = (1ull << (c + SMALLEST_SHIFT)) - size;

    return (seg_offset(block) >> (c + SMALLEST_SHIFT)) % (spare / CACHE_LINE + 1) * CACHE_LINE;
}

void *arena_alloc(uint64_t size)
{
    if (size > (1u << LARGEST_SHIFT))
        return alloc_units(round_up(size, UNIT_SIZE) >> UNIT_SHIFT, proc_self + 1);

    unsigned c = class_of(size);
    char *block = NULL;
    spin_lock(&slab_lock);
    struct slab *slab = classes[c] ? classes[c] : new_slab(c);
    if (slab) {
        block = slab->base +
                ((uint64_t)slab->free_blocks[--slab->free_count] << (c + SMALLEST_SHIFT));
        if (!slab->free_count)
            unlist_slab(slab);
    }
    spin_unlock(&slab_lock);
    if (!block)
        return NULL;
    memset(block, 0, 1ull << (c + SMALLEST_SHIFT));
    return block + shift_of(block, c, size);
}

/* Frees an empty slab, unless it is the last with free blocks in its class. */
static void free_block(struct slab *slab, unsigned c, char *block)
{
    if (!slab->free_count)
        list_slab(c, slab);
    slab->free_blocks[slab->free_count++] = (block - slab->base) >> (c + SMALLEST_SHIFT);
    if (slab->free_count < slab->total || (classes[c] == slab && !slab->next))
        return;
    unlist_slab(slab);
    slab_of_unit[seg_offset(slab->base) >> UNIT_SHIFT] = NULL;
    free_units(slab->base, UNIT_SIZE);
    free(slab);
}

static void release(void *ptr, uint64_t size)
{
    if (size > (1u << LARGEST_SHIFT)) {
        free_units(ptr, size);
        return;
    }
    spin_lock(&slab_lock);
    struct slab *slab = slab_of_unit[seg_offset(ptr) >> UNIT_SHIFT];
    if (slab)
        free_block(slab, class_of(size), ptr);
    spin_unlock(&slab_lock);
}

void arena_free(void *ptr, uint64_t size)
{
    if (ptr)
        epoch_retire(release, ptr, size);
}

void *arena_alloc_for(unsigned proc, uint64_t size)
{
    return alloc_units(round_up(size, UNIT_SIZE) >> UNIT_SHIFT, proc + 1);
}

void *arena_alloc_permanent(uint64_t size)
{
    return alloc_units(round_up(size, UNIT_SIZE) >> UNIT_SHIFT, PERMANENT_OWNER);
}

void arena_forget(void)
{
    for (unsigned c = 0; c < CLASSES; c++)
        classes[c] = NULL;
    store_relaxed(&slab_lock.held, 0);
}
