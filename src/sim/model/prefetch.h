/* SPDX-License-Identifier: BSD-2-Clause */
/* Brings what events need into the processor's caches before their turn comes. Of a thousand nodes
 * the caches hold little, and an event follows several pointers, one after the other: each step
 * follows one more of them. The queue prefetches the objects of events themselves. */
#ifndef SIM_MODEL_PREFETCH_H
#define SIM_MODEL_PREFETCH_H

#include "sim/sched/events.h"

#include <stddef.h>

/* The object of the event is in the caches: brings what it points to. */
void prefetch_step1(const struct event_entry *event);
/* And what that points to. */
void prefetch_step2(const struct event_entry *event);

void prefetch_bytes(const void *from, size_t count);

#endif
