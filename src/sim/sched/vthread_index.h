/* SPDX-License-Identifier: BSD-2-Clause */
/* Which vthread continues next, without looking at all of them. A winner tree over the table of
 * vthreads holds the one that is due first, another the one that rechecks first; lists hold the
 * vthreads of a process, and those that wait for notifications. Only the running vthread uses the
 * index. Whoever changes a vthread without running marks the index stale instead, and the running one
 * rebuilds it. */
#ifndef SIM_SCHED_VTHREAD_INDEX_H
#define SIM_SCHED_VTHREAD_INDEX_H

#include "sim/sched/vthread.h"

/* A state, a clock or a process has changed, and the caller may not be running. */
void vthread_index_stale(void);

/* Rebuilds the index if it is stale. */
void vthread_index_refresh(void);

/* A state, a clock or a deadline has changed; the caller is running. */
void vthread_index_update(struct vthread *vthread);

/* NULL: none. */
struct vthread *vthread_index_due(void);
struct vthread *vthread_index_recheck(void);

/* The vthreads of a process that was in that slot when the index was built. */
struct vthread *vthread_index_first_of(uint32_t proc);
struct vthread *vthread_index_next_of(const struct vthread *vthread);

/* The vthreads of processes whose pids have the same hash, this one among them. */
struct vthread *vthread_index_first_of_pid(int32_t pid);
struct vthread *vthread_index_next_of_pid(const struct vthread *vthread);

/* Those that wait for what has that key; others may be among them. */
enum vthread_listeners vthread_index_listeners_of(uint32_t key);
struct vthread *vthread_index_first_listener(uint32_t list);
struct vthread *vthread_index_next_listener(const struct vthread *vthread);

/* No other thread of the running one's process has a vthread. */
bool vthread_index_is_alone(const struct vthread *me);

#endif
