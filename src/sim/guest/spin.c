/* SPDX-License-Identifier: BSD-2-Clause */
/* A program that spins on memory, without a call that is intercepted, would run forever. A timer
 * checks threads that have made no call for a while and single-steps them. If the same registers
 * recur, the thread is in a loop that only others can end, since nobody else runs meanwhile; it
 * then waits until something of its process changes. A thread that computes only runs a little
 * slower. */
#include "sim/guest/guest.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define CHECK_MIN_NS 200000   /* real time */
#define CHECK_MAX_NS 50000000 /* for threads found to compute */
#define STEPS        512
/* A loop that counts while it spins looks like computing. After a second of that, others get to
 * run. */
#define FUTILE_CHECKS_MAX 20
#define COUNTING_NS       1000000 /* virtual time */
#define TRAP_FLAG         0x100

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static __thread struct {
    timer_t timer;
    bool exists;
    bool set;
    uint64_t activity; /* when the timer was set */
    uint64_t interval;
    unsigned int steps; /* left */
    unsigned int taken;
    unsigned int futile_checks;
    unsigned int next_mark;
    gregset_t mark; /* the registers that may recur */
} watch;

static void set_timer(uint64_t activity)
{
    struct itimerspec soon = { .it_value.tv_nsec = watch.interval };

    watch.set = true;
    watch.activity = activity;
    timer_settime(watch.timer, 0, &soon, NULL);
}

void spin_watch(void)
{
    if (!watch.exists || watch.set || guest_bypass)
        return;
    watch.interval = CHECK_MIN_NS;
    set_timer(vsched->activity());
}

/* Doubles the check interval. Returns false if it is at its maximum. */
static bool back_off(void)
{
    if (watch.interval >= CHECK_MAX_NS)
        return false;
    watch.interval *= 2;
    return true;
}

/* The program counter is just behind a system call, which the signal has interrupted or will. */
static bool in_system_call(const greg_t *registers)
{
    static const uint8_t instruction[] = { 0x0f, 0x05 };

    return !memcmp((const uint8_t *)registers[REG_RIP] - sizeof(instruction), instruction,
                   sizeof(instruction));
}

static void on_timer(int number, siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    uint64_t activity = vsched->activity();

    if (info->si_code != SI_TIMER) {
        signals_forward(number, info, context);
        return;
    }
    if (!activity || !watch.exists) {
        watch.set = false; /* it does not run; spin_watch() starts the timer again when it does */
        return;
    }
    if (in_system_call(registers)) {
        /* Perhaps just after one, such as the call that set the timer. Without another call, nobody
         * else would set it again. */
        back_off();
        set_timer(activity);
        return;
    }
    if (activity != watch.activity || guest_bypass ||
        guest_is_internal((void *)registers[REG_RIP])) {
        watch.interval = CHECK_MIN_NS;
        set_timer(activity);
        return;
    }
    vsched->compute_sample();
    watch.steps = STEPS;
    watch.taken = 0;
    watch.next_mark = 0;
    registers[REG_EFL] |= TRAP_FLAG;
}

static bool same_registers(const greg_t *a, const greg_t *b)
{
    return !memcmp(a, b, REG_RIP * sizeof(*a)) && a[REG_RIP] == b[REG_RIP] &&
           a[REG_EFL] == b[REG_EFL];
}

static void end_of_steps(greg_t *registers, bool spins)
{
    int saved = errno;

    registers[REG_EFL] &= ~TRAP_FLAG;
    (spins ? vsched->compute_discard : vsched->compute_resume)();
    if (spins) {
        watch.interval = CHECK_MIN_NS;
        guest_bypass++;
        vsched->spin_wait();
        guest_bypass--;
    } else if (back_off()) {
        watch.futile_checks = 0;
    } else if (++watch.futile_checks >= FUTILE_CHECKS_MAX) {
        watch.futile_checks = 0;
        guest_bypass++;
        vsched->charge(COUNTING_NS);
        guest_bypass--;
    }
    set_timer(vsched->activity());
    errno = saved;
}

static void on_step(int number, siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;

    if (!watch.steps) {
        signals_forward(number, info, context);
        return;
    }
    watch.steps--;
    if (guest_bypass || guest_is_internal((void *)registers[REG_RIP])) {
        watch.steps = 0;
        end_of_steps(registers, false);
    } else if (watch.taken && same_registers(watch.mark, registers)) {
        watch.steps = 0;
        end_of_steps(registers, true);
    } else if (!watch.steps) {
        end_of_steps(registers, false);
    } else if (watch.taken++ == watch.next_mark) {
        /* The loop may begin later than the stepping did. */
        memcpy(watch.mark, registers, sizeof(watch.mark));
        watch.next_mark = watch.taken * 2;
    }
}

/* Children and threads inherit the handlers. */
static void install_signals(void)
{
    struct sigaction timer = { .sa_sigaction = on_timer, .sa_flags = SA_SIGINFO | SA_RESTART };
    struct sigaction step = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO | SA_RESTART };

    sigfillset(&timer.sa_mask);
    sigdelset(&timer.sa_mask, SIGSEGV);
    step.sa_mask = timer.sa_mask;
    signals_install(WATCH_SIGNAL, &timer);
    signals_install(SIGTRAP, &step);
}

static void resumed(void)
{
    guest_await_thread_end();
    spin_watch();
}

void spin_prepare(void)
{
    struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = WATCH_SIGNAL };

    install_signals();
    event.sigev_notify_thread_id = syscall(SYS_gettid);
    memset(&watch, 0, sizeof(watch));
    watch.exists = !timer_create(CLOCK_MONOTONIC, &event, &watch.timer);
    vsched->on_resume(resumed);
    spin_watch();
}

void spin_finish(void)
{
    if (watch.exists)
        timer_delete(watch.timer);
    watch.exists = false;
}
