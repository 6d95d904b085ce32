/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/sched/events.h"

#include "sim/memory/pool.h"
#include "sim/sched/vthread.h"
#include "util/log.h"

#include <string.h>

#define ARITY 4

static bool before(const struct event *a, const struct event *b)
{
    return a->time < b->time || (a->time == b->time && a->order < b->order);
}

static bool grow(struct event_queue *queue)
{
    uint32_t capacity = queue->capacity ? queue->capacity * 2 : 1024;
    struct event *heap = pool_alloc_permanent((uint64_t)capacity * sizeof(*heap));

    if (!heap) {
        log_error("the segment is full: cannot queue more than %u events", queue->capacity);
        return false;
    }
    if (queue->count)
        memcpy(heap, queue->heap, (uint64_t)queue->count * sizeof(*heap));
    queue->heap = heap;
    queue->capacity = capacity;
    return true;
}

void event_at(uint64_t time, uint32_t kind, void *object, uint32_t argument)
{
    struct event_queue *queue = &sched->events;
    struct event event = { .time = time,
                           .order = queue->next_order++,
                           .object = object,
                           .argument = argument,
                           .kind = kind };
    uint32_t at;

    if (unlikely(queue->count == queue->capacity) && !grow(queue))
        return;
    at = queue->count++;
    while (at) {
        uint32_t parent = (at - 1) / ARITY;

        if (!before(&event, &queue->heap[parent]))
            break;
        queue->heap[at] = queue->heap[parent];
        at = parent;
    }
    queue->heap[at] = event;
}

bool event_next_time(uint64_t *time)
{
    if (!sched->events.count)
        return false;
    *time = sched->events.heap[0].time;
    return true;
}

static void sift_down(struct event_queue *queue, const struct event *event)
{
    uint32_t at = 0;

    for (;;) {
        uint32_t first = at * ARITY + 1, best;
        uint32_t end = first + ARITY < queue->count ? first + ARITY : queue->count;

        if (first >= queue->count)
            break;
        best = first;
        for (uint32_t i = first + 1; i < end; i++) {
            if (before(&queue->heap[i], &queue->heap[best]))
                best = i;
        }
        if (!before(&queue->heap[best], event))
            break;
        queue->heap[at] = queue->heap[best];
        at = best;
    }
    queue->heap[at] = *event;
}

void event_pop(struct event *event)
{
    struct event_queue *queue = &sched->events;
    struct event last;

    *event = queue->heap[0];
    last = queue->heap[--queue->count];
    if (queue->count)
        sift_down(queue, &last);
}
