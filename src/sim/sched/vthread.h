/* SPDX-License-Identifier: BSD-2-Clause */
/* Virtual threads and the state of their scheduler. All of it is in the segment. Only the running
 * vthread (sched.h) touches it, except atomic members and what join_lock guards. */
#ifndef SIM_SCHED_VTHREAD_H
#define SIM_SCHED_VTHREAD_H

#include "hca/layout.h"
#include "sim/sched/events.h"

#define VTHREADS_MAX 1024

enum vthread_state {
    VTHREAD_FREE,
    VTHREAD_RUNNING,
    VTHREAD_READY,      /* continues at its clock */
    VTHREAD_POLLING,    /* until memory or a CQ of its process changes */
    VTHREAD_BLOCKED,    /* the same, but only an interrupt wakes it */
    VTHREAD_IN_BARRIER, /* waits for other processes, outside virtual time */
    VTHREAD_WAITING,    /* until its deadline or a notification in 'waits_for' */
    VTHREAD_DETACHED,   /* takes no part until its next call */
};

struct vthread {
    _Atomic uint32_t state;
    _Atomic uint32_t wake;    /* futex */
    atomic_bool waits_to_run; /* asleep on 'wake', or about to be */
    uint32_t proc;            /* slot in the segment */
    uint32_t process;         /* proc_word() of that slot */
    uint32_t order;           /* decides between equal clocks */
    uint32_t empty_polls;     /* in a row, without a change in between */
    uint32_t changes;         /* of memory and CQs of its process, so far */
    bool woken_by_change;     /* not by its deadline */
    bool spins;               /* watches memory as well as CQs */
    bool waits_for_cqe;       /* a change of memory does not wake it */
    const struct shared_cq *polls_only; /* completions in other CQs do not wake it; NULL: they do */
    uint32_t round;           /* of the barrier */
    uint64_t clock;
    uint64_t idle_since;
    uint64_t period; /* POLLING: time between two polls */

    uint64_t stalled_at;    /* step count at its last poll while nothing could happen */
    uint64_t stalled_polls; /* since then */
    uint64_t stuck_polls;   /* of these, in a row, those that no newcomer and no time can end */
    bool waits_for_outside; /* a program that has not joined may end the wait */

    bool watched; /* may sleep in the kernel in ways that are not intercepted */

    /* guests: threads of programs unaware of virtual time */
    bool guest;
    bool known_by_pid; /* its process has no slot in the segment, not yet or no longer */
    int32_t pid, tid;
    uint32_t number;    /* unique among guests, and the same in every run */
    uint32_t waits_for; /* bits of enum sched_notification */
    uint64_t deadline;
    uint64_t calls;
    uint64_t last_action_at; /* its last call that interacted with others */
    uint64_t yielded_at;     /* when it last let other vthreads run */
};

/* Members wait for each other outside virtual time and continue at the same virtual time. */
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
    uint64_t switches;        /* to another vthread that had something to do */
    _Atomic uint32_t running; /* vthread_id(), 0: none */
    struct shm_lock join_lock;
    uint32_t vthread_high;
    bool woken;                          /* the event being run has woken a vthread */
    uint32_t guest_count;                /* so far */
    int32_t guest_core;                  /* CPU that all guests run on; -1: not chosen yet */
    uint64_t wake_send_ns, wake_recv_ns; /* from an interrupt to a running thread */
    struct vthread vthreads[VTHREADS_MAX];
    struct vthread_barrier barrier;
    _Atomic uint32_t programs; /* guests that came from outside, so far */
    _Atomic uint32_t deadlocked;
    uint32_t deadlocked_threads;
    _Atomic uint32_t deadlock_reports; /* of these threads */
    struct shm_lock deadlock_lock;     /* held while a thread reports */
};

/* Set by sim_attach(). */
extern struct sched *sched;

#endif
