/* SPDX-License-Identifier: BSD-2-Clause */
/* Comparing two runs: made-up rounds of known noise, from fixed seeds. */
#include "results/compare.h"
#include "results/permutation.h"
#include "results/rounds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define POINTS 40
#define ROUNDS 5
#define PAIRS  300

static uint64_t state;

static double uniform(void)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (double)((state >> 11) + 1) * 0x1p-53;
}

static double normal(void)
{
    return sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform());
}

/* Every round is faster or slower as a whole; one value in 20 is an outlier. */
struct noise {
    double of_round, of_point, of_outlier;
};

static const struct noise quiet = { 0.005, 0.01, 0 };
static const struct noise wild = { 0.1, 0.05, 1 };

/* Points 0 to 'changed' - 1 take 'factor' times as long. */
static struct results *make_run(unsigned int rounds, const struct noise *noise,
                                unsigned int changed, double factor)
{
    struct results *results = results_new("0", "2026-01-02T03:04:05Z", "verbena bench latency");
    struct experiment_result *result = results_add(results, "latency", "basic", "How long?", "");
    struct series *series =
        result_series(result, "send", "latency", "us", "size", "B", BETTER_LOWER);
    struct summary y;

    for (unsigned int i = 0; i < POINTS; i++) {
        double value = (1 + i) * (i < changed ? factor : 1);

        histogram_of_values(&value, 1, &y);
        results_series_add(series, i, &y);
    }
    for (unsigned int k = 0; k < rounds && noise; k++) {
        double round = noise->of_round * normal();

        for (unsigned int i = 0; i < POINTS; i++) {
            struct point *point = &series->points[i];
            double outlier = uniform() < 0.05 ? noise->of_outlier * uniform() : 0;

            results_point_add_round(point, point->y.median *
                                               exp(round + outlier + noise->of_point * normal()));
        }
    }
    return results;
}

static struct comparison compare(struct results *a, struct results *b)
{
    struct comparison comparison;
    char error[256];

    assert_int_equal(results_compare(a, b, NAN, &comparison, error, sizeof(error)), 0);
    assert_int_equal(comparison.count, POINTS);
    return comparison;
}

static unsigned int changes_of(const struct comparison *comparison)
{
    return comparison->count - comparison->tally[CHANGE_SAME] - comparison->tally[CHANGE_UNDECIDED];
}

static void free_all(struct comparison *comparison, struct results *a, struct results *b)
{
    compare_free(comparison);
    results_free(a);
    results_free(b);
}

/* At most one in so many, and three standard deviations of such a count. */
static void equal_runs_are_equal(void **unused)
{
    static const struct noise *const noises[] = { &quiet, &wild };

    for (size_t n = 0; n < sizeof(noises) / sizeof(*noises); n++) {
        unsigned int alarms = 0;

        state = 1;
        for (unsigned int i = 0; i < PAIRS; i++) {
            struct results *a = make_run(ROUNDS, noises[n], 0, 1);
            struct results *b = make_run(ROUNDS, noises[n], 0, 1);
            struct comparison comparison = compare(a, b);

            assert_int_equal(comparison.method, COMPARE_PERMUTATION);
            alarms += changes_of(&comparison) != 0;
            free_all(&comparison, a, b);
        }
        assert_true(alarms <= PAIRS * PERMUTATION_ALPHA +
                                  3 * sqrt(PAIRS * PERMUTATION_ALPHA * (1 - PERMUTATION_ALPHA)));
    }
}

static void planted_changes_are_found(void **unused)
{
    state = 2;
    for (unsigned int i = 0; i < 20; i++) {
        struct results *a = make_run(ROUNDS, &quiet, 0, 1);
        struct results *b = make_run(ROUNDS, &quiet, 3, 1.1);
        struct comparison comparison = compare(a, b);

        for (unsigned int k = 0; k < 3; k++) {
            assert_int_equal(comparison.points[k].change, CHANGE_WORSE);
            assert_true(comparison.points[k].detectable < 0.1);
        }
        assert_int_equal(comparison.tally[CHANGE_BETTER], 0);
        free_all(&comparison, a, b);
    }
}

