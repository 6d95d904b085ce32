/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/sched/events.h"

#include "sim/memory/pool.h"
#include "sim/sched/vthread.h"
#include "util/log.h"

#include <string.h>

#define ARITY          4
#define FRESH_CHUNKS   64
#define PREFETCH_AHEAD 8 /* events */
#define PREFETCH_LINES 4

/* ---- heaps ---- */

static bool before(const struct event *a, const struct event *b)
{
    return a->time < b->time || (a->time == b->time && a->order < b->order);
}

static bool fail_full(void)
{
    log_error("the segment is full: cannot queue more than %llu events",
              (unsigned long long)sched->events.count);
    return false;
}

static bool grow(struct event_heap *heap)
{
    uint32_t capacity = heap->capacity ? heap->capacity * 2 : 1024;
    struct event *events = pool_alloc_permanent((uint64_t)capacity * sizeof(*events));

    if (!events)
        return fail_full();
    if (heap->count)
        memcpy(events, heap->events, (uint64_t)heap->count * sizeof(*events));
    heap->events = events;
    heap->capacity = capacity;
    return true;
}

static bool heap_push(struct event_heap *heap, const struct event *event)
{
    uint32_t at;

    if (unlikely(heap->count == heap->capacity) && !grow(heap))
        return false;
    at = heap->count++;
    while (at) {
        uint32_t parent = (at - 1) / ARITY;

        if (!before(event, &heap->events[parent]))
            break;
        heap->events[at] = heap->events[parent];
        at = parent;
    }
    heap->events[at] = *event;
    return true;
}

static void sift_down(struct event_heap *heap, const struct event *event)
{
    uint32_t at = 0;

    for (;;) {
        uint32_t first = at * ARITY + 1, best;
        uint32_t end = first + ARITY < heap->count ? first + ARITY : heap->count;

        if (first >= heap->count)
            break;
        best = first;
        for (uint32_t i = first + 1; i < end; i++) {
            if (before(&heap->events[i], &heap->events[best]))
                best = i;
        }
        if (!before(&heap->events[best], event))
            break;
        heap->events[at] = heap->events[best];
        at = best;
    }
    heap->events[at] = *event;
}

static void heap_pop(struct event_heap *heap, struct event *event)
{
    struct event last;

    *event = heap->events[0];
    last = heap->events[--heap->count];
    if (heap->count)
        sift_down(heap, &last);
}

/* ---- the wheel ---- */

static struct event_chunk *take_chunk(struct event_queue *queue)
{
    struct event_chunk *chunk = queue->free;

    if (unlikely(!chunk)) {
        chunk = pool_alloc_permanent(FRESH_CHUNKS * sizeof(*chunk));
        if (!chunk)
            return NULL;
        for (uint32_t i = 1; i < FRESH_CHUNKS; i++)
            chunk[i - 1].next = &chunk[i];
    }
    queue->free = chunk->next;
    return chunk;
}

/* Makes room at the end of a bucket. Returns its last chunk, NULL if no memory is left. */
static struct event_chunk *add_chunk(struct event_queue *queue, uint32_t slot)
{
    struct event_chunk *chunk = take_chunk(queue), *last = queue->last[slot];

    if (!chunk)
        return NULL;
    chunk->count = 0;
    chunk->next = last ? last->next : chunk;
    if (last)
        last->next = chunk;
    queue->last[slot] = chunk;
    queue->filled[slot / 64] |= 1ull << slot % 64;
    return chunk;
}

/* Appends to the events of the same time, which are older: distant ones are in their bucket before
 * any event is added there directly. */
static bool append(struct event_queue *queue, const struct event *event)
{
    uint32_t slot = event->time % EVENT_BUCKETS;
    struct event_chunk *last = queue->last[slot];

    if (!last || last->count == EVENT_CHUNK)
        last = add_chunk(queue, slot);
    if (!last)
        return fail_full();
    last->entries[last->count++] =
        (struct event_entry){ event->object, event->argument, event->kind };
    return true;
}

static bool insert(struct event_queue *queue, const struct event *event)
{
    if (unlikely(event->time < queue->time))
        return heap_push(&queue->late, event);
    if (event->time - queue->time >= EVENT_BUCKETS)
        return heap_push(&queue->far, event);
    return append(queue, event);
}

