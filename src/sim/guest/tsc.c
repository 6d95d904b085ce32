/* SPDX-License-Identifier: BSD-2-Clause */
/* The processor's time stamp counter: reading it is made to fault, and the fault handler puts
 * virtual time into the registers, as a counter of 1000 MHz would show it. */
#include "sim/guest/guest.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <ucontext.h>

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

static void on_fault(int number, siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    int length = 0, saved = errno;
    uint64_t value;

    /* The kernel gives no address with a protection fault of this kind. */
    if (info->si_code == SI_KERNEL)
        length = counter_instruction((const uint8_t *)registers[REG_RIP]);
    if (!length) {
        signals_pass_on(number, info, context);
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

    signals_take(SIGSEGV, &action);
    tsc_trap(true);
}
