/* SPDX-License-Identifier: BSD-2-Clause */
/* The time stamp counter: reading it faults, and the handler returns virtual time as a 1000 MHz
 * counter would show it. */
#include "sim/guest/guest.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <ucontext.h>

void tsc_trap(bool trap)
{
    prctl(PR_SET_TSC, trap ? PR_TSC_SIGSEGV : PR_TSC_ENABLE, 0, 0, 0);
}

/* The length of an rdtsc or rdtscp instruction, else 0. */
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

    if (!guest_on || guest_bypass)
        return guest_on ? vsched->now() : 0;
    guest_enter();
    vsched->charge_clock_read(CLOCK_CALL_NS);
    now = vsched->now();
    guest_leave();
    return now;
}

/* Memory that the checks had taken away is given back. */
static bool is_given_back(const siginfo_t *info, greg_t pc)
{
    bool known;

    guest_bypass++;
    known = info->si_code == SEGV_ACCERR && vsched->memory_touched(info->si_addr, 1, (void *)pc);
    guest_bypass--;
    return known;
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    int length = 0, saved = errno;
    uint64_t value;

    /* A general protection fault comes without an address. */
    if (info->si_code == SI_KERNEL)
        length = counter_instruction((const uint8_t *)registers[REG_RIP]);
    if (!length) {
        if (!is_given_back(info, registers[REG_RIP]))
            signals_forward(number, info, context);
        errno = saved;
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

    signals_install(SIGSEGV, &action);
    tsc_trap(true);
    vsched->see_faults();
}