/* The distance from the current time to the next one with events; EVENT_BUCKETS if there is none.
 */
static uint32_t next_filled(const struct event_queue *queue)
{
    uint32_t start = queue->time % EVENT_BUCKETS;

    for (uint32_t i = 0; i <= EVENT_BUCKETS / 64; i++) {
        uint32_t word = (start / 64 + i) % (EVENT_BUCKETS / 64);
        uint64_t bits = queue->filled[word];

        if (!i)
            bits &= ~0ull << start % 64;
        else if (i == EVENT_BUCKETS / 64)
            bits &= ~(~0ull << start % 64);
        if (bits)
            return (word * 64 + __builtin_ctzll(bits) - start + EVENT_BUCKETS) % EVENT_BUCKETS;
    }
    return EVENT_BUCKETS;
}

/* Turns the wheel to the next event, and fills it up from 'far'. */
static void turn(struct event_queue *queue)
{
    uint32_t distance = next_filled(queue);
    uint64_t time = queue->time + distance;
    struct event event;

    if (queue->far.count && (distance == EVENT_BUCKETS || queue->far.events[0].time < time))
        time = queue->far.events[0].time;
    queue->time = time;
    while (queue->far.count && queue->far.events[0].time - time < EVENT_BUCKETS) {
        heap_pop(&queue->far, &event);
        append(queue, &event);
    }
}

/* With many nodes, what the next events concern is in none of the caches. */
static void prefetch(const char *object)
{
    for (int line = 0; line < PREFETCH_LINES; line++)
        __builtin_prefetch(object + line * CACHE_LINE);
}

static const struct event_entry *entry_ahead(const struct event_queue *queue, uint32_t distance)
{
    const struct event_chunk *last = queue->last[queue->time % EVENT_BUCKETS], *chunk;
    uint32_t index = queue->begin + distance;

    if (!last)
        return NULL;
    for (chunk = last->next; index >= chunk->count; chunk = chunk->next) {
        if (chunk == last)
            return NULL;
        index -= chunk->count;
    }
    return &chunk->entries[index];
}

/* Removes the first event of the current time. */
static void take_first(struct event_queue *queue, struct event *event)
{
    uint32_t slot = queue->time % EVENT_BUCKETS;
    struct event_chunk *last = queue->last[slot], *first = last->next;
    const struct event_entry *entry = &first->entries[queue->begin], *ahead;

    *event = (struct event){ .time = queue->time,
                             .object = entry->object,
                             .argument = entry->argument,
                             .kind = entry->kind };
    ahead = entry_ahead(queue, PREFETCH_AHEAD);
    if (ahead)
        prefetch(ahead->object);
    if (++queue->begin < first->count)
        return;
    queue->begin = 0;
    if (first == last) {
        queue->last[slot] = NULL;
        queue->filled[slot / 64] &= ~(1ull << slot % 64);
    } else {
        last->next = first->next;
        __builtin_prefetch(last->next->next);
    }
    first->next = queue->free;
    queue->free = first;
}

/* ---- the queue ---- */

void event_at(uint64_t time, uint32_t kind, void *object, uint32_t argument)
{
    struct event_queue *queue = &sched->events;
    struct event event = { .time = time,
                           .order = queue->next_order++,
                           .object = object,
                           .argument = argument,
                           .kind = kind };

    queue->count += insert(queue, &event);
}

bool event_next_time(uint64_t *time)
{
    struct event_queue *queue = &sched->events;

    if (!queue->count)
        return false;
    if (unlikely(queue->late.count)) {
        *time = queue->late.events[0].time;
        return true;
    }
    if (!queue->last[queue->time % EVENT_BUCKETS])
        turn(queue);
    *time = queue->time;
    return true;
}

void event_pop(struct event *event)
{
    struct event_queue *queue = &sched->events;

    queue->count--;
    if (unlikely(queue->late.count)) {
        heap_pop(&queue->late, event);
        return;
    }
    if (!queue->last[queue->time % EVENT_BUCKETS])
        turn(queue);
    take_first(queue, event);
}

const struct event_entry *event_ahead(uint32_t distance)
{
    return entry_ahead(&sched->events, distance);
}
