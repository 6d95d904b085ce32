/* SPDX-License-Identifier: BSD-2-Clause */
/* What a vthread does in its turn without running, so that nobody need hand over to it.
 *
 * A thread whose next call only tells its adapter something runs ahead: it keeps running, though others
 * have smaller clocks, and the event that tells the adapter is created in the thread's turn by whoever
 * runs then. A thread that polls a CQ in which there is nothing yet goes to sleep in its turn, if nothing
 * of its process has changed until then. Everything happens in the same order as if the thread ran. */
#ifndef SIM_SCHED_AHEAD_H
#define SIM_SCHED_AHEAD_H

#include "sim/sched/vthread.h"

/* The vthread has nothing to see or to hide between its calls. */
bool ahead_allowed(const struct vthread *me);

/* Returns false if memory is short. */
bool ahead_add(struct vthread *me, const struct event *event);

/* The turn of this vthread has come. False: it must run. */
bool ahead_act(struct vthread *vthread);

/* The vthread has died. */
void ahead_create_all(struct vthread *vthread);

#endif
