/* SPDX-License-Identifier: BSD-2-Clause */
/* What libverbena-guest.so and libverbena-mpi.so, which are loaded into programs unaware of virtual
 * time, need from libverbena.so. Most members are the sched_ function of the same name. */
#ifndef SIM_GUEST_INTERFACE_H
#define SIM_GUEST_INTERFACE_H

#include "sim/sched/sched.h"

struct guest_sched {
    /* Attaches the process to the fabric and joins this thread. A forked child passes the vthread
     * that its parent reserved. Returns false, with the reason logged, if that is impossible. */
    bool (*begin)(struct vthread *reserved);
    /* The process is about to exec: it keeps its vthread, and gives up everything else unless exec
     * fails. */
    void (*before_exec)(void);
    void (*exec_failed)(void);
    /* The process keeps running until its descriptors are closed. */
    void (*exiting)(void);

    bool (*joined)(void);
    void (*watch_unreserved)(void);
    void (*detach)(void);

    uint64_t (*activity)(void);
    void (*on_resume)(void (*call)(void));

    uint32_t (*guest_number)(void);
    uint64_t (*now)(void);
    void (*charge)(double ns);
    void (*charge_clock_read)(double ns);
    void (*spin_wait)(void);
    void (*poll_idle)(double period, const struct sched_reason *why);
    void (*wait)(uint64_t deadline, uint32_t waits_for, const struct sched_reason *why);
    void (*found_ready)(void);
    void (*notify)(uint32_t what, uint32_t key, double latency);
    struct vthread *(*reserve)(void);
    void (*adopt)(struct vthread *vthread);
    void (*unreserve)(struct vthread *vthread);
    /* Sets the process that a vthread is reserved for. */
    void (*set_pid)(struct vthread *vthread, int pid);
    void (*leave)(void);

    /* sched/compute.h */
    void (*compute_begin)(void);
    void (*compute_sample)(void);
    void (*compute_resume)(void);
    void (*compute_discard)(void);

    /* Faults of memory are announced from now on. */
    void (*see_faults)(void);
    /* The program accesses memory: by the instruction at `pc`, which has faulted, or NULL: by a
     * system call. Returns whether the access may be tried again. */
    bool (*memory_touched)(const void *address, size_t length, const void *pc);
};

extern const struct guest_sched verbena_guest_sched;

#endif
