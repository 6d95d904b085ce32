/* SPDX-License-Identifier: BSD-2-Clause */
/* Clocks and sleeps. */
#include "sim/guest/guest.h"

#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* The clocks at virtual time 0. Fixed, because programs print dates and seed random numbers with
 * them; far apart, so that a time of one clock is never taken for one of the other. */
#define REALTIME_BASE_S  1700000000ull
#define MONOTONIC_BASE_S 1000ull

static uint64_t read_clock(void)
{
    vsched->charge_clock_read(CLOCK_CALL_NS);
    return vsched->now();
}

static uint64_t base_of(int clock)
{
    switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_TAI:
        return REALTIME_BASE_S;
    case CLOCK_PROCESS_CPUTIME_ID:
    case CLOCK_THREAD_CPUTIME_ID:
        return 0;
    default:
        return MONOTONIC_BASE_S;
    }
}

uint64_t guest_clock_deadline(int clock, uint64_t seconds, uint64_t ns)
{
    uint64_t base = base_of(clock);

    return seconds < base ? 0 : (seconds - base) * SECOND_NS + ns;
}

uint64_t guest_clock_deadline_any(uint64_t seconds, uint64_t ns)
{
    return guest_clock_deadline(seconds < REALTIME_BASE_S / 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME,
                                seconds, ns);
}

/* The C library would read the TSC, which traps. */
static int system_clock(clockid_t clock, struct timespec *time)
{
    return syscall(SYS_clock_gettime, clock, time);
}

EXPORT int clock_gettime(clockid_t clock, struct timespec *time)
{
    uint64_t now;

    if (!IS_GUEST_CALL())
        return guest_on ? system_clock(clock, time) : REAL(clock_gettime)(clock, time);
    guest_enter();
    now = read_clock();
    *time = (struct timespec){ base_of(clock) + now / SECOND_NS, now % SECOND_NS };
    guest_leave();
    return 0;
}

EXPORT int timespec_get(struct timespec *time, int base)
{
    if (base != TIME_UTC)
        return 0;
    return clock_gettime(CLOCK_REALTIME, time) ? 0 : base;
}

EXPORT int gettimeofday(struct timeval *restrict time, void *restrict zone)
{
    struct timespec now;

    if (zone)
        *(struct timezone *)zone = (struct timezone){ 0 };
    if (clock_gettime(CLOCK_REALTIME, &now))
        return -1;
    *time = (struct timeval){ now.tv_sec, now.tv_nsec / 1000 };
    return 0;
}

EXPORT time_t time(time_t *where)
{
    struct timespec now;

    if (clock_gettime(CLOCK_REALTIME, &now))
        return -1;
    if (where)
        *where = now.tv_sec;
    return now.tv_sec;
}

EXPORT clock_t clock(void)
{
    struct timespec now;

    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now))
        return -1;
    return now.tv_sec * CLOCKS_PER_SEC + now.tv_nsec / (SECOND_NS / CLOCKS_PER_SEC);
}

/* ---- sleeping ---- */

static void sleep_until(uint64_t deadline)
{
    guest_enter();
    while (vsched->now() < deadline)
        vsched->wait(deadline, 0, NULL);
    guest_leave();
}

EXPORT int clock_nanosleep(clockid_t clock, int flags, const struct timespec *request,
                           struct timespec *left)
{
    uint64_t deadline;

    if (!IS_GUEST_CALL())
        return REAL(clock_nanosleep)(clock, flags, request, left);
    if (request->tv_nsec < 0 || request->tv_nsec >= (long)SECOND_NS || request->tv_sec < 0)
        return EINVAL;
    deadline = flags & TIMER_ABSTIME
                   ? guest_clock_deadline(clock, request->tv_sec, request->tv_nsec)
                   : vsched->now() + request->tv_sec * SECOND_NS + request->tv_nsec;
    sleep_until(deadline);
    return 0;
}

EXPORT int nanosleep(const struct timespec *request, struct timespec *left)
{
    int err;

    if (!IS_GUEST_CALL())
        return REAL(nanosleep)(request, left);
    err = clock_nanosleep(CLOCK_MONOTONIC, 0, request, left);
    if (err)
        errno = err;
    return err ? -1 : 0;
}

EXPORT int usleep(useconds_t us)
{
    if (!IS_GUEST_CALL())
        return REAL(usleep)(us);
    sleep_until(vsched->now() + us * 1000ull);
    return 0;
}

EXPORT unsigned int sleep(unsigned int seconds)
{
    if (!IS_GUEST_CALL())
        return REAL(sleep)(seconds);
    sleep_until(vsched->now() + seconds * SECOND_NS);
    return 0;
}

static const struct sched_reason yields = { "yields the processor, again and again", -1, false };

EXPORT int sched_yield(void)
{
    if (!IS_GUEST_CALL())
        return REAL(sched_yield)();
    guest_enter();
    vsched->poll_idle(IO_CALL_NS, &yields);
    guest_leave();
    return 0;
}
