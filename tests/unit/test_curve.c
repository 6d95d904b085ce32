/* SPDX-License-Identifier: BSD-2-Clause */
/* Where curves cross, level off, step and follow a line: each at a place known in advance, and just
 * on either side of what counts as clear. */
#include "results/advice/curve.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

enum { MOST = 16 };

/* A curve in memory of its own, which nobody frees. */
struct planted {
    double x[MOST], y[MOST], noise[MOST];
    struct curve curve;
};

/* x = first, 2 first, 4 first, ... */
static struct curve *plant(struct planted *p, double first, unsigned int count, const double *y,
                           double noise)
{
    p->curve = (struct curve){ count, p->x, p->y, p->noise, noise == 0 };
    for (unsigned int i = 0; i < count; i++) {
        p->x[i] = first * (1 << i);
        p->y[i] = y[i];
        p->noise[i] = noise;
    }
    return &p->curve;
}

static struct curve *plant_costs(struct planted *p, double (*cost)(double x), bool as_rate,
                                 double noise)
{
    double y[7];

    for (unsigned int i = 0; i < 7; i++)
        y[i] = as_rate ? 1 / cost(16 << i) : cost(16 << i);
    return plant(p, 16, 7, y, noise);
}

/* The gains of the second curve over the first, as logarithms; only the first has noise. */
static struct crossing cross_by_gains(const double *gains, unsigned int count, double noise)
{
    struct planted one, two;
    double flat[MOST], better[MOST];

    for (unsigned int i = 0; i < count; i++) {
        flat[i] = 1;
        better[i] = exp(gains[i]);
    }
    return crossing_find(plant(&one, 1, count, flat, noise), plant(&two, 1, count, better, 0),
                         BETTER_HIGHER);
}

static void near(double value, double wanted)
{
    if (!(fabs(value - wanted) <= 1e-9 * fabs(wanted) + 1e-12))
        fail_msg("%.12g, not %.12g", value, wanted);
}

/* ---- crossings ---- */

static double slow_start(double x)
{
    return 5 + 0.01 * x;
}

static double slow_growth(double x)
{
    return 2 + 0.03 * x;
}

static double constant(double x)
{
    return 2;
}

static double per_block(double x)
{
    return 1 + 150 / x;
}

static void costs_that_grow_cross_at_150(void **state)
{
    static const double noises[] = { 0, 0.001 };

    for (int rate = 0; rate < 2; rate++)
        for (int i = 0; i < 2; i++) {
            struct planted one, two;
            enum better better = rate ? BETTER_HIGHER : BETTER_LOWER;
            struct crossing c =
                crossing_find(plant_costs(&one, slow_growth, rate, noises[i]),
                              plant_costs(&two, slow_start, rate, noises[i]), better);

            assert_int_equal(c.kind, CROSSING_AT);
            assert_int_equal(c.below, 3);
            assert_int_equal(c.above, 4);
            near(c.x, 150);
            c = crossing_find(plant_costs(&one, constant, rate, noises[i]),
                              plant_costs(&two, per_block, rate, noises[i]), better);
            assert_int_equal(c.kind, CROSSING_AT);
            near(c.x, 150);
        }
}

/* Beyond 512 another line holds: exact points there must not move the crossing, and noisy ones are
 * left out because the line no longer fits. */
static double corner(double x)
{
    return x <= 512 ? slow_start(x) : slow_start(512) + 0.029 * (x - 512);
}

static void a_corner_further_away_does_not_move_the_crossing(void **state)
{
    struct planted one, two;
    struct crossing c = crossing_find(plant_costs(&one, slow_growth, false, 0),
                                      plant_costs(&two, corner, false, 0), BETTER_LOWER);

    near(c.x, 150);
    plant_costs(&one, slow_growth, false, 0.001);
    plant_costs(&two, corner, false, 0.001);
    one.curve.count = two.curve.count = 5; /* too few to tell more noise from the points */
    c = crossing_find(&one.curve, &two.curve, BETTER_LOWER);
    near(c.x, 150);
}

