/* SPDX-License-Identifier: BSD-2-Clause */
/* Signals that this library uses itself. A program may set actions for them, too: it reads back
 * what it has set, and its handler runs for signals that are not ours. */
#include "sim/guest/guest.h"

static struct {
    int number;
    struct sigaction program;
} shared[] = { { .number = SIGSEGV }, { .number = SIGTRAP }, { .number = 0 } };

#define WATCH_INDEX 2 /* SIGRTMAX is not a constant */

static struct sigaction *program_action(int number)
{
    for (size_t i = 0; i < sizeof(shared) / sizeof(*shared); i++) {
        if (shared[i].number == number)
            return &shared[i].program;
    }
    return NULL;
}

void signals_install(int number, const struct sigaction *action)
{
    struct sigaction before;

    shared[WATCH_INDEX].number = WATCH_SIGNAL;
    REAL(sigaction)(number, action, &before);
    /* A forked child inherits the handler. */
    if (before.sa_sigaction != action->sa_sigaction)
        *program_action(number) = before;
}

void signals_forward(int number, siginfo_t *info, void *context)
{
    const struct sigaction *program = program_action(number);

    if (program->sa_flags & SA_SIGINFO) {
        program->sa_sigaction(number, info, context);
    } else if (program->sa_handler != SIG_DFL && program->sa_handler != SIG_IGN) {
        program->sa_handler(number);
    } else if (program->sa_handler == SIG_DFL || info->si_code > 0) {
        struct sigaction fatal = { .sa_handler = SIG_DFL };

        REAL(sigaction)(number, &fatal, NULL); /* the fault recurs at once */
        if (info->si_code <= 0)
            raise(number);
    }
}

EXPORT int sigaction(int number, const struct sigaction *action, struct sigaction *before)
{
    struct sigaction *program = guest_on ? program_action(number) : NULL;

    if (!program)
        return REAL(sigaction)(number, action, before);
    if (before)
        *before = *program;
    if (action)
        *program = *action;
    return 0;
}

EXPORT sighandler_t signal(int number, sighandler_t handler)
{
    struct sigaction *program = guest_on ? program_action(number) : NULL;
    sighandler_t before;

    if (!program)
        return REAL(signal)(number, handler);
    before = program->sa_handler;
    *program = (struct sigaction){ .sa_handler = handler };
    return before;
}

/* A blocked fault kills the process, and a thread that cannot be watched may spin forever. */
static const sigset_t *without_shared(const sigset_t *set, sigset_t *copy)
{
    if (!set)
        return NULL;
    *copy = *set;
    for (size_t i = 0; i < sizeof(shared) / sizeof(*shared); i++)
        sigdelset(copy, shared[i].number);
    return copy;
}

EXPORT int sigprocmask(int how, const sigset_t *set, sigset_t *before)
{
    sigset_t copy;

    if (guest_on && how != SIG_UNBLOCK)
        set = without_shared(set, &copy);
    return REAL(sigprocmask)(how, set, before);
}

EXPORT int pthread_sigmask(int how, const sigset_t *set, sigset_t *before)
{
    sigset_t copy;

    if (guest_on && how != SIG_UNBLOCK)
        set = without_shared(set, &copy);
    return REAL(pthread_sigmask)(how, set, before);
}
