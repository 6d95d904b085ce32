/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads: a new one inherits its creator's clock; locks and conditions wait in virtual time. */
#include "sim/guest/guest.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define THREAD_END_PAUSES 10000 /* a second and more: then it is not going to end */

static const struct sched_reason joins = { "waits for the end of a thread", -1, false };
static const struct sched_reason locks = { "waits for a lock, a semaphore or a condition", -1,
                                           false };

/* ---- starting and joining ---- */

struct started {
    struct started *next;
    struct vthread *vthread;
    void *(*body)(void *);
    void *argument;
    pthread_t thread;
    bool detached;
    atomic_bool ended;
};

bool (*guest_adopts_thread)(const void *caller);
void (*guest_on_thread_start)(void), (*guest_on_thread_exit)(void);

static struct started *all_started;
static pthread_mutex_t started_lock = PTHREAD_MUTEX_INITIALIZER;

static void list_started(struct started *started)
{
    REAL(pthread_mutex_lock)(&started_lock);
    started->next = all_started;
    all_started = started;
    REAL(pthread_mutex_unlock)(&started_lock);
}

static struct started *find_started(pthread_t thread)
{
    struct started *found;

    REAL(pthread_mutex_lock)(&started_lock);
    for (found = all_started; found && !pthread_equal(found->thread, thread);)
        found = found->next;
    REAL(pthread_mutex_unlock)(&started_lock);
    return found;
}

static void unlist_started(struct started *started)
{
    struct started **link = &all_started;

    REAL(pthread_mutex_lock)(&started_lock);
    while (*link && *link != started)
        link = &(*link)->next;
    if (*link)
        *link = started->next;
    REAL(pthread_mutex_unlock)(&started_lock);
    free(started);
}

/* The thread of this process that left virtual time last, until it has ended; 0: none. */
static atomic_int ending;

void guest_await_thread_end(void)
{
    static const struct timespec pause = { .tv_nsec = 100000 };
    int tid = atomic_load(&ending), saved = errno;

    if (!tid || tid == syscall(SYS_gettid))
        return;
    for (int i = 0; i < THREAD_END_PAUSES && !syscall(SYS_tgkill, getpid(), tid, 0); i++)
        syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &pause, NULL);
    atomic_store(&ending, 0);
    errno = saved;
}

static void end_thread(void *argument)
{
    struct started *started = argument;

    guest_bypass++; /* for good */
    if (guest_on_thread_exit)
        guest_on_thread_exit();
    if (started->detached)
        unlist_started(started);
    else
        atomic_store(&started->ended, true);
    atomic_store(&ending, syscall(SYS_gettid));
    vsched->leave();
}

static void *run_thread(void *argument)
{
    struct started *started = argument;
    void *result;

    guest_bypass++;
    vsched->adopt(started->vthread);
    if (guest_on_thread_start)
        guest_on_thread_start();
    guest_leave();
    pthread_cleanup_push(end_thread, started);
    result = started->body(started->argument);
    pthread_cleanup_pop(1);
    return result;
}

EXPORT int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attributes,
                          void *(*body)(void *), void *restrict argument)
{
    struct started *started;
    int state = PTHREAD_CREATE_JOINABLE, err = EAGAIN;

    if (!IS_GUEST_CALL() ||
        (guest_adopts_thread && !guest_adopts_thread(__builtin_return_address(0))))
        return REAL(pthread_create)(thread, attributes, body, argument);
    started = calloc(1, sizeof(*started));
    if (!started)
        return EAGAIN;
    guest_enter();
    vsched->charge(THREAD_START_NS);
    if (attributes)
        pthread_attr_getdetachstate(attributes, &state);
    *started = (struct started){ .vthread = vsched->reserve(),
                                 .body = body,
                                 .argument = argument,
                                 .detached = state == PTHREAD_CREATE_DETACHED };
    if (started->vthread)
        err = REAL(pthread_create)(thread, attributes, run_thread, started);
    if (!err) {
        /* The new thread cannot run before this one yields. */
        started->thread = *thread;
        list_started(started);
    } else {
        if (started->vthread)
            vsched->unreserve(started->vthread);
        free(started);
    }
    guest_leave();
    return err;
}