/* With too few points for a line on one side, the logarithms of the neighbours decide. */
static void at_the_edge_the_neighbours_decide(void **state)
{
    struct crossing c = cross_by_gains((double[]){ -0.2, 0.1, 0.3 }, 3, 0);

    assert_int_equal(c.kind, CROSSING_AT);
    assert_int_equal(c.below, 0);
    assert_int_equal(c.above, 1);
    near(c.x, pow(2, 2.0 / 3));
    c = cross_by_gains((double[]){ -0.3, -0.2, 0.1 }, 3, 0);
    assert_int_equal(c.below, 1);
    near(c.x, 2 * pow(2, 2.0 / 3));
    c = cross_by_gains((double[]){ -0.2, 0.1 }, 2, 0);
    assert_int_equal(c.kind, CROSSING_NONE);
}

/* Five points: a mean must exceed 4 (1 + 5/5) standard errors. */
static void a_crossing_is_clear_on_both_sides(void **state)
{
    static const double first[] = { -0.1, -0.1, 0.1, 0.1, 0.1 };
    static const double second[] = { -0.1, -0.1, -0.1, 0.1, 0.1 };

    assert_int_equal(cross_by_gains(first, 5, 0.0176).kind, CROSSING_AT);
    assert_int_equal(cross_by_gains(first, 5, 0.0178).kind, CROSSING_NONE);
    assert_int_equal(cross_by_gains(second, 5, 0.0176).kind, CROSSING_AT);
    assert_int_equal(cross_by_gains(second, 5, 0.0178).kind, CROSSING_NONE);
}

static void one_curve_may_always_be_better(void **state)
{
    static const double above[] = { 0.01, 0.1, 0.1, 0.1, 0.19 };
    static const double below[] = { -0.19, -0.1, -0.1, -0.1, -0.01 };
    struct crossing c = cross_by_gains(above, 5, 0.0279);

    assert_int_equal(c.kind, CROSSING_SECOND);
    assert_int_equal(c.below, 1);
    assert_int_equal(c.above, 1);
    near(c.x, 2);
    assert_int_equal(cross_by_gains(above, 5, 0.0281).kind, CROSSING_NONE);
    c = cross_by_gains(below, 5, 0.0279);
    assert_int_equal(c.kind, CROSSING_FIRST);
    assert_int_equal(c.below, 3);
    assert_int_equal(c.above, 3);
    near(c.x, 8);
    assert_int_equal(cross_by_gains(below, 5, 0.0281).kind, CROSSING_NONE);
}

static void a_gain_is_at_least_two_percent(void **state)
{
    static const double enough[] = { 0.021, 0.021, 0.021 }, little[] = { 0.019, 0.019, 0.019 };
    static const double one_point[] = { 0.001, 0.001, 0.001, 0.001, 0.2 };
    struct crossing c = cross_by_gains(enough, 3, 0);

    assert_int_equal(c.kind, CROSSING_SECOND);
    near(c.x, 1);
    assert_int_equal(cross_by_gains(little, 3, 0).kind, CROSSING_NONE);
    assert_int_equal(cross_by_gains(one_point, 5, 0).kind, CROSSING_NONE);
}

/* Six points show their own noise. Third differences of +-d in turn are 8 d; their median gives a
 * standard deviation of 1.4826 * 8 d / sqrt(20). */
static void points_that_jump_are_noisy(void **state)
{
    double gains[6];

    for (int i = 0; i < 2; i++) {
        double deviation = i ? 0.0335 : 0.0333; /* 4 (1 + 5/6) / sqrt(6) of it is 0.1 at 0.03341 */
        double d = deviation * sqrt(20) / 1.4826 / 8;

        for (unsigned int k = 0; k < 6; k++)
            gains[k] = 0.1 + (k % 2 ? d : -d);
        assert_int_equal(cross_by_gains(gains, 6, 1e-6).kind, i ? CROSSING_NONE : CROSSING_SECOND);
    }
}

