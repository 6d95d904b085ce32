/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the scheduler share about the calling thread. */
#ifndef SIM_SCHED_PROCESSES_H
#define SIM_SCHED_PROCESSES_H

#include "sim/sched/vthread.h"

/* This thread's vthread, NULL: it has not joined. */
struct vthread *sched_current(void);

/* The thread takes over that vthread, and waits until it runs. */
void sched_start(struct vthread *me);

/* If the vthread was detached, it continues at the current time. */
void sched_rejoin(struct vthread *me);

/* Wakes the thread in its sleep until it runs, whether it runs or not. */
void sched_wake_thread(struct vthread *vthread);

#endif