EXPORT int pthread_detach(pthread_t thread)
{
    struct started *started = find_started(thread);

    if (started && atomic_load(&started->ended))
        unlist_started(started);
    else if (started)
        started->detached = true;
    return REAL(pthread_detach)(thread);
}

EXPORT int pthread_join(pthread_t thread, void **result)
{
    struct started *started;
    int err;

    if (!IS_GUEST_CALL())
        return REAL(pthread_join)(thread, result);
    guest_enter();
    started = find_started(thread);
    if (!started) {
        vsched->detach();
        guest_leave();
        return REAL(pthread_join)(thread, result);
    }
    while (!atomic_load(&started->ended))
        vsched->wait(SCHED_NEVER, NOTIFY_DATA, &joins);
    err = REAL(pthread_join)(thread, result);
    if (!err)
        unlist_started(started);
    guest_leave();
    return err;
}

/* ---- locks ---- */

/* A thread that waits for a lock, a semaphore or a condition. */
struct lock_waiter {
    struct lock_waiter *next;
    const void *object;
};

static struct lock_waiter *_Atomic lock_waiters;
static pthread_mutex_t lock_waiters_lock = PTHREAD_MUTEX_INITIALIZER;

static void list_waiter(struct lock_waiter *waiter)
{
    REAL(pthread_mutex_lock)(&lock_waiters_lock);
    waiter->next = lock_waiters;
    lock_waiters = waiter;
    REAL(pthread_mutex_unlock)(&lock_waiters_lock);
}

static void unlist_waiter(struct lock_waiter *waiter)
{
    struct lock_waiter *before;

    REAL(pthread_mutex_lock)(&lock_waiters_lock);
    if (lock_waiters == waiter) {
        lock_waiters = waiter->next;
    } else {
        for (before = lock_waiters; before->next != waiter;)
            before = before->next;
        before->next = waiter->next;
    }
    REAL(pthread_mutex_unlock)(&lock_waiters_lock);
}

static bool is_awaited(const void *object)
{
    struct lock_waiter *waiter;

    REAL(pthread_mutex_lock)(&lock_waiters_lock);
    for (waiter = lock_waiters; waiter && waiter->object != object;)
        waiter = waiter->next;
    REAL(pthread_mutex_unlock)(&lock_waiters_lock);
    return waiter;
}

/* Waits once. Returns false if the deadline has passed. */
static bool wait_for_lock(const void *object, uint64_t deadline)
{
    struct lock_waiter waiter = { .object = object };

    if (vsched->now() >= deadline)
        return false;
    list_waiter(&waiter);
    vsched->wait(deadline, NOTIFY_LOCK, &locks);
    unlist_waiter(&waiter);
    return true;
}

/* Tells those who wait for this object, and only if there are any: a thread that is told for nothing
 * may see sooner that its own lock is free. Open MPI uses locks now and then, by real time. */
static void lock_was_freed(const void *object)
{
    if (!atomic_load(&lock_waiters) || !is_awaited(object))
        return;
    guest_enter();
    vsched->notify(NOTIFY_LOCK, 0, CLOCK_CALL_NS);
    guest_leave();
}

static int lock_until(pthread_mutex_t *mutex, uint64_t deadline)
{
    int err = REAL(pthread_mutex_trylock)(mutex);

    if (err != EBUSY)
        return err;
    if (mutex->__data.__owner == syscall(SYS_gettid))
        return REAL(pthread_mutex_lock)(mutex); /* recursion: the C library knows the error */
    guest_enter();
    while (err == EBUSY)
        err = wait_for_lock(mutex, deadline) ? REAL(pthread_mutex_trylock)(mutex) : ETIMEDOUT;
    guest_leave();
    return err;
}

EXPORT int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    return IS_GUEST_CALL() ? lock_until(mutex, SCHED_NEVER) : REAL(pthread_mutex_lock)(mutex);
}