/* The best of several must exceed 5 (1 + 5/5) standard errors. */
static void a_gain_counts_from_a_size_on(void **state)
{
    static const double flat[] = { 1, 1, 1, 1, 1 };
    double better[5], gain;
    struct planted one, two;

    for (int i = 0; i < 5; i++)
        better[i] = exp(-(i < 2 ? 5 : 0.1 + 0.01 * i));
    plant(&two, 1, 5, better, 0);
    assert_true(crossing_gain(plant(&one, 1, 5, flat, 0.0224), &two.curve, BETTER_LOWER, 4, &gain));
    near(gain, 0.13);
    assert_false(
        crossing_gain(plant(&one, 1, 5, flat, 0.0226), &two.curve, BETTER_LOWER, 4, &gain));
    near(gain, 0.13);
    assert_false(
        crossing_gain(plant(&one, 1, 5, flat, 0.001), &two.curve, BETTER_HIGHER, 4, &gain));
    near(gain, -0.13);
    assert_false(crossing_gain(&one.curve, &two.curve, BETTER_LOWER, 17, &gain));
    near(gain, 0);
}

/* ---- curves ---- */

static void a_curve_is_sorted_and_has_positive_points(void **state)
{
    struct point points[] = {
        { .x = 8, .y = { .median = 4, .low = 3.02, .high = 4.98 } },
        { .x = 0, .y = { .median = 9 } },
        { .x = 2, .y = { .median = 1, .low = 1, .high = 1 } },
        { .x = 4, .y = { .median = 0 } },
        { .x = 8, .y = { .median = 5 } },
        { .x = 1, .y = { .median = 7, .low = 7, .high = 7 } },
    };
    struct series series = { .count = 6, .points = points };
    struct curve curve;

    curve_of(&series, &curve);
    assert_int_equal(curve.count, 3);
    near(curve.x[0], 1);
    near(curve.y[0], 7);
    near(curve.x[1], 2);
    near(curve.x[2], 8);
    assert_true(curve.y[2] == 4 || curve.y[2] == 5);
    assert_false(curve.exact);
    curve_free(&curve);
    series.count = 1;
    curve_of(&series, &curve);
    assert_int_equal(curve.count, 1);
    near(curve.noise[0], 0.125);
    curve_free(&curve);
}

static void curves_match_at_common_points(void **state)
{
    struct planted one, two;
    struct curve *a = plant(&one, 1, 4, (double[]){ 1, 2, 3, 4 }, 0.1);
    struct curve *b = plant(&two, 1, 4, (double[]){ 5, 6, 7, 8 }, 0.2);

    memcpy(two.x, (double[]){ 2, 3, 8, 16 }, 4 * sizeof(double));
    two.noise[2] = 0.3;
    curves_match(a, b);
    assert_int_equal(a->count, 2);
    assert_int_equal(b->count, 2);
    near(a->x[0], 2);
    near(b->x[0], 2);
    near(a->x[1], 8);
    near(b->x[1], 8);
    near(a->y[0], 2);
    near(a->y[1], 4);
    near(b->y[0], 5);
    near(b->y[1], 7);
    near(b->noise[1], 0.3);
}

/* ---- levels ---- */

static bool levels_off(unsigned int count, const double *y, double noise, enum better better,
                       unsigned int *first, double *level)
{
    struct planted p;

    return curve_levels_off(plant(&p, 1, count, y, noise), better, 0.9, first, level);
}

static void a_level_is_the_median_near_the_best(void **state)
{
    static const double y[] = { 10, 50, 92, 96, 98, 100, 98 };
    double times[7], level;
    unsigned int first;

    assert_true(levels_off(7, y, 0, BETTER_HIGHER, &first, &level));
    assert_int_equal(first, 2);
    near(level, 98);
    for (int i = 0; i < 7; i++)
        times[i] = 1 / y[i];
    assert_true(levels_off(7, times, 0, BETTER_LOWER, &first, &level));
    assert_int_equal(first, 2);
    near(level, 1.0 / 98);
}

