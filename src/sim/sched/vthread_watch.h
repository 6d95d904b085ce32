/* SPDX-License-Identifier: BSD-2-Clause */
/* Liveness and kernel state of the threads behind vthreads, as /proc shows them. */
#ifndef SIM_SCHED_VTHREAD_WATCH_H
#define SIM_SCHED_VTHREAD_WATCH_H

#include "sim/sched/vthread.h"

bool vthread_alive(const struct vthread *vthread);

/* What a waiting thread remembers of the running one. */
struct watch {
    const struct vthread *runner;
    uint64_t used; /* CPU time */
};

/* Returns true if the running vthread, a guest or watched, sleeps in the kernel and has used no CPU
 * time since the previous call with this 'watch'. Threads that have not yet noticed that they run,
 * are stopped, or wait for a disk do not count. */
bool vthread_watch_asleep(struct watch *watch, const struct vthread *runner);

#endif