EXPORT int pthread_mutex_timedlock(pthread_mutex_t *restrict mutex,
                                   const struct timespec *restrict time)
{
    if (!IS_GUEST_CALL())
        return REAL(pthread_mutex_timedlock)(mutex, time);
    return lock_until(mutex, guest_clock_deadline(CLOCK_REALTIME, time->tv_sec, time->tv_nsec));
}

EXPORT int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    int err = REAL(pthread_mutex_unlock)(mutex);

    if (IS_GUEST_CALL())
        lock_was_freed(mutex);
    return err;
}

EXPORT int pthread_spin_lock(pthread_spinlock_t *lock)
{
    int err;

    if (!IS_GUEST_CALL())
        return REAL(pthread_spin_lock)(lock);
    err = REAL(pthread_spin_trylock)(lock);
    if (err != EBUSY)
        return err;
    guest_enter();
    while (err == EBUSY && wait_for_lock((const void *)lock, SCHED_NEVER))
        err = REAL(pthread_spin_trylock)(lock);
    guest_leave();
    return err;
}

EXPORT int pthread_spin_unlock(pthread_spinlock_t *lock)
{
    int err = REAL(pthread_spin_unlock)(lock);

    if (IS_GUEST_CALL())
        lock_was_freed((const void *)lock);
    return err;
}

