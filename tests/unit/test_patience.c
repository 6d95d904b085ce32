/* SPDX-License-Identifier: BSD-2-Clause */
/* Time in which a rank gets no core does not count as its silence. */
#include "bench/patience.h"
#include "bench/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define RIVALS  4 /* for one core */
#define TEST_NS 1000000000ull

static void test_lost(void **state)
{
    (void)state;
    assert_int_equal(patience_lost(1000, 0), 0);
    assert_int_equal(patience_lost(1000, 300), 300);
    assert_int_equal(patience_lost(1000, 990), 900);
    assert_int_equal(patience_lost(1000, 5000), 900);
}

static pid_t start_spinning(void)
{
    pid_t child = fork();
    cpu_set_t all, one;

    if (child)
        return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sched_getaffinity(0, sizeof(all), &all);
    CPU_ZERO(&one);
    for (int cpu = 0; !CPU_COUNT(&one); cpu++)
        if (CPU_ISSET(cpu, &all))
            CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof(one), &one);
    for (;;)
        ;
}

static void test_rivals(void **state)
{
    pid_t rivals[RIVALS];
    uint64_t start, since, real, counted;

    (void)state;
    for (int i = 0; i < RIVALS; i++)
        rivals[i] = start_spinning();
    patience_watch(rivals[0]);
    since = patience_now();
    start = monotonic_ns();
    while (monotonic_ns() - start < TEST_NS) {
        usleep(20000);
        patience_now();
    }
    counted = patience_now() - since;
    real = monotonic_ns() - start;
    for (int i = 0; i < RIVALS; i++) {
        kill(rivals[i], SIGKILL);
        waitpid(rivals[i], NULL, 0);
    }
    assert_true(counted < real * 3 / 4);
    assert_true(counted > real / 20);
    assert_false(patience_is_over(patience_now(), TEST_NS));
    patience_forget();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_rivals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
