/* SPDX-License-Identifier: BSD-2-Clause */
/* A program that waits for its memory to change, without a call that could be seen, would keep the
 * turn forever. A timer looks at threads that have made no call for a while; such a thread is
 * stepped, and the same registers twice prove that it goes round in a loop which only others can
 * end: nobody else runs meanwhile. It is then parked until something of its process changes. What
 * computes is not affected, it only runs a little slower. */
#include "sim/guest/guest.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define FIRST_LOOK_NS 200000   /* real time */
#define LAST_LOOK_NS  50000000 /* for what has been found to compute */
#define STEPS         512
/* One that counts while it waits cannot be told from one that computes. After a second of that it
 * gives the others a turn. */
#define LOOKS_IN_VAIN 20
#define COUNTING_NS   1000000 /* virtual time */
#define TRAP_FLAG     0x100

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
    unsigned int in_vain;
    unsigned int next_mark;
    gregset_t mark; /* the registers that are to come again */
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
    if (!watch.exists || watch.set || guest_inside)
        return;
    watch.interval = FIRST_LOOK_NS;
    set_timer(turns->activity());
}

/* The longer nothing is found, the more rarely it is looked for. False: that is as rare as it gets.
 */
static bool look_more_rarely(void)
{
    if (watch.interval >= LAST_LOOK_NS)
        return false;
    watch.interval *= 2;
    return true;
}

/* Just behind a system call, which the signal has ended or will. */
static bool in_system_call(const greg_t *registers)
{
    static const uint8_t instruction[] = { 0x0f, 0x05 };

    return !memcmp((const uint8_t *)registers[REG_RIP] - sizeof(instruction), instruction,
                   sizeof(instruction));
}

static void on_timer(int number, siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    uint64_t activity = turns->activity();

    if (info->si_code != SI_TIMER) {
        signals_pass_on(number, info, context);
        return;
    }
    if (!activity || !watch.exists) {
        watch.set = false; /* it waits for its turn, and is watched again when it has it */
        return;
    }
    if (in_system_call(registers)) {
        /* Perhaps only behind one, such as that which set the timer: with no other call to come,
         * nobody would set it again. */
        look_more_rarely();
        set_timer(activity);
        return;
    }
    if (activity != watch.activity || guest_inside ||
        guest_is_internal((void *)registers[REG_RIP])) {
        watch.interval = FIRST_LOOK_NS;
        set_timer(activity);
        return;
    }
    turns->look();
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
    (spins ? turns->waited : turns->computes_on)();
    if (spins) {
        watch.interval = FIRST_LOOK_NS;
        guest_inside++;
        turns->spin();
        guest_inside--;
    } else if (look_more_rarely()) {
        watch.in_vain = 0;
    } else if (++watch.in_vain >= LOOKS_IN_VAIN) {
        watch.in_vain = 0;
        guest_inside++;
        turns->charge(COUNTING_NS);
        guest_inside--;
    }
    set_timer(turns->activity());
    errno = saved;
}

static void on_step(int number, siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;

    if (!watch.steps) {
        signals_pass_on(number, info, context);
        return;
    }
    watch.steps--;
    if (guest_inside || guest_is_internal((void *)registers[REG_RIP])) {
        watch.steps = 0;
        end_of_steps(registers, false);
    } else if (watch.taken && same_registers(watch.mark, registers)) {
        watch.steps = 0;
        end_of_steps(registers, true);
    } else if (!watch.steps) {
        end_of_steps(registers, false);
    } else if (watch.taken++ == watch.next_mark) {
        /* The loop may begin later than the steps did. */
        memcpy(watch.mark, registers, sizeof(watch.mark));
        watch.next_mark = watch.taken * 2;
    }
}

/* Once for a process; its children and threads inherit it. */
static void take_signals(void)
{
    struct sigaction timer = { .sa_sigaction = on_timer, .sa_flags = SA_SIGINFO | SA_RESTART };
    struct sigaction step = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO | SA_RESTART };

    sigfillset(&timer.sa_mask);
    sigdelset(&timer.sa_mask, SIGSEGV);
    step.sa_mask = timer.sa_mask;
    signals_take(WATCH_SIGNAL, &timer);
    signals_take(SIGTRAP, &step);
}

void spin_prepare(void)
{
    struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = WATCH_SIGNAL };

    take_signals();
    event.sigev_notify_thread_id = syscall(SYS_gettid);
    memset(&watch, 0, sizeof(watch));
    watch.exists = !timer_create(CLOCK_MONOTONIC, &event, &watch.timer);
    turns->on_resume(spin_watch);
    spin_watch();
}

void spin_finish(void)
{
    if (watch.exists)
        timer_delete(watch.timer);
    watch.exists = false;
}
