/* SPDX-License-Identifier: BSD-2-Clause */
/* The event queue: a heap ordered by time, then by creation, so the order never depends on memory
 * addresses. */
#ifndef SIM_SCHED_EVENTS_H
#define SIM_SCHED_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

struct event {
    uint64_t time;
    uint64_t order; /* of creation; breaks ties */
    void *object;
    uint32_t argument;
    uint32_t kind; /* meaningful to sched_hooks.dispatch only */
};

struct event_queue {
    struct event *heap;
    uint32_t count;
    uint32_t capacity;
    uint64_t next_order;
};

void event_at(uint64_t time, uint32_t kind, void *object, uint32_t argument);
bool event_next_time(uint64_t *time);
/* Removes the first event. */
void event_pop(struct event *event);

#endif
