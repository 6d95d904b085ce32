/* SPDX-License-Identifier: BSD-2-Clause */
#include "util/fault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096

static char *pages; /* the second cannot be accessed */

static void fill_both(void *context)
{
    memset(context, 1, 2 * PAGE);
}

static void fill_one(void *context)
{
    memset(context, 1, PAGE);
}

static void give_up(void)
{
    for (int i = 0; i < 3; i++)
        if (fault_survive(pages, 2 * PAGE, fill_both, pages))
            _exit(1);
    _exit(fault_survive(pages, PAGE, fill_one, pages) && pages[PAGE - 1] == 1 ? 0 : 2);
}

static void *block_and_access(void *result)
{
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    *(bool *)result = fault_survive(pages, 2 * PAGE, fill_both, pages);
    return NULL;
}

static void give_up_with_blocked_signals(void)
{
    bool result = true;
    pthread_t thread;

    if (pthread_create(&thread, NULL, block_and_access, &result) || pthread_join(thread, NULL))
        _exit(1);
    _exit(result ? 2 : 0);
}

static void fault_elsewhere(void)
{
    fault_survive(pages, PAGE, fill_both, pages);
}

static void fault_outside(void)
{
    *(volatile char *)(pages + PAGE) = 1;
}

static void exit_7(int number)
{
    _exit(7);
}

static void exit_8(int number, siginfo_t *info, void *context)
{
    _exit(number == SIGSEGV && info->si_addr == pages + PAGE ? 8 : 1);
}

static void exit_9(int number)
{
    _exit(9);
}

static void raise_segv(void)
{
    raise(SIGSEGV);
}

static void raise_bus(void)
{
    raise(SIGBUS);
}

/* cmocka has handlers of its own: only a child is without them. Returns its exit status, or minus
 * the signal that ended it. */
static int end_of_child_with(const struct sigaction *action, void (*body)(void))
{
    pid_t child = fork();
    int status;

    if (!child) {
        sigaction(SIGSEGV, action, NULL);
        signal(SIGBUS, exit_9);
        if (fault_init())
            _exit(3);
        body();
        _exit(4);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static int end_of_child(void (*body)(void))
{
    return end_of_child_with(&(struct sigaction){ .sa_handler = exit_7 }, body);
}

static void an_access_is_given_up(void **state)
{
    assert_int_equal(end_of_child(give_up), 0);
}

static void signals_may_be_blocked(void **state)
{
    assert_int_equal(end_of_child(give_up_with_blocked_signals), 0);
}

static void other_faults_are_the_programs(void **state)
{
    assert_int_equal(end_of_child(fault_elsewhere), 7);
    assert_int_equal(end_of_child(fault_outside), 7);
}

static void the_program_has_its_own_ways(void **state)
{
    const struct sigaction told = { .sa_sigaction = exit_8, .sa_flags = SA_SIGINFO };
    const struct sigaction defaults = { .sa_handler = SIG_DFL }, ignores = { .sa_handler = SIG_IGN };

    assert_int_equal(end_of_child_with(&told, fault_outside), 8);
    assert_int_equal(end_of_child_with(&defaults, fault_outside), -SIGSEGV);
    assert_int_equal(end_of_child_with(&defaults, raise_segv), -SIGSEGV);
    assert_int_equal(end_of_child_with(&ignores, fault_outside), -SIGSEGV);
    assert_int_equal(end_of_child_with(&ignores, raise_segv), 4); /* it goes on */
    assert_int_equal(end_of_child(raise_segv), 7);
    assert_int_equal(end_of_child(raise_bus), 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_access_is_given_up),
        cmocka_unit_test(signals_may_be_blocked),
        cmocka_unit_test(other_faults_are_the_programs),
        cmocka_unit_test(the_program_has_its_own_ways),
    };

    pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || mprotect(pages + PAGE, PAGE, PROT_NONE))
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
