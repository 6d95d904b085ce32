/* SPDX-License-Identifier: BSD-2-Clause */
/* Guests: programs unaware of virtual time. These libraries intercept the C library calls that read
 * a clock or wait, and make them cost virtual time; in MPI programs (mpi.c), only calls that
 * synchronise threads. They are loaded only with a modelled adapter. */
#ifndef SIM_GUEST_GUEST_H
#define SIM_GUEST_GUEST_H

#include "sim/guest/interface.h"

#include <dlfcn.h>
#include <signal.h>

#define EXPORT __attribute__((visibility("default")))

/* Costs of calls that adapter files do not cover, ns. */
#define CLOCK_CALL_NS   25    /* reading a clock */
#define IO_CALL_NS      1000  /* a system call that moves bytes, or polls */
#define IO_LATENCY_NS   10000 /* from one process to another, outside the fabric */
#define THREAD_START_NS 10000

#define SECOND_NS       1000000000ull

/* The function that the program would call without this library. */
#define REAL(name)                                                            \
    ({                                                                        \
        static __typeof__(&name) real_;                                       \
        __typeof__(&name) found_ = __atomic_load_n(&real_, __ATOMIC_RELAXED); \
        if (!found_) {                                                        \
            found_ = (__typeof__(&name))dlsym(RTLD_NEXT, #name);              \
            __atomic_store_n(&real_, found_, __ATOMIC_RELAXED);               \
        }                                                                     \
        found_;                                                               \
    })

#define vsched (&verbena_guest_sched)

extern bool guest_on;
/* Above 0, this thread's calls go straight to the C library: libverbena.so makes them, or a signal
 * handler that runs while an intercepted call waits. */
extern __thread int guest_bypass;
void guest_find_internal(void);
bool guest_is_internal(const void *caller);
/* Whether this thread takes part in virtual time; other threads' calls are not intercepted. */
bool guest_thread_joined(void);

/* Whether the program itself made the call that expands this macro. */
#define IS_GUEST_CALL() \
    (guest_thread_joined() && !guest_bypass && !guest_is_internal(__builtin_return_address(0)))

static inline void guest_enter(void)
{
    guest_bypass++;
}

/* Returns to the program. */
void guest_leave(void);

/* Whether threads that 'caller' creates join at their start; otherwise they join at their first
 * verbs call. NULL: all do. */
extern bool (*guest_adopts_thread)(const void *caller);
/* Called by threads that joined at their start, unless NULL. */
extern void (*guest_on_thread_start)(void), (*guest_on_thread_exit)(void);
/* Each thread that runs again calls this. A thread that has left virtual time still gives back its
 * memory to the C library; what others allocate must not depend on whether it has done so. */
void guest_await_thread_end(void);

/* A forked child joins as a guest of its own. */
void guest_restart(struct vthread *reserved);

/* Waits until the descriptor is readable; returns at once if it is non-blocking. */
void io_wait(int fd, const char *what, bool outside);

uint64_t guest_clock_deadline(int clock, uint64_t seconds, uint64_t ns);
/* For an absolute time of an unknown clock: the bases of the clocks are far apart. */
uint64_t guest_clock_deadline_any(uint64_t seconds, uint64_t ns);

#define WATCH_SIGNAL (SIGRTMAX - 3)

/* Installs a handler for SIGSEGV, SIGTRAP or WATCH_SIGNAL. The program's own action is kept;
 * signals_forward() runs it for signals that are not ours. */
void signals_install(int number, const struct sigaction *action);
void signals_forward(int number, siginfo_t *info, void *context);

/* Makes rdtsc trap. tsc_trap(false) restores it for programs that this one starts. */
void tsc_prepare(void);
void tsc_trap(bool trap);

/* Detection of threads that spin on memory (spin.c), for this thread. */
void spin_prepare(void);
void spin_finish(void);
void spin_watch(void);

#endif
