/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/interrupt.h"
#include "bench/clock.h"

#include <signal.h>
#include <sys/time.h>

#define TICK_US       200000
#define IMPATIENCE_NS 1000000000

static volatile sig_atomic_t noted;
static volatile uint64_t noted_at;

/* Whoever signals a whole group of processes may reach this one twice: directly, and through its
 * parent, which passes signals on. */
static void note_signal(int number)
{
    uint64_t now = monotonic_ns();

    if (!noted) {
        noted_at = now;
        noted = number;
    } else if (now - noted_at > IMPATIENCE_NS) {
        signal(number, SIG_DFL);
        raise(number);
    }
}

void interrupt_catch(void)
{
    static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
    struct sigaction action = { .sa_handler = note_signal }, present;

    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
        if (!sigaction(numbers[i], NULL, &present) && present.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
    }
}

bool interrupt_seen(void)
{
    return noted != 0;
}

int interrupt_signal(void)
{
    return noted;
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
