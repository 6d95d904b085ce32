#include "hca/arena.h"

#include "hca/proc.h"
#include "util/log.h"
#include "util/spinlock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define PERMANENT_OWNER (MAX_PROCS + 1)

/*
 * Two levels. Units of 64 KiB are taken from the segment under its lock, each marked with its
 * owner on its own, so that a process killed in the middle leaves nothing unaccounted for. Small
 * blocks are cut from units by each process for itself.
 */

static uint32_t find_run(uint32_t units)
{
    static uint32_t hint; /* where we last found room; private, only saves time */
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
        err = posix_fallocate(fd, (uint64_t)first << UNIT_SHIFT, units << UNIT_SHIFT);
    if (!err) {
        for (uint32_t i = 0; i < units; i++)
            store_relaxed(&seg->unit_owner[first + i], owner);
        if (first + units > seg->units_used)
            seg->units_used = first + units;
    }
    shm_unlock(&seg->arena_lock);
    if (err) {
        log_warn("no room in the fabric's shared memory for %lu KiB: %s",
                 (unsigned long)units << (UNIT_SHIFT - 10), strerror(err));
        errno = err == ENOSPC ? ENOMEM : err;
        return NULL;
    }
    return (char *)seg + ((uint64_t)first << UNIT_SHIFT);
}

/* The hole comes first: nobody may get the unit while it still holds old bytes. */
static void free_run(uint32_t first, uint32_t units)
{
    int fd = segment_fd();

    if (fd >= 0)
        fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (uint64_t)first << UNIT_SHIFT,
                  (uint64_t)units << UNIT_SHIFT);
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
    uint64_t used = round_up(sizeof(struct segment), UNIT_SIZE);

    for (uint32_t i = 0; i < seg->units_used && i < MAX_UNITS; i++)
        if (load_relaxed(&seg->unit_owner[i]))
            used += UNIT_SIZE;
    return used;
}

/* ---- small blocks ---- */

#define SMALLEST_SHIFT 6
#define LARGEST_SHIFT  15
#define CLASSES        (LARGEST_SHIFT - SMALLEST_SHIFT + 1)

static struct spinlock class_lock;
static struct block_class {
    void **free_blocks;
    uint32_t count, room;
} classes[CLASSES];

static unsigned class_of(uint64_t size)
{
    unsigned c = 0;

    while ((1ull << (c + SMALLEST_SHIFT)) < size)
        c++;
    return c;
}

static bool push_block(struct block_class *c, void *block)
{
    if (c->count == c->room) {
        uint32_t room = c->room ? 2 * c->room : 64;
        void **grown = realloc(c->free_blocks, room * sizeof(*grown));
        if (!grown)
            return false; /* the block is lost until the process ends */
        c->free_blocks = grown;
        c->room = room;
    }
    c->free_blocks[c->count++] = block;
    return true;
}

static void refill(struct block_class *c, uint64_t block_size)
{
    char *unit = alloc_units(1, proc_self + 1);

    for (uint64_t at = 0; unit && at < UNIT_SIZE; at += block_size)
        push_block(c, unit + at);
}

void *arena_alloc(uint64_t size)
{
    if (size > (1u << LARGEST_SHIFT))
        return alloc_units(round_up(size, UNIT_SIZE) >> UNIT_SHIFT, proc_self + 1);

    struct block_class *c = &classes[class_of(size)];
    uint64_t block_size = 1ull << (c - classes + SMALLEST_SHIFT);
    void *block = NULL;
    spin_lock(&class_lock);
    if (!c->count)
        refill(c, block_size);
    if (c->count)
        block = c->free_blocks[--c->count];
    spin_unlock(&class_lock);
    if (block)
        memset(block, 0, block_size);
    return block;
}

void arena_free(void *ptr, uint64_t size)
{
    if (!ptr)
        return;
    if (size > (1u << LARGEST_SHIFT)) {
        shm_lock(&seg->arena_lock);
        free_run(seg_offset(ptr) >> UNIT_SHIFT, round_up(size, UNIT_SIZE) >> UNIT_SHIFT);
        shm_unlock(&seg->arena_lock);
        return;
    }
    spin_lock(&class_lock);
    push_block(&classes[class_of(size)], ptr);
    spin_unlock(&class_lock);
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
    for (unsigned i = 0; i < CLASSES; i++)
        classes[i].count = 0;
    store_relaxed(&class_lock.held, 0);
}