static void a_level_needs_a_clear_rise_before_it(void **state)
{
    double level;
    unsigned int first;

    assert_true(levels_off(4, (double[]){ 89, 100, 100, 100 }, 0, BETTER_HIGHER, &first, &level));
    assert_int_equal(first, 1);
    assert_false(levels_off(4, (double[]){ 91, 100, 100, 100 }, 0, BETTER_HIGHER, &first, &level));
    assert_true(
        levels_off(4, (double[]){ 50, 100, 100, 100 }, 0.0999, BETTER_HIGHER, &first, &level));
    assert_false(
        levels_off(4, (double[]){ 50, 100, 100, 100 }, 0.1001, BETTER_HIGHER, &first, &level));
    assert_true(
        levels_off(5, (double[]){ 70, 104, 100, 100, 96 }, 0, BETTER_HIGHER, &first, &level));
    assert_false(
        levels_off(5, (double[]){ 90, 104, 100, 100, 96 }, 0, BETTER_HIGHER, &first, &level));
    assert_false(levels_off(4, (double[]){ 10, 10, 10, 100 }, 0, BETTER_HIGHER, &first, &level));
    assert_true(levels_off(3, (double[]){ 10, 100, 100 }, 0, BETTER_HIGHER, &first, &level));
    assert_false(levels_off(2, (double[]){ 10, 100 }, 0, BETTER_HIGHER, &first, &level));
}

/* Deviations of 4% on a level of four points: sqrt(2 * 0.0016 / 4) = 0.0283, five times that 0.141.
 */
static void a_level_of_noise_needs_a_larger_rise(void **state)
{
    double level;
    unsigned int first;

    assert_true(
        levels_off(5, (double[]){ 85.7, 104, 100, 100, 96 }, 0, BETTER_HIGHER, &first, &level));
    assert_false(
        levels_off(5, (double[]){ 86.0, 104, 100, 100, 96 }, 0, BETTER_HIGHER, &first, &level));
}

/* ---- lines ---- */

static void a_line_is_found_between_its_ends(void **state)
{
    struct planted p;
    struct curve *curve = plant(&p, 1, 5, (double[]){ 99, 4, 5, 7, 99 }, 0);
    struct line line;

    assert_true(curve_line(curve, 2, 8, &line));
    near(line.base, 3);
    near(line.slope, 0.5);
    assert_true(line.residual < 1e-9);
    assert_false(curve_line(curve, 2.1, 8, &line));
    assert_false(curve_line(curve, 2, 7.9, &line));
}

/* 1, 3, 2 at 1, 2, 4: the normal equations with weights 1, 1/9 and 1/4 give 66/89 and 33/89. */
static void a_line_weighs_points_by_their_size(void **state)
{
    struct planted p;
    struct line line;
    double base = 66.0 / 89, slope = 33.0 / 89;

    assert_true(curve_line(plant(&p, 1, 3, (double[]){ 1, 3, 2 }, 0), 1, 4, &line));
    near(line.base, base);
    near(line.slope, slope);
    near(line.residual, sqrt((pow(base + slope - 1, 2) + pow((base + 2 * slope) / 3 - 1, 2) +
                              pow((base + 4 * slope) / 2 - 1, 2)) /
                             3));
}

/* ---- steps ---- */

static bool steps(unsigned int count, const double *y, double noise, struct step *step)
{
    struct planted p;

    return step_find(plant(&p, 1, count, y, noise), step);
}

