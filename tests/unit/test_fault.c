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

/* cmocka has handlers of its own: only a child is without them. */
static int end_of_child(void (*body)(void))
{
    pid_t child = fork();
    int status;

    if (!child) {
        signal(SIGSEGV, exit_7);
        if (fault_init())
            _exit(3);
        body();
        _exit(4);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_access_is_given_up),
        cmocka_unit_test(signals_may_be_blocked),
        cmocka_unit_test(other_faults_are_the_programs),
    };

    pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED || mprotect(pages + PAGE, PAGE, PROT_NONE))
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
