/* SPDX-License-Identifier: BSD-2-Clause */
/* The rate of a QP under DCQCN, step by step, against the equations of the paper (Zhu and others,
 * SIGCOMM 2015, section 3.1) with its parameters on its link of 40 Gbit/s. */
#include "sim/model/dcqcn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#define LINE 5.0 /* bytes per ns */
#define US   1000ull

static const struct parameters paper = {
    .link = { .rate = LINE },
    .dcqcn = { .enabled = true,
               .cnp_interval = 50 * US,
               .alpha_interval = 55 * US,
               .g = 1.0 / 256,
               .timer = 55 * US,
               .byte_counter = 10 << 20,
               .f = 5,
               .rai = 0.005,
               .rhai = 0.05,
               .min_rate = 0.00125 },
};

static void expect(double value, double wanted)
{
    if (fabs(value - wanted) > 1e-9 * fabs(wanted))
        fail_msg("%.12g instead of %.12g", value, wanted);
}

static void test_no_limit_before_a_cnp(void **state)
{
    struct dcqcn flow = { 0 };

    dcqcn_sent(&flow, &paper, 1000, 4096);
    assert_false(dcqcn_waits(&flow, 1000));
}

/* Alpha begins with 1, so the first CNPs halve the rate; R_T is the rate before the cut. */
static void test_cut(void **state)
{
    struct dcqcn flow = { 0 };

    dcqcn_cut(&flow, &paper, 0);
    expect(flow.current_rate, LINE / 2);
    expect(flow.target_rate, LINE);
    expect(flow.alpha, 1);
    dcqcn_cut(&flow, &paper, 50 * US);
    expect(flow.current_rate, LINE / 4);
    expect(flow.target_rate, LINE / 2);
}

/* alpha = (1 - g) alpha after each 55 us without a CNP: down to 1/e in 256 * 55 us = 14 ms. */
static void test_alpha_decays(void **state)
{
    for (int steps = 1; steps <= 256; steps *= 16) {
        struct dcqcn flow = { 0 };

        dcqcn_cut(&flow, &paper, 0);
        dcqcn_advance(&flow, &paper, steps * 55 * US - 1);
        expect(flow.alpha, pow(255.0 / 256, steps - 1));
        dcqcn_advance(&flow, &paper, steps * 55 * US);
        expect(flow.alpha, pow(255.0 / 256, steps));
    }
}

/* The cut factor is 1 - alpha / 2, and alpha then moves towards 1 by g. */
static void test_cut_by_alpha(void **state)
{
    struct dcqcn flow = { 0 };
    double alpha = pow(255.0 / 256, 100), rate;

    dcqcn_cut(&flow, &paper, 0);
    dcqcn_advance(&flow, &paper, 100 * 55 * US);
    rate = flow.current_rate;
    dcqcn_cut(&flow, &paper, 100 * 55 * US);
    expect(flow.current_rate, rate * (1 - alpha / 2));
    expect(flow.alpha, (1 - 1.0 / 256) * alpha + 1.0 / 256);
}

/* Fast recovery halves the distance to the target F times: 31/32 of a cut are made good in 275 us. */
static void test_fast_recovery_by_timer(void **state)
{
    struct dcqcn flow = { 0 };

    dcqcn_cut(&flow, &paper, 0);
    for (int step = 1; step <= 5; step++) {
        dcqcn_advance(&flow, &paper, step * 55 * US);
        expect(flow.target_rate, LINE);
        expect(flow.current_rate, LINE - LINE / 2 / (1 << step));
    }
}

/* Then the target rises by R_AI each time, here from half of the line rate on. */
static void test_additive_increase(void **state)
{
    struct dcqcn flow = { 0 };
    double current, target;

    dcqcn_cut(&flow, &paper, 0);
    dcqcn_cut(&flow, &paper, 0);
    dcqcn_advance(&flow, &paper, 5 * 55 * US);
    current = flow.current_rate;
    target = flow.target_rate;
    expect(target, LINE / 2);
    for (int step = 6; step <= 8; step++) {
        dcqcn_advance(&flow, &paper, step * 55 * US);
        target += 0.005;
        current = (current + target) / 2;
        expect(flow.target_rate, target);
        expect(flow.current_rate, current);
    }
}

/* The byte counter takes the same steps, and both together lead to hyper increase. */
static void test_byte_counter(void **state)
{
    struct dcqcn flow = { 0 };

    dcqcn_cut(&flow, &paper, 0);
    dcqcn_cut(&flow, &paper, 0);
    dcqcn_sent(&flow, &paper, 1, (10 << 20) - 1);
    expect(flow.current_rate, LINE / 4);
    dcqcn_sent(&flow, &paper, 2, 1);
    expect(flow.current_rate, LINE / 2 - LINE / 8);
    for (int step = 2; step <= 6; step++)
        dcqcn_sent(&flow, &paper, 2, 10 << 20);
    expect(flow.target_rate, LINE / 2 + 0.005);
    dcqcn_advance(&flow, &paper, 6 * 55 * US);
    /* five of the six expirations of the timer found six of the byte counter: additive */
    expect(flow.target_rate, LINE / 2 + 0.005 + 5 * 0.005 + 0.05);
}

static void test_bounds(void **state)
{
    struct dcqcn flow = { 0 };

    for (int i = 0; i < 100; i++)
        dcqcn_cut(&flow, &paper, 0);
    expect(flow.current_rate, 0.00125);
    dcqcn_advance(&flow, &paper, 1000000 * US);
    expect(flow.target_rate, LINE);
    assert_true(flow.current_rate <= LINE);
}

/* Packets leave at the current rate, also if one of them was late. */
static void test_pace(void **state)
{
    struct dcqcn flow = { 0 };

    dcqcn_cut(&flow, &paper, 0);
    dcqcn_sent(&flow, &paper, 0, 1000);
    assert_int_equal(flow.send_at, 400);
    assert_true(dcqcn_waits(&flow, 399));
    assert_false(dcqcn_waits(&flow, 400));
    dcqcn_sent(&flow, &paper, 450, 1000);
    assert_int_equal(flow.send_at, 800);
    dcqcn_sent(&flow, &paper, 5000, 1000);
    assert_int_equal(flow.send_at, 5400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_limit_before_a_cnp), cmocka_unit_test(test_cut),
        cmocka_unit_test(test_alpha_decays),          cmocka_unit_test(test_cut_by_alpha),
        cmocka_unit_test(test_fast_recovery_by_timer), cmocka_unit_test(test_additive_increase),
        cmocka_unit_test(test_byte_counter),          cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_pace),
    };

    return cmocka_run_group_tests_name("dcqcn", tests, NULL, NULL);
}
