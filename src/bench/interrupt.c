/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/interrupt.h"
#include "bench/clock.h"

#include <signal.h>
#include <sys/time.h>

#define TICK_US   200000
#define REPEAT_NS 1000000000

static volatile sig_atomic_t recorded;
static volatile uint64_t recorded_at;

/* A signal to the process group may arrive twice: directly, and forwarded by the parent. A repeated
 * signal therefore only counts after REPEAT_NS. */
static void record_signal(int number)
{
    uint64_t now = monotonic_ns();

    if (!recorded) {
        recorded_at = now;
        recorded = number;
    } else if (now - recorded_at > REPEAT_NS) {
        signal(number, SIG_DFL);
        raise(number);
    }
}

void interrupt_catch(void)
{
    static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
    struct sigaction action = { .sa_handler = record_signal }, present;

    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
        if (!sigaction(numbers[i], NULL, &present) && present.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
    }
}

bool interrupt_seen(void)
{
    return recorded != 0;
}

int interrupt_signal(void)
{
    return recorded;
}

static void ignore(int signal)
{
}

void interrupt_tick(bool on)
{
    static int users;
    struct sigaction action = { .sa_handler = ignore };
    struct itimerval timer = { { 0, TICK_US }, { 0, TICK_US } };
    int before = __atomic_fetch_add(&users, on ? 1 : -1, __ATOMIC_RELAXED);

    if (before != (on ? 0 : 1))
        return;
    if (!on)
        timer = (struct itimerval){ 0 };
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
}
