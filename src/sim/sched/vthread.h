/* SPDX-License-Identifier: BSD-2-Clause */
/* Virtual threads and the state of their scheduler. All of it is in the segment. Only the running
 * vthread (sched.h) touches it, except atomic members and what join_lock guards. */
#ifndef SIM_SCHED_VTHREAD_H
#define SIM_SCHED_VTHREAD_H

#include "hca/layout.h"
#include "sim/sched/events.h"

#define VTHREADS_MAX (2 * FABRIC_PROCESSES_MAX)

/* An event that a vthread creates when its turn comes at 'created' (ahead.h). */
struct ahead_event {
    struct ahead_event *next;
    uint64_t created, time;
    void *object;
    uint32_t argument, kind;
};

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
    atomic_bool sleeps_long;  /* the same, because another vthread runs */
    atomic_bool hands_over;   /* FREE, but its thread still chooses the next one to run */
    uint32_t proc;            /* slot in the segment */
    uint32_t process;         /* proc_word() of that slot */
    uint32_t order;           /* decides between equal clocks */
    uint32_t empty_polls;     /* in a row, without a change in between: vthread_notify.h */
    uint32_t heard;           /* sched->data_notifications when empty_polls was last used */
    uint32_t changes;         /* of memory and CQs of its process, so far */
    bool woken_by_change;     /* not by its deadline */
    bool spins;               /* watches memory as well as CQs */
    bool waits_for_cqe;       /* a change of memory does not wake it */
    const struct shared_cq *polls_only; /* completions in other CQs do not wake it; NULL: they do */
    uint32_t round;           /* of the barrier */
    uint64_t clock;
    uint64_t idle_since;
    uint64_t period; /* POLLING: time between two polls */

    /* ahead.h */
    bool is_ahead;
    struct ahead_event *ahead_first, *ahead_last;
    bool sleeps_if_unchanged; /* READY: begins to poll at its clock, if nothing changes until then */
    bool sleeps_for_cqe;      /* 'waits_for_cqe' while it does */
    bool polls_on;            /* the program polls again after an empty poll, and does nothing else */
    uint32_t polls_before_sleep; /* empty ones */
    bool has_slept;

    /* vthread_index.h */
    uint64_t due, recheck;
    bool resting;
    uint32_t next_of_proc, next_of_pid;
    uint32_t listens; /* enum vthread_listeners, or what follows them */
    uint32_t next_listener, previous_listener;

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
    uint32_t waits_key; /* what notifications are about that concern it; 0: anything */
    bool tries_others;  /* besides CQs, it polls what notifications are about */
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

/* Lists of the vthreads that a notification may wake. */
enum vthread_listeners {
    LISTENS_NOT,
    LISTENS_TO_ALL,   /* to data, whatever it is about */
    LISTENS_TO_LOCKS, /* to nothing else */
    LISTENS_BY_KEY,   /* the first list of those that wait for one thing, by a hash of its key */
    LISTENER_LISTS = LISTENS_BY_KEY + 1024,
};

struct vthread_index {
    atomic_bool stale;
    uint32_t leaves;  /* of each tree, a power of two */
    uint32_t resting; /* vthreads for which the passing of time may bring something */
    uint32_t due[2 * VTHREADS_MAX], recheck[2 * VTHREADS_MAX]; /* trees of vthread numbers + 1 */
    uint32_t first_of_proc[MAX_PROCS];
    uint32_t first_of_pid[MAX_PROCS]; /* by a hash of the pid */
    uint32_t first_listener[LISTENER_LISTS];
};

struct sched {
    struct event_queue events;
    uint64_t now;
    uint64_t events_run;
    uint64_t switches;        /* to another vthread that had something to do */
    _Atomic uint32_t running; /* vthread_id(), 0: none */
    struct shm_lock join_lock;
    _Atomic uint32_t vthread_high; /* vthreads from here on have never been used; grows at any time */
    bool woken;                          /* the event being run has woken a vthread */
    uint32_t data_notifications;         /* so far */
    uint32_t guest_count;                /* so far */
    int32_t guest_core;                  /* CPU that all guests run on; -1: not chosen yet */
    uint64_t wake_send_ns, wake_recv_ns; /* from an interrupt to a running thread */
    _Atomic uint32_t long_sleepers;      /* vthreads with 'sleeps_long' */
    _Atomic uint32_t watcher;            /* vthread_id() of the one that checks the running one */
    struct vthread_index index;
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
