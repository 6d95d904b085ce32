/* SPDX-License-Identifier: BSD-2-Clause */
/* Virtual threads, and what the scheduler knows of them. All of it lies in the segment and is
 * touched only by the vthread that runs (sched.h), unless a member is atomic or said to be under
 * join_lock. */
#ifndef SIM_SCHED_VTHREAD_H
#define SIM_SCHED_VTHREAD_H

#include "hca/layout.h"
#include "sim/sched/events.h"

#define VTHREADS_MAX 1024

enum vthread_state {
    VTHREAD_FREE,
    VTHREAD_RUNNING,
    VTHREAD_READY,      /* goes on at its clock */
    VTHREAD_POLLING,    /* until something of its process changes */
    VTHREAD_BLOCKED,    /* the same, and waking it takes an interrupt */
    VTHREAD_IN_BARRIER, /* waits for other processes by means outside virtual time */
    VTHREAD_WAITING,    /* until its deadline, or a notification that 'waits_for' names */
    VTHREAD_OUTSIDE,    /* sleeps in the kernel for an unknown reason, and was descheduled */
};

struct vthread {
    _Atomic uint32_t state;
    _Atomic uint32_t wake;    /* futex */
    atomic_bool waits_to_run; /* asleep on 'wake', or about to be */
    uint32_t proc;            /* slot in the segment */
    uint32_t process;         /* proc_word() of that slot */
    uint32_t order;           /* decides between equal clocks */
    uint32_t empty_polls;     /* in a row, without a change of its process in between */
    uint32_t changes;         /* of its process, so far */
    bool woken;               /* by a change, not by the end of its patience */
    bool spins;               /* watches memory as well as completions */
    bool only_polls;          /* waits for a completion: a change of memory alone does not matter */
    uint32_t round;           /* of the barrier */
    uint64_t clock;
    uint64_t idle_since;
    uint64_t period; /* POLLING: between two polls; BLOCKED: what waking it takes */

    uint64_t stalled_at;    /* number of steps at its last look while nothing could happen */
    uint64_t stalled_looks; /* since then, in vain */

    bool watched; /* may sleep in the kernel unannounced */

    /* of a program that knows nothing of virtual time */
    bool guest;
    bool known_by_pid; /* it has no slot in the segment, not yet or no longer */
    int32_t pid, tid;
    uint32_t number;    /* unique among guests, and the same in every run */
    uint32_t waits_for; /* bits of enum sched_notification */
    uint64_t deadline;
    uint64_t calls;
    uint64_t acted_at; /* its last call that others could notice, or that could notice others */
    uint64_t shown_at; /* when it last let others run */
};

/* The members of a group wait for each other outside virtual time, and go on at the same time. */
struct vthread_barrier {
    uint32_t wanted;
    uint32_t arrived;
    uint32_t ended;
    uint32_t round;
    uint64_t latest;
};

struct sched {
    struct event_queue events;
    uint64_t now;
    uint64_t events_run;
    uint64_t switches; /* to another vthread that had something to do */
    _Atomic uint32_t running; /* vthread_id(), 0: none */
    struct shm_lock join_lock;
    uint32_t vthread_high;
    bool woken;           /* some vthread, by the event being run */
    uint32_t guest_count; /* so far */
    int32_t guest_core;   /* all guests run there; -1: not decided */
    uint64_t wake_send_ns, wake_recv_ns; /* from an interrupt to a running thread */
    struct vthread vthreads[VTHREADS_MAX];
    struct vthread_barrier barrier;
};

/* Set by whoever attaches this process to the modelled fabric. */
extern struct sched *sched;

#endif