#define DEFINE_RWLOCK(kind)                                        \
    EXPORT int pthread_rwlock_##kind##lock(pthread_rwlock_t *lock) \
    {                                                              \
        int err;                                                   \
                                                                   \
        if (!IS_GUEST_CALL())                                      \
            return REAL(pthread_rwlock_##kind##lock)(lock);        \
        err = REAL(pthread_rwlock_try##kind##lock)(lock);          \
        if (err != EBUSY)                                          \
            return err;                                            \
        guest_enter();                                             \
        while (err == EBUSY && wait_for_lock(lock, SCHED_NEVER))   \
            err = REAL(pthread_rwlock_try##kind##lock)(lock);      \
        guest_leave();                                             \
        return err;                                                \
    }

DEFINE_RWLOCK(rd)
DEFINE_RWLOCK(wr)

EXPORT int pthread_rwlock_unlock(pthread_rwlock_t *lock)
{
    int err = REAL(pthread_rwlock_unlock)(lock);

    if (IS_GUEST_CALL())
        lock_was_freed(lock);
    return err;
}

/* ---- semaphores ---- */

static int wait_semaphore(sem_t *semaphore, uint64_t deadline)
{
    int result;

    guest_enter();
    while ((result = REAL(sem_trywait)(semaphore)) && errno == EAGAIN) {
        if (wait_for_lock(semaphore, deadline))
            continue;
        errno = ETIMEDOUT;
        break;
    }
    guest_leave();
    return result;
}

EXPORT int sem_wait(sem_t *semaphore)
{
    return IS_GUEST_CALL() ? wait_semaphore(semaphore, SCHED_NEVER) : REAL(sem_wait)(semaphore);
}

EXPORT int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict time)
{
    if (!IS_GUEST_CALL())
        return REAL(sem_timedwait)(semaphore, time);
    return wait_semaphore(semaphore,
                          guest_clock_deadline(CLOCK_REALTIME, time->tv_sec, time->tv_nsec));
}

EXPORT int sem_clockwait(sem_t *restrict semaphore, clockid_t clock,
                         const struct timespec *restrict time)
{
    if (!IS_GUEST_CALL())
        return REAL(sem_clockwait)(semaphore, clock, time);
    return wait_semaphore(semaphore, guest_clock_deadline(clock, time->tv_sec, time->tv_nsec));
}

EXPORT int sem_post(sem_t *semaphore)
{
    int result = REAL(sem_post)(semaphore);

    if (IS_GUEST_CALL())
        lock_was_freed(semaphore);
    return result;
}

/* ---- conditions ---- */

struct sleeper {
    struct sleeper *next;
    pthread_cond_t *condition;
    bool called;
};

static struct sleeper *sleepers; /* in FIFO order */
static pthread_mutex_t sleepers_lock = PTHREAD_MUTEX_INITIALIZER;

static void list_sleeper(struct sleeper *sleeper)
{
    struct sleeper **link = &sleepers;

    REAL(pthread_mutex_lock)(&sleepers_lock);
    while (*link)
        link = &(*link)->next;
    *link = sleeper;
    REAL(pthread_mutex_unlock)(&sleepers_lock);
}

static void unlist_sleeper(struct sleeper *sleeper)
{
    struct sleeper **link = &sleepers;

    REAL(pthread_mutex_lock)(&sleepers_lock);
    while (*link && *link != sleeper)
        link = &(*link)->next;
    if (*link)
        *link = sleeper->next;
    REAL(pthread_mutex_unlock)(&sleepers_lock);
}

static bool call_sleepers(pthread_cond_t *condition, bool all)
{
    bool any = false;

    REAL(pthread_mutex_lock)(&sleepers_lock);
    for (struct sleeper *each = sleepers; each && (all || !any); each = each->next) {
        if (each->condition != condition || each->called)
            continue;
        each->called = true;
        any = true;
    }
    REAL(pthread_mutex_unlock)(&sleepers_lock);
    return any;
}

static int wait_condition(pthread_cond_t *condition, pthread_mutex_t *mutex, uint64_t deadline)
{
    struct sleeper sleeper = { .condition = condition };
    int err;

    list_sleeper(&sleeper);
    err = REAL(pthread_mutex_unlock)(mutex);
    if (err) {
        unlist_sleeper(&sleeper);
        return err;
    }
    lock_was_freed(mutex);
    guest_enter();
    while (!sleeper.called && wait_for_lock(condition, deadline))
        ;
    guest_leave();
    unlist_sleeper(&sleeper);
    err = lock_until(mutex, SCHED_NEVER);
    return err || sleeper.called ? err : ETIMEDOUT;
}

/* dlsym(RTLD_NEXT) may find the old version of these functions. */
#define REAL_CONDITION(name) ((__typeof__(&name))dlvsym(RTLD_NEXT, #name, "GLIBC_2.3.2"))

EXPORT int pthread_cond_wait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex)
{
    return IS_GUEST_CALL() ? wait_condition(condition, mutex, SCHED_NEVER)
                           : REAL_CONDITION(pthread_cond_wait)(condition, mutex);
}

EXPORT int pthread_cond_timedwait(pthread_cond_t *restrict condition,
                                  pthread_mutex_t *restrict mutex,
                                  const struct timespec *restrict time)
{
    if (!IS_GUEST_CALL())
        return REAL_CONDITION(pthread_cond_timedwait)(condition, mutex, time);
    return wait_condition(condition, mutex, guest_clock_deadline_any(time->tv_sec, time->tv_nsec));
}

EXPORT int pthread_cond_clockwait(pthread_cond_t *restrict condition,
                                  pthread_mutex_t *restrict mutex, clockid_t clock,
                                  const struct timespec *restrict time)
{
    if (!IS_GUEST_CALL())
        return REAL(pthread_cond_clockwait)(condition, mutex, clock, time);
    return wait_condition(condition, mutex,
                          guest_clock_deadline(clock, time->tv_sec, time->tv_nsec));
}

/* Threads outside virtual time may signal threads in it. */
static void signal_condition(pthread_cond_t *condition, bool all, bool takes_part)
{
    if (call_sleepers(condition, all) && takes_part)
        lock_was_freed(condition);
}

EXPORT int pthread_cond_signal(pthread_cond_t *condition)
{
    signal_condition(condition, false, IS_GUEST_CALL());
    return REAL_CONDITION(pthread_cond_signal)(condition);
}

EXPORT int pthread_cond_broadcast(pthread_cond_t *condition)
{
    signal_condition(condition, true, IS_GUEST_CALL());
    return REAL_CONDITION(pthread_cond_broadcast)(condition);
}
