/* The processor's time stamp counter: reading it is made to fault, and the fault handler puts
 * virtual time into the registers, as a counter of 1000 MHz would show it. */
#include "sim/guest/guest.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <ucontext.h>

static struct sigaction program_action; /* for faults that are the program's own */

void tsc_trap(bool trap)
{
    prctl(PR_SET_TSC, trap ? PR_TSC_SIGSEGV : PR_TSC_ENABLE, 0, 0, 0);
}

/* Length of the instruction if it reads the counter, else 0. */
static int counter_instruction(const uint8_t *at)
{
    static const uint8_t rdtsc[] = { 0x0f, 0x31 }, rdtscp[] = { 0x0f, 0x01, 0xf9 };

    if (!memcmp(at, rdtsc, sizeof(rdtsc)))
        return sizeof(rdtsc);
    return memcmp(at, rdtscp, sizeof(rdtscp)) ? 0 : sizeof(rdtscp);
}

static uint64_t read_counter(void)
{
    uint64_t now;

    if (!guest_on || guest_inside)
        return guest_on ? turns->now() : 0;
    guest_enter();
    turns->glance(CLOCK_CALL_NS);
    now = turns->now();
    guest_leave();
    return now;
}

static void pass_to_program(int number, siginfo_t *info, void *context)
{
    if (program_action.sa_flags & SA_SIGINFO) {
        program_action.sa_sigaction(number, info, context);
    } else if (program_action.sa_handler != SIG_DFL && program_action.sa_handler != SIG_IGN) {
        program_action.sa_handler(number);
    } else {
        struct sigaction fatal = { .sa_handler = SIG_DFL };

        REAL(sigaction)(number, &fatal, NULL); /* the fault comes again at once */
    }
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    int length = 0, saved = errno;
    uint64_t value;

    /* The kernel gives no address with a protection fault of this kind. */
    if (info->si_code == SI_KERNEL)
        length = counter_instruction((const uint8_t *)registers[REG_RIP]);
    if (!length) {
        pass_to_program(number, info, context);
        return;
    }
    value = read_counter();
    registers[REG_RAX] = (uint32_t)value;
    registers[REG_RDX] = value >> 32;
    if (length == 3)
        registers[REG_RCX] = 0; /* processor 0 */
    registers[REG_RIP] += length;
    errno = saved;
}

void tsc_prepare(void)
{
    struct sigaction action = { .sa_sigaction = on_fault,
                                .sa_flags = SA_SIGINFO | SA_NODEFER | SA_RESTART };

    REAL(sigaction)(SIGSEGV, &action, &program_action);
    tsc_trap(true);
}

/* ---- the program's own handling of signals ---- */

EXPORT int sigaction(int number, const struct sigaction *action, struct sigaction *before)
{
    if (!guest_on || number != SIGSEGV)
        return REAL(sigaction)(number, action, before);
    if (before)
        *before = program_action;
    if (action)
        program_action = *action;
    return 0;
}

EXPORT sighandler_t signal(int number, sighandler_t handler)
{
    sighandler_t before = program_action.sa_handler;

    if (!guest_on || number != SIGSEGV)
        return REAL(signal)(number, handler);
    program_action = (struct sigaction){ .sa_handler = handler };
    return before;
}

/* A fault that is blocked ends the process. */
static const sigset_t *without_faults(const sigset_t *set, sigset_t *copy)
{
    if (!set)
        return NULL;
    *copy = *set;
    sigdelset(copy, SIGSEGV);
    sigdelset(copy, SIGTRAP);
    return copy;
}

EXPORT int sigprocmask(int how, const sigset_t *set, sigset_t *before)
{
    sigset_t copy;

    if (guest_on && how != SIG_UNBLOCK)
        set = without_faults(set, &copy);
    return REAL(sigprocmask)(how, set, before);
}

EXPORT int pthread_sigmask(int how, const sigset_t *set, sigset_t *before)
{
    sigset_t copy;

    if (guest_on && how != SIG_UNBLOCK)
        set = without_faults(set, &copy);
    return REAL(pthread_sigmask)(how, set, before);
}
