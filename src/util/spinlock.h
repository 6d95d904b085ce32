/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UTIL_SPINLOCK_H
#define UTIL_SPINLOCK_H

#include "util/util.h"

#include <sched.h>
#include <sys/single_threaded.h>

/* Guards private state of one process. In a single-threaded program it costs two plain stores. They
 * are needed even then: the program may start a thread while it holds the lock. */
struct spinlock {
    atomic_uint held;
};

static inline void spin_lock(struct spinlock *lock)
{
    if (__libc_single_threaded) {
        store_relaxed(&lock->held, 1);
        return;
    }
    for (unsigned tries = 0; atomic_exchange_explicit(&lock->held, 1, memory_order_acquire);) {
        if (++tries % 100 == 0)
            sched_yield();
        else
            cpu_relax();
    }
}

static inline bool spin_trylock(struct spinlock *lock)
{
    return !atomic_exchange_explicit(&lock->held, 1, memory_order_acquire);
}

static inline void spin_unlock(struct spinlock *lock)
{
    store_release(&lock->held, 0);
}

#endif
