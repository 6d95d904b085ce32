/* SPDX-License-Identifier: BSD-2-Clause */
/* Stalls: no vthread can run and no event is due. A stall may end from outside (a program joins, a
 * terminal is read); one that cannot is a deadlock, which ends the run. */
#ifndef SIM_SCHED_STALL_H
#define SIM_SCHED_STALL_H

#include "sim/sched/sched.h"

#define STALL_POLL_NS 5000000 /* real: a waiting thread returns this often in a stall */

/* STALL_POLL_NS, or more if there are many threads. */
uint64_t stall_interval(void);

/* Reads from the environment what counts as a deadlock. */
void stall_init(void);

/* The calling thread begins to wait. */
void stall_waits_for(struct vthread *me, const struct sched_reason *why);
/* It returns to its program because nothing can happen. Ends the process if that is a deadlock. */
void stall_note(struct vthread *me);
/* It has read the clock: time, which its polls advance, may end its wait. */
void stall_watches_clock(struct vthread *me);
/* Ends the process if another thread has found a deadlock. */
void stall_check(void);

#endif
