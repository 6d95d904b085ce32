/* SPDX-License-Identifier: BSD-2-Clause */
/* Notifications: what guests do outside the adapters that others may wait for. The caller is running. */
#ifndef SIM_SCHED_VTHREAD_NOTIFY_H
#define SIM_SCHED_VTHREAD_NOTIFY_H

#include "sim/sched/sched.h"

struct notification {
    uint64_t time;
    uint32_t what; /* bits of enum sched_notification */
    uint32_t key;  /* what it is about, 0: unknown */
    const struct vthread *from;
};

/* Wakes the guests that the notification concerns. */
void vthread_notify(const struct notification *notification);

/* The empty polls of a vthread in a row. Data starts the count again for all vthreads: one that is about
 * to wait, because its polls were empty so far, polls everything once more first. */
uint32_t vthread_empty_polls(struct vthread *vthread);
uint32_t vthread_count_empty_poll(struct vthread *vthread);

/* When a polling vthread sees a change. */
uint64_t vthread_poll_that_sees(const struct vthread *vthread, uint64_t change);

#endif
