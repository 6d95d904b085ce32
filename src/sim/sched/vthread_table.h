/* SPDX-License-Identifier: BSD-2-Clause */
/* Places of threads in the modelled world: which are free, whose they are, in which order they come
 * when clocks are equal. Except for the first two, these are called with the world's join_lock
 * held. */
#ifndef SIM_PLACE_H
#define SIM_PLACE_H

#include "sim/sched/vthread.h"

/* No other thread of its process has one. */
bool vthread_is_alone(const struct vthread *vthread);

/* From now on, if a thread of this process joins for which no place was reserved, it and all others
 * of the process lose the turn when they are found asleep. */
void vthread_watch_unannounced(void);
void vthread_joined_unannounced(struct vthread *vthread);

/* One for this process; NULL, with the reason logged, if there is no room. */
struct vthread *vthread_alloc(void);

/* By rank or node, and then as threads come. */
uint32_t vthread_next_order(void);
void vthread_make_guest(struct vthread *vthread, uint32_t order);

/* The place that this process left for the program it was to become, or NULL. */
struct vthread *vthread_left_by_exec(void);

/* At which a guest may come from outside. */
uint64_t vthread_arrival_time(void);

#endif
