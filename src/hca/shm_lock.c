/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/shm_lock.h"

#include "hca/proc.h"
#include "util/log.h"

#include <sched.h>
#include <unistd.h>

/* The holder is a proc_word(), or a pid with this bit set. */
#define HOLDER_IS_PID 0x80000000u

uint64_t shm_lock_patience_ns = 20000000000ull;

static bool holder_runs(uint32_t holder)
{
    return holder & HOLDER_IS_PID ? proc_pid_runs(holder & ~HOLDER_IS_PID) : proc_word_runs(holder);
}

/* How long one holder has kept others waiting. */
struct patience {
    uint32_t holder;
    uint64_t since;
};

/* Nothing holds such a lock for long, unless it is stopped, or the segment is corrupted and the
 * holder does not know that it has the lock. */
static bool is_exhausted(struct patience *patience, uint32_t seen)
{
    if (patience->holder != seen)
        *patience = (struct patience){ seen, now_ns() };
    if (now_ns() - patience->since < shm_lock_patience_ns)
        return false;
    log_error("taking over a lock in %s that has been held for %d s: its holder is stopped, or the "
              "segment is corrupted",
              segment_path(), (int)(shm_lock_patience_ns / 1000000000));
    return true;
}

static bool lock_as(struct shm_lock *lock, uint32_t holder)
{
    struct patience patience = { 0, 0 };

    for (unsigned tries = 1;; tries++) {
        uint32_t seen = 0;
        if (atomic_compare_exchange_strong(&lock->holder, &seen, holder))
            return false;
        if (tries % 4096 == 0 && seen && (!holder_runs(seen) || is_exhausted(&patience, seen)) &&
            atomic_compare_exchange_strong(&lock->holder, &seen, holder))
            return true;
        if (tries % 64 == 0)
            sched_yield();
        else
            cpu_relax();
    }
}

bool shm_lock_by_pid(struct shm_lock *lock)
{
    return lock_as(lock, HOLDER_IS_PID | getpid());
}

bool shm_lock(struct shm_lock *lock)
{
    return proc_self >= 0 ? lock_as(lock, proc_word(proc_self)) : shm_lock_by_pid(lock);
}

void shm_unlock(struct shm_lock *lock)
{
    store_release(&lock->holder, 0);
}
