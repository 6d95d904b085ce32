/* SPDX-License-Identifier: BSD-2-Clause */
/* The talk between the processes of an experiment, over socket pairs, with threads for ranks. */
#include "bench/control.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define RANKS 3
#define BIG   (1u << 20) /* more than a socket holds */

static struct control controls[RANKS];
static pthread_t threads[RANKS];
static char big[RANKS][RANKS * BIG];

static int set_up(void **state)
{
    memset(controls, 0, sizeof(controls));
    for (int i = 0; i < RANKS; i++) {
        controls[i].rank = i;
        controls[i].ranks = RANKS;
        controls[i].timeout_s = 1;
    }
    for (int i = 1; i < RANKS; i++) {
        int pair[2];

        if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
            return -1;
        controls[0].fd[i] = pair[0];
        controls[i].fd[0] = pair[1];
    }
    return 0;
}

static int tear_down(void **state)
{
    for (int i = 1; i < RANKS; i++) {
        close(controls[0].fd[i]);
        if (controls[i].fd[0] >= 0)
            close(controls[i].fd[0]);
    }
    return 0;
}

static void start(void *(*body)(void *))
{
    for (int i = 1; i < RANKS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, body, &controls[i]), 0);
}

static void join(void)
{
    for (int i = 1; i < RANKS; i++)
        pthread_join(threads[i], NULL);
}

static void hang_up(struct control *control)
{
    close(control->fd[0]);
    control->fd[0] = -1;
}

static void *exchange_body(void *argument)
{
    struct control *control = argument;
    uint32_t mine = 100 + control->rank, all[RANKS];
    int status = 0;

    for (int i = 0; i < 100 && !status; i++) {
        status = control_exchange(control, &mine, sizeof(mine), all);
        for (int k = 0; k < RANKS; k++)
            status |= all[k] != 100u + k;
    }
    status |= control_exchange(control, NULL, 0, NULL);
    memset(big[control->rank], control->rank + 1, BIG);
    status |= control_exchange(control, big[control->rank], BIG, big[control->rank]);
    for (int k = 0; k < RANKS; k++)
        status |= big[control->rank][k * BIG + BIG - 1] != k + 1;
    control_end(control);
    return (void *)(intptr_t)status;
}

static void test_exchange(void **state)
{
    start(exchange_body);
    assert_null(exchange_body(&controls[0]));
    for (int i = 1; i < RANKS; i++) {
        void *status;

        pthread_join(threads[i], &status);
        assert_null(status);
    }
    assert_int_equal(controls[0].status, CONTROL_OK);
}

static void *fail_body(void *argument)
{
    struct control *control = argument;

    if (control->rank == 2)
        control_fail(control, CONTROL_SKIPPED, "process 2: no atomics");
    control_exchange(control, NULL, 0, NULL);
    control_end(control);
    return NULL;
}

static void test_failure_is_passed_on(void **state)
{
    start(fail_body);
    assert_int_equal(control_exchange(&controls[0], NULL, 0, NULL), -1);
    control_end(&controls[0]);
    join();
    for (int i = 0; i < RANKS; i++) {
        assert_int_equal(controls[i].status, CONTROL_SKIPPED);
        assert_string_equal(controls[i].text, "process 2: no atomics");
    }
}

static void *watch_body(void *argument)
{
    struct control *control = argument;

    while (!control_check(control))
        usleep(1000);
    control_end(control);
    return NULL;
}

static void test_watch_sees_failure(void **state)
{
    start(watch_body);
    control_fail(&controls[0], CONTROL_FAILED, "the device is gone");
    control_end(&controls[0]);
    join();
    assert_string_equal(controls[1].text, "the device is gone");
    assert_int_equal(control_check(&controls[0]), -1);
}

static void test_watch_is_quiet(void **state)
{
    assert_int_equal(control_check(&controls[0]), 0);
    assert_int_equal(control_check(&controls[1]), 0);
}

