/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of vthreads: allocation, ownership, and the order that decides between equal clocks.
 * Except for vthread_watch_unreserved(), and where a comment says so, callers hold sched->join_lock. */
#ifndef SIM_SCHED_VTHREAD_TABLE_H
#define SIM_SCHED_VTHREAD_TABLE_H

#include "sim/sched/vthread.h"

/* From now on, when a thread of this process joins without a reservation, all threads of the
 * process are watched: a running one found asleep in the kernel is detached. */
void vthread_watch_unreserved(void);
void vthread_joined_unreserved(struct vthread *vthread);

/* Allocates a vthread for this process. Returns NULL, with the reason logged, if the table is
 * full. */
struct vthread *vthread_alloc(void);

/* By rank or node, then in the order in which threads join. */
uint32_t vthread_next_order(void);
void vthread_make_guest(struct vthread *vthread, uint32_t order);

/* The vthread that this process kept across exec, or NULL. */
struct vthread *vthread_left_by_exec(void);

/* Programs that are started together, with VERBENA_START=K/N, join one after the other and begin when
 * all N have joined: the order does not depend on real time. Call both without the lock, before and
 * after the program has joined. They give up after some seconds, if another program cannot start. */
void vthread_await_turn(void);
void vthread_await_others(void);

/* The time at which a guest started from outside joins. */
uint64_t vthread_arrival_time(void);

#endif
