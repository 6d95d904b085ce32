/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether threads of other processes live, and what they do, as the system tells it. */
#ifndef SIM_WATCH_H
#define SIM_WATCH_H

#include "sim/sched/vthread.h"

bool vthread_alive(const struct vthread *vthread);

/* What one that waits remembers of the one that has the turn. */
struct watch {
    const struct vthread *holder;
    uint64_t used;
};

/* True if the guest, or watched thread, that has the turn sleeps in the kernel, and has not run since the last time it
 * was asked for. One that has been given the turn and has not noticed yet does not count, nor one
 * that is stopped, or waits for a disk. */
bool vthread_watch_asleep(struct watch *watch, const struct vthread *holder);

#endif