static void *leave_body(void *argument)
{
    struct control *control = argument;

    if (control->rank == 1) {
        hang_up(control);
        return NULL;
    }
    control_exchange(control, NULL, 0, NULL);
    control_end(control);
    return NULL;
}

static void test_end_of_file(void **state)
{
    start(leave_body);
    assert_int_equal(control_exchange(&controls[0], NULL, 0, NULL), -1);
    control_end(&controls[0]);
    join();
    assert_int_equal(controls[0].status, CONTROL_FAILED);
    assert_string_equal(controls[0].text, "lost process 1");
    assert_string_equal(controls[2].text, "lost process 1");
}

/* What it said before does not hide that a process has died. */
static void test_watch_sees_death_behind_data(void **state)
{
    send(controls[1].fd[0], "something that is no failure", 28, 0);
    hang_up(&controls[1]);
    assert_int_equal(control_check(&controls[0]), -1);
    assert_string_equal(controls[0].text, "lost process 1");
}

static void *disagree_body(void *argument)
{
    struct control *control = argument;
    uint64_t mine = 0, all[RANKS];

    control_exchange(control, &mine, control->rank == 1 ? 8 : 4, all);
    control_end(control);
    return NULL;
}

static void test_disagreement(void **state)
{
    uint32_t mine = 0, all[RANKS];

    start(disagree_body);
    assert_int_equal(control_exchange(&controls[0], &mine, sizeof(mine), all), -1);
    control_end(&controls[0]);
    join();
    assert_string_equal(controls[0].text, "protocol error: the processes of the experiment are out of step");
    assert_string_equal(controls[2].text, controls[0].text);
}

static void test_silence(void **state)
{
    assert_int_equal(control_exchange(&controls[0], NULL, 0, NULL), -1);
    assert_string_equal(controls[0].text, "no message from process 1 for 1 s");
}

static bool always(void)
{
    return true;
}

static void test_interrupt(void **state)
{
    controls[0].stopped = always;
    assert_int_equal(control_exchange(&controls[0], NULL, 0, NULL), -1);
    assert_int_equal(controls[0].status, CONTROL_INTERRUPTED);
    assert_int_equal(control_check(&controls[2]), -1);
    assert_int_equal(controls[2].status, CONTROL_INTERRUPTED);
    controls[1].stopped = always;
    assert_int_equal(control_exchange(&controls[1], NULL, 0, NULL), -1);
    assert_string_equal(controls[1].text, "process 1: interrupted");
}

static void *refuse_body(void *argument)
{
    struct control *control = argument;
    char handshake[64];

    if (!control_receive_handshake(control->fd[0], 1, handshake, sizeof(handshake)) &&
        !strcmp(handshake, "hello"))
        control_reply_handshake(control->fd[0], control->rank == 2 ? "not today" : NULL);
    return NULL;
}

static void test_handshake(void **state)
{
    start(refuse_body);
    assert_int_equal(control_handshake(&controls[0], 1, "hello"), 0);
    assert_int_equal(control_handshake(&controls[0], 2, "hello"), -1);
    join();
    assert_string_equal(controls[0].text, "not today");
}

static void test_handshake_with_stranger(void **state)
{
    char handshake[64];

    send(controls[1].fd[0], "HTTP/1.0 400 Bad Request\r\n\r\n", 28, 0);
    assert_int_equal(control_handshake(&controls[0], 1, "hello"), -1);
    assert_string_equal(controls[0].text, "the peer is not 'verbena bench'");
    send(controls[0].fd[2], "GET / HTTP/1.0\r\n\r\n", 18, 0);
    assert_int_equal(control_receive_handshake(controls[2].fd[0], 1, handshake, sizeof(handshake)), -1);
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EACH(test_exchange),
        EACH(test_failure_is_passed_on),
        EACH(test_watch_sees_failure),
        EACH(test_watch_is_quiet),
        EACH(test_end_of_file),
        EACH(test_watch_sees_death_behind_data),
        EACH(test_disagreement),
        EACH(test_silence),
        EACH(test_interrupt),
        EACH(test_handshake),
        EACH(test_handshake_with_stranger),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