static void a_step_has_a_corner_and_two_levels(void **state)
{
    struct step step;

    assert_true(steps(11, (double[]){ 5, 5, 5, 5, 5, 5, 5, 7, 7, 7, 7 }, 0, &step));
    near(step.corner, 64);
    assert_int_equal(step.last_low, 6);
    near(step.low, 5);
    near(step.high, 7);
    assert_true(steps(5, (double[]){ 5, 5, 7, 7, 7 }, 0, &step));
    near(step.corner, 2);
    assert_int_equal(step.last_low, 1);
    assert_true(steps(5, (double[]){ 5, 5, 5, 7, 7 }, 0, &step));
    near(step.corner, 4);
    assert_false(steps(4, (double[]){ 5, 5, 7, 7 }, 0, &step));
}

static void a_cache_with_random_accesses_ends_between_points(void **state)
{
    double y[11], size = 32 * sqrt(2);
    struct step step;

    for (int i = 0; i < 11; i++)
        y[i] = 5 + 4 * fmax(0, 1 - size / (1 << i));
    assert_true(steps(11, y, 0, &step));
    near(step.corner, size);
    assert_int_equal(step.last_low, 5);
    near(step.low, 5);
    near(step.high, 9);
}

static void a_small_or_noisy_rise_is_no_step(void **state)
{
    static const double seven[] = { 5, 5, 5, 5, 7, 7, 7, 7 };
    struct step step;

    assert_true(steps(8, (double[]){ 5, 5, 5, 5, 5.26, 5.26, 5.26, 5.26 }, 0, &step));
    assert_false(steps(8, (double[]){ 5, 5, 5, 5, 5.24, 5.24, 5.24, 5.24 }, 0, &step));
    assert_true(steps(8, seven, 0.0672, &step)); /* log(7/5) is five times 0.0673 */
    assert_false(steps(8, seven, 0.0674, &step));
    assert_false(steps(8, (double[]){ 7, 7, 7, 7, 5, 5, 5, 5 }, 0, &step));
}

static void a_line_is_no_step(void **state)
{
    double line[8], logarithm[8];
    struct step step;

    for (int i = 0; i < 8; i++) {
        line[i] = 5 + 0.1 * (1 << i);
        logarithm[i] = 5 + i;
    }
    assert_false(steps(8, line, 0, &step));
    assert_false(steps(8, logarithm, 0, &step));
}

static void one_outlier_is_no_step(void **state)
{
    struct step step;

    assert_false(steps(8, (double[]){ 5, 5, 5, 5, 5, 5, 5, 7 }, 0, &step));
    assert_false(steps(8, (double[]){ 5, 7, 7, 7, 7, 7, 7, 7 }, 0, &step));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(costs_that_grow_cross_at_150),
        cmocka_unit_test(a_corner_further_away_does_not_move_the_crossing),
        cmocka_unit_test(at_the_edge_the_neighbours_decide),
        cmocka_unit_test(a_crossing_is_clear_on_both_sides),
        cmocka_unit_test(one_curve_may_always_be_better),
        cmocka_unit_test(a_gain_is_at_least_two_percent),
        cmocka_unit_test(points_that_jump_are_noisy),
        cmocka_unit_test(a_gain_counts_from_a_size_on),
        cmocka_unit_test(a_curve_is_sorted_and_has_positive_points),
        cmocka_unit_test(curves_match_at_common_points),
        cmocka_unit_test(a_level_is_the_median_near_the_best),
        cmocka_unit_test(a_level_needs_a_clear_rise_before_it),
        cmocka_unit_test(a_level_of_noise_needs_a_larger_rise),
        cmocka_unit_test(a_line_is_found_between_its_ends),
        cmocka_unit_test(a_line_weighs_points_by_their_size),
        cmocka_unit_test(a_step_has_a_corner_and_two_levels),
        cmocka_unit_test(a_cache_with_random_accesses_ends_between_points),
        cmocka_unit_test(a_small_or_noisy_rise_is_no_step),
        cmocka_unit_test(a_line_is_no_step),
        cmocka_unit_test(one_outlier_is_no_step),
    };

    return cmocka_run_group_tests_name("curve", tests, NULL, NULL);
}
