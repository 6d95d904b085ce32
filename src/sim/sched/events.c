/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/sched/events.h"

#include "sim/memory/pool.h"
#include "sim/sched/vthread.h"
#include "util/log.h"

#include <string.h>

#define ARITY        4
#define BUCKET_SHIFT 3 /* 8 ns */
#define FRESH_NODES  256

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

static uint64_t bucket_of(const struct event *event)
{
    return event->time >> BUCKET_SHIFT;
}

static struct event_node *take_node(struct event_queue *queue)
{
    struct event_node *node = queue->free;

    if (unlikely(!node)) {
        node = pool_alloc_permanent(FRESH_NODES * sizeof(*node));
        if (!node)
            return NULL;
        for (uint32_t i = 1; i < FRESH_NODES; i++)
            node[i - 1].next = &node[i];
    }
    queue->free = node->next;
    return node;
}

static bool insert(struct event_queue *queue, const struct event *event)
{
    uint64_t bucket = bucket_of(event);
    uint32_t slot = bucket % EVENT_BUCKETS;
    struct event_node *node;

    if (bucket <= queue->bucket)
        return heap_push(&queue->near, event);
    if (bucket - queue->bucket >= EVENT_BUCKETS)
        return heap_push(&queue->far, event);
    node = take_node(queue);
    if (!node)
        return fail_full();
    node->event = *event;
    node->next = queue->buckets[slot];
    queue->buckets[slot] = node;
    queue->filled[slot / 64] |= 1ull << slot % 64;
    return true;
}

/* The distance from the current bucket to the next one with events; EVENT_BUCKETS if there is
 * none. */
static uint32_t next_filled(const struct event_queue *queue)
{
    uint32_t start = (queue->bucket + 1) % EVENT_BUCKETS;

    for (uint32_t i = 0; i <= EVENT_BUCKETS / 64; i++) {
        uint32_t word = (start / 64 + i) % (EVENT_BUCKETS / 64);
        uint64_t bits = queue->filled[word];

        if (!i)
            bits &= ~0ull << start % 64;
        else if (i == EVENT_BUCKETS / 64)
            bits &= ~(~0ull << start % 64);
        if (bits)
            return (word * 64 + __builtin_ctzll(bits) - start + EVENT_BUCKETS) % EVENT_BUCKETS + 1;
    }
    return EVENT_BUCKETS;
}

static void empty_bucket(struct event_queue *queue)
{
    uint32_t slot = queue->bucket % EVENT_BUCKETS;
    struct event_node *node = queue->buckets[slot], *next;

    queue->buckets[slot] = NULL;
    queue->filled[slot / 64] &= ~(1ull << slot % 64);
    for (; node; node = next) {
        next = node->next;
        heap_push(&queue->near, &node->event);
        node->next = queue->free;
        queue->free = node;
    }
}

/* Turns the wheel to the next event, and fills it up from 'far'. */
static void refill(struct event_queue *queue)
{
    uint32_t distance = next_filled(queue);
    uint64_t bucket = queue->bucket + distance;
    struct event event;

    if (queue->far.count &&
        (distance == EVENT_BUCKETS || bucket_of(&queue->far.events[0]) < bucket))
        bucket = bucket_of(&queue->far.events[0]);
    queue->bucket = bucket;
    while (queue->far.count && bucket_of(&queue->far.events[0]) - bucket < EVENT_BUCKETS) {
        heap_pop(&queue->far, &event);
        insert(queue, &event);
    }
    empty_bucket(queue);
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
    if (!queue->near.count)
        refill(queue);
    *time = queue->near.events[0].time;
    return true;
}

void event_pop(struct event *event)
{
    struct event_queue *queue = &sched->events;

    if (!queue->near.count)
        refill(queue);
    heap_pop(&queue->near, event);
    queue->count--;
}
