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

/* The share of a second that counted. */
static double counted_share(void)
{
    uint64_t since = patience_now(), start = monotonic_ns();

    while (monotonic_ns() - start < TEST_NS) {
        usleep(20000);
        patience_now();
    }
    return (double)(patience_now() - since) / (double)(monotonic_ns() - start);
}

/* The kernel tells of a wait when it is over. On a busy machine it may outlast many samples, which
 * then count as run: one second of several must do. */
static void test_rivals(void **state)
{
    pid_t rivals[RIVALS];
    double least = 1;

    (void)state;
    for (int i = 0; i < RIVALS; i++)
        rivals[i] = start_spinning();
    patience_watch(rivals[0]);
    for (int i = 0; i < 20 && least >= 0.75; i++) {
        double share = counted_share();

        least = share < least ? share : least;
    }
    for (int i = 0; i < RIVALS; i++) {
        kill(rivals[i], SIGKILL);
        waitpid(rivals[i], NULL, 0);
    }
    if (least >= 0.75 || least <= 0.05)
        fail_msg("%.2f of the time counted", least);
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
