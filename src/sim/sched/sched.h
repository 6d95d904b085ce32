/* SPDX-License-Identifier: BSD-2-Clause */
/* The scheduler of virtual time. Of all vthreads exactly one runs: the one with the smallest clock.
 * Before it runs, the vthread that yields dispatches all events up to that time. The order of
 * everything is thus the same in every run, whatever else the machine does. */
#ifndef SIM_SCHED_SCHED_H
#define SIM_SCHED_SCHED_H

#include "sim/sched/vthread.h"

/* What a thread waits for, in words. NULL stands for something unknown, outside. */
struct sched_reason {
    const char *what;
    int fd;       /* that it waits for, -1: none */
    bool outside; /* a program that has not joined may end the wait */
    uint32_t key; /* of the notifications that may end it, 0: any */
};

/* What the scheduler needs from the model. */
struct sched_hooks {
    void (*dispatch)(const struct event *event);
    /* Another process may run next: flush the buffers of files that processes share. */
    void (*before_switch)(void);
    /* Nobody will ever run again: tells the user why the calling thread waits. */
    void (*deadlocked)(uint64_t now, const struct sched_reason *why);
};
void sched_set_hooks(const struct sched_hooks *hooks);
void sched_report_deadlock(const struct sched_reason *why);

/* This thread's vthread; the thread joins on first use. NULL if the table is full. */
struct vthread *sched_self(void);

/* Whether this thread has joined. */
bool sched_joined(void);

/* Advances the clock by the cost of a call. Returns when this thread runs at that time. */
void sched_charge(double ns);

/* Waits until this thread runs; costs nothing. */
void sched_sync(void);

/* When a thread that has polled in vain, the last time at 'idle_since', sees a change. Polls are
 * 'period' apart and begin independently of the change, so on average half a period passes; taking
 * the average keeps times continuous, where a fixed grid of polls would lock them to its multiples.
 * The poll that has just failed is finished first. */
static inline uint64_t sched_poll_that_sees(uint64_t change, uint64_t idle_since, uint64_t period)
{
    uint64_t seen = change + period / 2, next = idle_since + period;

    return seen > next ? seen : next;
}

/* Advances the clock by the cost of a call that nobody notices before the event that the call creates
 * with sched_event(). The thread may keep running, though others have smaller clocks. */
void sched_charge_ahead(double ns);
void sched_event(uint64_t time, uint32_t kind, void *object, uint32_t argument);

bool sched_is_ahead(void);

/* Nothing happens, and nobody else runs, before this thread's clock, or nobody knows: it does not run. */
bool sched_is_first(void);

/* Sleeps after an empty poll until something of this process changes. Polls are 'period' ns apart;
 * returns true at the first poll that can see the change. Returns false, without time passing, if
 * nothing can happen now. */
bool sched_poll_wait(double period);

/* For a poll that would find nothing yet, and after 'more' further ones would sleep: waits until this
 * thread runs, as sched_sync(). If nothing of its process changes until then, it polls on in vain, and goes
 * to sleep as in sched_poll_wait(), whose result is in 'woken': returns true. 'for_cqe': a change of
 * memory does not wake it. */
bool sched_sync_or_poll_wait(double period, uint32_t more, bool for_cqe, bool *woken);

/* Whether the program polls again after each empty poll of this thread, and does nothing else. */
void sched_polls_on(bool on);

/* For threads that also watch memory: read the change counter, look at memory, then sleep until the
 * counter moves past 'changes' or the clock reaches 'until'. */
uint32_t sched_changes(void);
bool sched_spin_wait(double period, uint32_t changes, uint64_t until);

/* For how long, in ms of real time, this thread has polled while nothing could happen. */
uint64_t sched_stalled_ms(void);

/* Sleeps until an interrupt. Returns as sched_poll_wait(). */
bool sched_block(void);

enum sched_change {
    CHANGE_MEMORY,
    CHANGE_COMPLETION, /* without an interrupt */
    CHANGE_SENT,       /* a send completion, with an interrupt */
    CHANGE_RECEIVED,   /* a receive, or anything else that raises an interrupt */
};

/* Memory or a CQ of that process changes now: 'cq', or one that is not known (NULL). */
void sched_wake(uint32_t proc, enum sched_change change, const struct shared_cq *cq);

/* The calling thread polls this CQ alone and waits for nothing else (NULL: no longer). */
void sched_poll_only(const struct shared_cq *cq);

/* This thread has written memory that threads of process 'pid' may watch. */
void sched_memory_written(int32_t pid);

/* Brackets a barrier of 'count' members outside virtual time. In between nobody waits for this
 * thread; afterwards all members have the same clock. all = false: the barrier failed, and this
 * thread continues alone. */
void sched_barrier_begin(uint32_t count);
void sched_barrier_end(bool all);

/* The thread leaves virtual time, for example at its end. */
void sched_leave(void);

/* The process leaves the fabric. */
void sched_stop(void);

uint64_t sched_now(void);
/* sched_now() including what the program has computed since its last call. */
uint64_t sched_read_clock(void);

/* ---- for guests: programs unaware of virtual time (guest/) ---- */

#define SCHED_NEVER UINT64_MAX

/* What a guest can wait for besides the adapters. */
enum sched_notification {
    NOTIFY_DATA = 1,  /* bytes, connections, ends of processes and threads */
    NOTIFY_SPACE = 2, /* room for bytes */
    NOTIFY_LOCK = 4,
};

/* Joins from the start of the thread. A program that no other guest has started joins at the next
 * multiple of ARRIVAL_NS, so that the exact time of its start does not matter. Returns false if the
 * table is full. */
bool sched_join_guest(void);

/* Charges for reading the clock. Nobody notices that, so the thread usually keeps running; but a
 * loop that only reads the clock may be waiting for memory, and lets others run now and then. */
void sched_charge_clock_read(double ns);

/* A number unique among guests, and the same in every run. */
uint32_t sched_guest_number(void);

/* Changes with every call of this thread; 0 while it does not run. */
uint64_t sched_activity(void);

/* Sets a function that every thread calls when it runs again after waiting. */
void sched_on_resume(void (*call)(void));

/* Waits until the deadline or a notification. Returns early, without time passing, if nothing can
 * happen now, so that the thread can check the real world. */
void sched_wait(uint64_t deadline, uint32_t waits_for, const struct sched_reason *why);

/* The thread is about to sleep in the kernel: nobody waits for it. It rejoins, at the current time,
 * with its next call. */
void sched_detach(void);

/* Wakes guests that wait for one of these notifications, 'latency' ns from now: those whose wait has
 * the same key, or one of both is 0. */
void sched_notify(uint32_t what, uint32_t key, double latency);

/* The thread has found a descriptor ready: it is not stuck, whatever it polls in vain besides. */
void sched_found_ready(void);

/* An empty poll of something other than a CQ. */
void sched_poll_idle(double period, const struct sched_reason *why);

/* Reserves a vthread for a thread or process that this one is about to start. The new thread adopts
 * it first thing; if the start fails, unreserve it. */
struct vthread *sched_reserve(void);
void sched_adopt(struct vthread *vthread);
void sched_unreserve(struct vthread *vthread);

/* The process is about to exit or exec; it keeps running until it has. */
void sched_exiting(void);
void sched_exec_failed(void);

#endif
