/* SPDX-License-Identifier: BSD-2-Clause */
/* What libverbena-guest.so, which is loaded into programs that know nothing of virtual time, needs
 * of libverbena.so, which has the modelled world. */
#ifndef SIM_GUEST_INTERFACE_H
#define SIM_GUEST_INTERFACE_H

#include "sim/sched/sched.h"

struct guest_sched {
    /* Joins the fabric, and its world as this thread's place; also in a forked child, which takes
     * the place that its parent has reserved. False, with the reason logged, if that is not
     * possible. */
    bool (*begin)(struct vthread *reserved);
    /* This process is about to become another program: it keeps its place, and owns nothing else
     * unless exec fails. */
    void (*before_exec)(void);
    void (*exec_failed)(void);
    /* The end of the process keeps the turn until its descriptors are closed. */
    void (*ending)(void);

    bool (*takes_part)(void);
    void (*watch_strangers)(void);
    void (*step_out)(void);

    /* Changes with every call of this thread that has to do with turns; 0 while it has none. */
    uint64_t (*activity)(void);
    /* Called by threads that have waited for their turn and got it. */
    void (*on_resume)(void (*call)(void));

    /* Of this thread; no other has it, and it has the same in every run. */
    uint32_t (*number)(void);
    uint64_t (*now)(void);
    void (*charge)(double ns);
    void (*glance)(double ns);
    void (*spin)(void);
    void (*idle)(double period);
    void (*wait)(uint64_t deadline, uint32_t waits_for);
    void (*stir)(uint32_t what, double latency);
    struct vthread *(*reserve)(void);
    void (*take)(struct vthread *vthread);
    void (*give_back)(struct vthread *vthread);
    void (*name)(struct vthread *vthread, int pid); /* the process that a place is reserved for */
    void (*leave)(void);

    /* Of what it computes (sim/compute.h): it goes back to its program; it is looked at, and then
     * goes on computing or has been found to wait. */
    void (*computes)(void);
    void (*look)(void);
    void (*computes_on)(void);
    void (*waited)(void);
};

extern const struct guest_sched verbena_guest_sched;

#endif
