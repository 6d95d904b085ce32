/* SPDX-License-Identifier: BSD-2-Clause */
/* Turns: of all threads in the modelled world exactly one runs, the one with the smallest clock,
 * and whatever the adapters do up to that time is done first, by whoever gives up the turn. The
 * same program thus sees the same world every time, whatever else the machine does. */
#ifndef SIM_TURN_H
#define SIM_TURN_H

#include "sim/sched/vthread.h"

/* What the scheduler needs from the model. */
struct sched_hooks {
    void (*dispatch)(const struct event *event);
    /* Another process may run next: what this one has gathered for common files comes first. */
    void (*before_switch)(void);
};
void sched_set_hooks(const struct sched_hooks *hooks);

/* This thread's vthread; it joins on first use. NULL if the table is full. */
struct vthread *sched_self(void);

/* Whether it has joined. */
bool sched_joined(void);

/* The verbs call that follows takes so long. Returns when it is this thread's turn at the end of
 * it. */
void sched_charge(double ns);

/* Only waits for the turn. */
void sched_sync(void);

/* Nothing was found; the next look would be 'period' ns after the last. Sleeps until something of
 * this process changes, and returns at the first look that can find it. False: nothing can happen
 * now, and no time has passed. */
bool sched_poll_wait(double period);

/* The same for one that has also looked at its memory, after so many changes of its process; and
 * only until that time. */
uint32_t sched_changes(void);
bool sched_spin_wait(double period, uint32_t changes, uint64_t until);

/* For how long it has now looked in vain while nothing could happen. */
uint64_t sched_stalled_ms(void);

/* The same for one that sleeps in the kernel, until an interrupt. */
bool sched_block(void);

enum sched_change {
    CHANGE_MEMORY,
    CHANGE_COMPLETION, /* that nobody is interrupted for */
    CHANGE_SENT,       /* a completion of its own request, with an interrupt */
    CHANGE_RECEIVED,   /* a message, or anything else that interrupts */
};

/* Something of that process has changed at this moment. */
void sched_wake(uint32_t proc, enum sched_change change);

/* This thread has written memory that threads of another process look at. */
void sched_memory_written(int32_t pid);

/* Waiting for all 'count' of a group by means outside the modelled world: between the two calls
 * nobody is kept waiting for this thread, and afterwards all of them have the same clock. */
void sched_barrier_begin(uint32_t count);
void sched_barrier_end(bool all); /* false: it came to nothing, this thread goes on alone */

/* A stretch that has no part in the modelled world, such as the end of the thread. */
void sched_leave(void);

/* The process leaves the fabric. */
void sched_stop(void);

uint64_t sched_now(void);
/* The same for a program that asks: with what it has computed since its last call. */
uint64_t sched_read_clock(void);

/* ---- for programs that know nothing of turns (guest/) ---- */

#define SCHED_NEVER UINT64_MAX

/* What a thread can wait for outside the adapters, and what others stir up. */
enum sched_notification {
    NOTIFY_DATA = 1, /* bytes, connections, ends of processes and threads */
    NOTIFY_SPACE = 2, /* for bytes */
    NOTIFY_LOCK = 4,
};

/* This thread's place in the world from its start on. A program that was not started by another one
 * in this world starts at the next round time, so that it does not matter when it came. False if
 * there is no room. */
bool sched_join_guest(void);

/* Looks at its clock, which takes so long. Nobody notices that, so it needs no turn; but one that
 * does nothing else may be waiting for memory to change, and gives the others theirs ever more
 * rarely. */
void sched_look_at_clock(double ns);

/* A number that no other guest has, and this one has in every run. */
uint32_t sched_guest_number(void);

/* Changes with every call of this thread; 0 while it does not have the turn. */
uint64_t sched_activity(void);

/* Called by every thread that has waited for its turn and got it. */
void sched_on_resume(void (*call)(void));

/* Waits until the deadline, or until somebody stirs; returns early, without time passing, when
 * nothing can happen now, so that the thread can look at the world outside. */
void sched_wait(uint64_t deadline, uint32_t waits_for);

/* This thread is about to sleep in a way of its own: nobody is kept waiting for it, and with its
 * next call it is back at the present. */
void sched_step_out(void);

/* Those who wait for one of these look again 'latency' ns from now. */
void sched_notify(uint32_t what, double latency);

/* The next look of one that polls something other than completions and has found nothing. */
void sched_poll_idle(double period);

/* A place for a thread or process that this one is about to start: it takes it as its first act, or
 * it is given back. */
struct vthread *sched_reserve(void);
void sched_adopt(struct vthread *vthread);
void sched_unreserve(struct vthread *vthread);

/* The process is about to end, or to become another program; the turn stays with it until it has.
 */
void sched_exiting(void);
void sched_not_ending(void); /* exec has failed */

#endif
