/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/fault.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>

static const int numbers[] = { SIGSEGV, SIGBUS };
static struct sigaction before[2];

struct attempt {
    uintptr_t start, length;
    jmp_buf escape;
};

static _Thread_local struct attempt *current __attribute__((tls_model("initial-exec")));
static _Thread_local bool unblocked __attribute__((tls_model("initial-exec")));

static void forward(int number, siginfo_t *info, void *context)
{
    const struct sigaction *action = &before[number == SIGBUS];

    if (action->sa_flags & SA_SIGINFO) {
        action->sa_sigaction(number, info, context);
    } else if (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN) {
        action->sa_handler(number);
    } else if (action->sa_handler == SIG_DFL || info->si_code > 0) {
        signal(number, SIG_DFL); /* the fault recurs at once */
        if (info->si_code <= 0)
            raise(number);
    }
}

static void handle(int number, siginfo_t *info, void *context)
{
    struct attempt *attempt = current;

    if (attempt && info->si_code > 0 &&
        (uintptr_t)info->si_addr - attempt->start < attempt->length) {
        current = NULL;
        longjmp(attempt->escape, 1);
    }
    forward(number, info, context);
}

int fault_init(void)
{
    static atomic_bool done;
    /* We leave the handler by a jump, so no signal may be blocked in it; the program's own handler
     * may need its own stack, if that of the thread has overflowed. */
    struct sigaction action = { .sa_sigaction = handle,
                                .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK };

    if (atomic_exchange(&done, true))
        return 0;
    for (int i = 0; i < 2; i++)
        if (sigaction(numbers[i], &action, &before[i]))
            return errno;
    return 0;
}

/* A fault whose signal is blocked kills the process. */
static void unblock(void)
{
    sigset_t set;

    sigemptyset(&set);
    for (int i = 0; i < 2; i++)
        sigaddset(&set, numbers[i]);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    unblocked = true;
}

bool fault_survive(const void *memory, size_t length, void (*access)(void *context), void *context)
{
    struct attempt attempt; /* without an initializer, which would fill the buffer with zeros */

    attempt.start = (uintptr_t)memory;
    attempt.length = length;
    if (__builtin_expect(!unblocked, 0))
        unblock();
    if (_setjmp(attempt.escape))
        return false;
    current = &attempt;
    atomic_signal_fence(memory_order_seq_cst);
    access(context);
    atomic_signal_fence(memory_order_seq_cst);
    current = NULL;
    return true;
}
