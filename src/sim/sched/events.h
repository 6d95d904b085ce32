/* SPDX-License-Identifier: BSD-2-Clause */
/* The event queue, ordered by time, then by creation, so the order never depends on memory
 * addresses. Events of the next microseconds are in the buckets of a wheel, one for each
 * nanosecond, and distant ones in a heap: the cost of an event hardly depends on how many there are
 * (a timing wheel; Varghese, Lauck 1987). */
#ifndef SIM_SCHED_EVENTS_H
#define SIM_SCHED_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#define EVENT_BUCKETS 16384
#define EVENT_CHUNK   15

struct event {
    uint64_t time;
    uint64_t order; /* of creation; breaks ties in heaps; not set by event_pop() */
    void *object;
    uint32_t argument;
    uint32_t kind; /* meaningful to sched_hooks.dispatch only */
};

struct event_heap {
    struct event *events;
    uint32_t count;
    uint32_t capacity;
};

/* An event in a bucket, which tells its time. */
struct event_entry {
    void *object;
    uint32_t argument;
    uint32_t kind;
};

/* Events of a bucket, in the order of their creation. */
struct event_chunk {
    struct event_chunk *next;
    uint32_t count;
    struct event_entry entries[EVENT_CHUNK];
};

struct event_queue {
    uint64_t next_order;
    uint64_t count;
    uint64_t time;                           /* of the bucket that the wheel has reached */
    uint32_t begin;                          /* of that bucket, in its first chunk */
    struct event_heap late;                  /* before that time */
    struct event_heap far;                   /* behind the wheel */
    struct event_chunk *free;                /* chunks */
    uint64_t filled[EVENT_BUCKETS / 64];     /* bit mask of the buckets with events */
    struct event_chunk *last[EVENT_BUCKETS]; /* of each bucket, in a ring: its next is the first */
};

void event_at(uint64_t time, uint32_t kind, void *object, uint32_t argument);
bool event_next_time(uint64_t *time);
/* Removes the first event. */
void event_pop(struct event *event);

/* The event that is 'distance' behind the first one, if it has the same time, or NULL. */
const struct event_entry *event_ahead(uint32_t distance);

#endif