/* What is announced as detectable is found, and what is far below it is not. */
static void detectable_is_what_it_says(void **unused)
{
    struct results *a, *b;
    struct comparison comparison;
    double detectable, level;

    state = 3;
    a = make_run(8, &wild, 0, 1);
    b = make_run(8, &wild, 0, 1);
    comparison = compare(a, b);
    detectable = comparison.points[5].detectable;
    level = comparison.points[5].a_value / comparison.points[5].b_value;
    assert_true(detectable > 0.1 && detectable < 2);
    compare_free(&comparison);
    for (unsigned int i = 0; i < 8; i++)
        b->experiments[0].series[0].points[5].rounds[i] *= (1 + detectable) * 1.2 * level;
    comparison = compare(a, b);
    assert_int_equal(comparison.points[5].change, CHANGE_WORSE);
    free_all(&comparison, a, b);
}

static void few_rounds_decide_nothing(void **unused)
{
    static const unsigned int few[][2] = { { 0, 0 }, { 1, 9 }, { 3, 3 }, { 2, 4 }, { 4, 4 } };

    for (size_t i = 0; i < sizeof(few) / sizeof(*few); i++) {
        struct results *a = make_run(few[i][0], &quiet, 0, 1);
        struct results *b = make_run(few[i][1], &quiet, POINTS, 3);
        struct comparison comparison = compare(a, b);

        assert_int_equal(comparison.method, COMPARE_NOTHING);
        assert_int_equal(comparison.tally[CHANGE_UNDECIDED], POINTS);
        free_all(&comparison, a, b);
    }
}

static void a_run_equals_itself(void **unused)
{
    struct results *a = make_run(ROUNDS, &wild, 0, 1);
    struct comparison comparison = compare(a, a);

    assert_int_equal(comparison.tally[CHANGE_SAME], POINTS);
    free_all(&comparison, a, NULL);
    a = make_run(0, NULL, 0, 1);
    comparison = compare(a, a);
    assert_int_equal(comparison.tally[CHANGE_SAME], POINTS);
    free_all(&comparison, a, NULL);
}

/* In a disturbed round everything takes twice as long. */
static void disturbed_rounds_are_left_out(void **unused)
{
    struct results *a = make_run(6, &quiet, 0, 1), *b = make_run(6, &quiet, 0, 1);
    struct comparison comparison;

    for (unsigned int i = 0; i < 6; i++) {
        results_add_load(a, 0.01);
        results_add_load(b, i < 2 ? 0.5 : 0.01);
    }
    for (unsigned int i = 0; i < POINTS; i++) {
        b->experiments[0].series[0].points[i].rounds[0] *= 2;
        b->experiments[0].series[0].points[i].rounds[1] *= 2;
    }
    comparison = compare(a, b);
    assert_int_equal(comparison.a_rounds, 6);
    assert_int_equal(comparison.b_rounds, 4);
    assert_int_equal(comparison.b_disturbed, 2);
    assert_true(comparison.points[0].detectable < 0.2);
    assert_int_equal(changes_of(&comparison), 0);
    compare_free(&comparison);
    for (unsigned int i = 2; i < 5; i++)
        b->loads[i] = 0.5;
    comparison = compare(a, b);
    assert_int_equal(comparison.method, COMPARE_NOTHING);
    free_all(&comparison, a, b);
}

/* The first rounds are disturbed, and a hundred times as fast. */
static void disturb(struct results *run, unsigned int rounds, unsigned int disturbed)
{
    for (unsigned int i = 0; i < rounds; i++) {
        results_add_load(run, i < disturbed ? 0.5 : 0.01);
        for (unsigned int k = 0; k < POINTS && i < disturbed; k++)
            run->experiments[0].series[0].points[k].rounds[i] /= 100;
    }
}

static void values_are_those_of_undisturbed_rounds(void **unused)
{
    for (unsigned int of_a = 0; of_a <= 5; of_a += 5) {
        struct results *a = make_run(9, &quiet, 0, 1), *b = make_run(9, &quiet, POINTS, 1.1);
        struct comparison comparison;

        disturb(a, 9, of_a);
        disturb(b, 9, 5 - of_a);
        comparison = compare(a, b);
        assert_int_equal(comparison.tally[CHANGE_WORSE], POINTS);
        assert_true(fabs(comparison.points[0].ratio - 1.1) < 0.05);
        free_all(&comparison, a, b);
    }
}

