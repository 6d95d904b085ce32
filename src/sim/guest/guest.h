/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs that know nothing of virtual time: calls of the C library that ask for the time, or
 * wait, are answered here and cost virtual time. Of MPI programs (mpi.c) only what their threads do
 * with each other is. These libraries are loaded only where a model is named, so programs on the
 * live adapter never meet them. */
#ifndef SIM_GUEST_GUEST_H
#define SIM_GUEST_GUEST_H

#include "sim/guest/interface.h"

#include <dlfcn.h>
#include <signal.h>

#define EXPORT __attribute__((visibility("default")))

/* What calls take that no adapter file speaks of, ns. */
#define CLOCK_CALL_NS   25    /* reading a clock */
#define IO_CALL_NS      1000  /* a system call that moves bytes, or looks */
#define IO_LATENCY_NS   10000 /* from one process to another, outside the fabric */
#define THREAD_START_NS 10000

#define SECOND_NS       1000000000ull

/* The definition of a call that would have been used without this library. */
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

#define turns (&verbena_guest_sched)

extern bool guest_on;
/* Calls from within these are meant as they stand: those of libverbena.so, and of signal handlers
 * that come while a call of ours waits. */
extern __thread int guest_inside;
void guest_find_internal(void);
bool guest_is_internal(const void *caller);
/* So are those of threads that take no part. */
bool guest_is_one(void);

/* Whether the call that this stands in is one of the program's own. */
#define IS_GUEST_CALL() \
    (guest_is_one() && !guest_inside && !guest_is_internal(__builtin_return_address(0)))

static inline void guest_enter(void)
{
    guest_inside++;
}

/* Returns to the program. */
void guest_leave(void);

/* Those of a library take part from their start on if this is NULL or says so, else from their
 * first verbs call on. */
extern bool (*guest_adopts)(const void *caller);
/* Called by every thread that does, if not NULL. */
extern void (*guest_thread_begins)(void), (*guest_thread_ends)(void);

/* A forked child is a guest of its own. */
void guest_restart(struct vthread *reserved);

/* Until there is something to read from the descriptor; not at all if it is non-blocking. */
void io_wait(int fd);

uint64_t guest_clock_deadline(int clock, uint64_t seconds, uint64_t ns);
/* Absolute time of a clock that is not named: the bases of the clocks are far apart. */
uint64_t guest_clock_deadline_any(uint64_t seconds, uint64_t ns);

#define WATCH_SIGNAL (SIGRTMAX - 3)

/* SIGSEGV, SIGTRAP or WATCH_SIGNAL is handled here from now on; what the program sets for it is
 * kept, and can be given what is its own. */
void signals_take(int number, const struct sigaction *action);
void signals_pass_on(int number, siginfo_t *info, void *context);

/* Reading the processor's counter traps; 'trap' false: as the processor has it, for programs that
 * are started. */
void tsc_prepare(void);
void tsc_trap(bool trap);

void spin_prepare(void); /* of this thread */
void spin_finish(void);
void spin_watch(void);

#endif