/* It is unknown which of its rounds were disturbed. */
static void a_point_that_lacks_a_round_is_undecided(void **unused)
{
    struct results *a = make_run(6, &quiet, 0, 1), *b = make_run(6, &quiet, 0, 1);
    struct comparison comparison;

    for (unsigned int i = 0; i < 6; i++)
        results_add_load(b, i ? 0.01 : 0.5);
    b->experiments[0].series[0].points[3].round_count = 5;
    comparison = compare(a, b);
    assert_int_equal(comparison.b_rounds, 5);
    assert_int_equal(comparison.tally[CHANGE_UNDECIDED], 1);
    assert_int_equal(comparison.points[3].change, CHANGE_UNDECIDED);
    free_all(&comparison, a, b);
}

/* Chance makes it the farthest of all 101 in one of 101 cases. */
static void a_run_without_rounds_is_one_round(void **unused)
{
    struct results *a = make_run(0, NULL, 0, 1), *b = make_run(100, &quiet, POINTS, 2);
    struct comparison comparison = compare(a, b);

    assert_int_equal(comparison.method, COMPARE_PERMUTATION);
    assert_int_equal(comparison.tally[CHANGE_WORSE], POINTS);
    free_all(&comparison, a, b);
}

static void deterministic_runs_are_compared_exactly(void **unused)
{
    struct results *a = make_run(0, NULL, 0, 1), *b = make_run(0, NULL, 1, 1.000001);
    struct comparison comparison;

    a->deterministic = b->deterministic = true;
    b->experiments[0].series[0].points[1].y.p99 += 1e-6;
    comparison = compare(a, b);
    assert_int_equal(comparison.method, COMPARE_EXACT);
    assert_int_equal(comparison.points[0].change, CHANGE_WORSE);
    assert_null(comparison.points[0].statistic);
    assert_int_equal(comparison.points[1].change, CHANGE_WORSE);
    assert_string_equal(comparison.points[1].statistic, "p99");
    assert_int_equal(comparison.tally[CHANGE_SAME], POINTS - 2);
    free_all(&comparison, a, b);
}

static void names_do_not_matter_but_devices_do(void **unused)
{
    struct results *a = make_run(0, NULL, 0, 1), *b = make_run(0, NULL, 0, 1);
    struct comparison comparison;

    results_metadata_set(&a->machine, "host", "here");
    results_metadata_set(&b->machine, "host", "there");
    results_metadata_set(&a->experiments[0].settings, "output", "a.json");
    results_metadata_set(&b->experiments[0].settings, "output", "/tmp/b.json");
    results_metadata_set(&b->experiments[0].settings, "fabric", "mine");
    results_metadata_set(&a->device, "name", "verbena0");
    results_metadata_set(&b->device, "name", "mlx5_0");
    comparison = compare(a, b);
    assert_int_equal(comparison.condition_count, 1);
    assert_string_equal(comparison.conditions[0].of, "device");
    free_all(&comparison, a, b);
}

static void rounds_are_gathered(void **unused)
{
    struct results *first = make_run(0, NULL, 0, 1), *second = make_run(0, NULL, POINTS, 2);
    const struct point *point = &first->experiments[0].series[0].points[4];

    results_add_load(first, 0.1);
    results_add_load(second, 0.2);
    result_failed(&second->experiments[0], "timeout");
    second->experiments[0].series[0].count = POINTS - 1;
    rounds_add(first, second);
    assert_int_equal(point->round_count, 2);
    assert_true(point->rounds[0] == 5 && point->rounds[1] == 10);
    assert_int_equal(first->experiments[0].series[0].points[POINTS - 1].round_count, 0);
    assert_int_equal(first->load_count, 2);
    assert_string_equal(first->experiments[0].failed, "in a later round: timeout");
    results_free(second);
    results_free(first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_runs_are_equal),
        cmocka_unit_test(planted_changes_are_found),
        cmocka_unit_test(detectable_is_what_it_says),
        cmocka_unit_test(few_rounds_decide_nothing),
        cmocka_unit_test(a_run_equals_itself),
        cmocka_unit_test(disturbed_rounds_are_left_out),
        cmocka_unit_test(values_are_those_of_undisturbed_rounds),
        cmocka_unit_test(a_point_that_lacks_a_round_is_undecided),
        cmocka_unit_test(a_run_without_rounds_is_one_round),
        cmocka_unit_test(deterministic_runs_are_compared_exactly),
        cmocka_unit_test(names_do_not_matter_but_devices_do),
        cmocka_unit_test(rounds_are_gathered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
