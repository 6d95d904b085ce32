/* SPDX-License-Identifier: BSD-2-Clause */
/* Histograms and summaries, held against plain computations on all the samples. */
#include "results/histogram.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLES       20000
#define BUCKET_ERROR  1e-3
#define ROUNDING      1e-9
#define INTERVAL_RUNS 2000

static uint64_t random_state;

static uint64_t random_word(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static double random_fraction(void)
{
    return (double)(random_word() >> 11) / 0x1p53;
}

static int seed(void **state)
{
    const char *text = getenv("SEED");

    random_state = text ? strtoull(text, NULL, 10) : 20061;
    fprintf(stderr, "# SEED=%llu\n", (unsigned long long)random_state);
    return 0;
}

static uint64_t small_value(void)
{
    return random_word() % 2048;
}

static uint64_t time_value(void)
{
    double tail = random_fraction() < 0.01 ? 100 : 1;

    return (uint64_t)(1500 * tail * -log(1 - random_fraction()) + 700);
}

static uint64_t any_value(void)
{
    return random_word() >> (random_word() % 60 + 4);
}

static uint64_t far_from_zero(void)
{
    return 1000000000000ull + random_word() % 3;
}

static int compare_words(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

    return (left > right) - (left < right);
}

static double exact_quantile(const uint64_t *sorted, unsigned int count, double share)
{
    double rank = share * (count - 1);
    unsigned int below = (unsigned int)rank;
    double part = rank - below;

    if (below + 1 >= count)
        return (double)sorted[below];
    return (1 - part) * (double)sorted[below] + part * (double)sorted[below + 1];
}

static double exact_deviation(const uint64_t *values, unsigned int count, long double mean)
{
    long double squares = 0;

    for (unsigned int i = 0; i < count; i++)
        squares += ((long double)values[i] - mean) * ((long double)values[i] - mean);
    return count > 1 ? (double)sqrtl(squares / (count - 1)) : 0;
}

static void assert_close(double got, double wanted, double error)
{
    if (fabs(got - wanted) > error * fabs(wanted))
        fail_msg("%.12g instead of %.12g, beyond %g", got, wanted, error);
}

static void check_against_samples(uint64_t (*draw)(void), unsigned int count, double error)
{
    uint64_t *values = calloc(count, sizeof(*values));
    struct histogram *histogram = histogram_new();
    struct summary summary;
    unsigned __int128 sum = 0;
    long double mean;

    for (unsigned int i = 0; i < count; i++) {
        values[i] = draw();
        sum += values[i];
        histogram_add(histogram, values[i]);
    }
    mean = (long double)sum / count;
    histogram_summary(histogram, 1, &summary);
    qsort(values, count, sizeof(*values), compare_words);
    assert_int_equal(summary.count, count);
    assert_true(summary.minimum == (double)values[0]);
    assert_true(summary.maximum == (double)values[count - 1]);
    assert_close(summary.mean, (double)mean, ROUNDING);
    assert_close(summary.deviation, exact_deviation(values, count, mean), ROUNDING);
    assert_close(summary.median, exact_quantile(values, count, 0.5), error);
    assert_close(summary.p99, exact_quantile(values, count, 0.99), error);
    assert_close(summary.p999, exact_quantile(values, count, 0.999), error);
    assert_true(summary.low <= summary.median && summary.median <= summary.high);
    histogram_free(histogram);
    free(values);
}

static void small_values_are_exact(void **state)
{
    for (unsigned int count = 1; count < 300; count++)
        check_against_samples(small_value, count, ROUNDING);
    check_against_samples(small_value, SAMPLES, ROUNDING);
}

static void large_values_fall_into_their_bucket(void **state)
{
    for (unsigned int count = 1; count < 300; count++)
        check_against_samples(time_value, count, BUCKET_ERROR);
    check_against_samples(time_value, SAMPLES, BUCKET_ERROR);
    check_against_samples(any_value, SAMPLES, BUCKET_ERROR);
}

static void deviation_survives_a_large_mean(void **state)
{
    check_against_samples(far_from_zero, SAMPLES, BUCKET_ERROR);
}

static void every_value_has_a_bucket(void **state)
{
    unsigned int before = 0;

    assert_int_equal(histogram_index(0), 0);
    assert_int_equal(histogram_index(2047), 2047);
    assert_int_equal(histogram_index(UINT64_MAX), HISTOGRAM_BUCKETS - 1);
    for (uint64_t value = 1; value < UINT64_MAX / 2; value += value / 3000 + 1) {
        unsigned int index = histogram_index(value);

        assert_true(index == before || index == before + 1);
        before = index;
    }
}

static void nothing_measured_is_all_zero(void **state)
{
    struct histogram *histogram = histogram_new();
    struct summary summary, zero = { 0 };

    histogram_summary(histogram, 2, &summary);
    assert_memory_equal(&summary, &zero, sizeof(zero));
    histogram_trim(histogram, 0.5);
    histogram_add(histogram, 5);
    histogram_clear(histogram);
    histogram_summary(histogram, 2, &summary);
    assert_memory_equal(&summary, &zero, sizeof(zero));
    histogram_of_values(NULL, 0, &summary);
    assert_memory_equal(&summary, &zero, sizeof(zero));
    histogram_free(histogram);
}

static void the_scale_is_applied_to_all(void **state)
{
    struct histogram *histogram = histogram_new();
    struct summary one, thousandth;

    for (int i = 0; i < 1000; i++)
        histogram_add(histogram, time_value());
    histogram_summary(histogram, 1, &one);
    histogram_summary(histogram, 1e-3, &thousandth);
    assert_int_equal(one.count, thousandth.count);
    for (double *a = &one.minimum, *b = &thousandth.minimum; a <= &one.high; a++, b++)
        assert_close(*b, *a / 1000, ROUNDING);
    histogram_free(histogram);
}

static void parts_merge_into_the_whole(void **state)
{
    struct histogram *whole = histogram_new(), *merged = histogram_new(), *part = histogram_new();

    histogram_merge(merged, part);
    for (int i = 0; i < SAMPLES; i++) {
        uint64_t value = any_value();

        histogram_add(whole, value);
        histogram_add(part, value);
        if (i % 777 == 0 || i == SAMPLES - 1) {
            histogram_merge(merged, part);
            histogram_clear(part);
        }
    }
    assert_memory_equal(merged, whole, sizeof(*whole));
    histogram_free(whole);
    histogram_free(merged);
    histogram_free(part);
}

static void trimming_drops_the_largest(void **state)
{
    struct histogram *histogram = histogram_new();
    struct summary summary;

    for (uint64_t value = 1; value <= 1000; value++)
        histogram_add(histogram, value);
    histogram_trim(histogram, 0.1);
    histogram_summary(histogram, 1, &summary);
    assert_int_equal(summary.count, 900);
    assert_close(summary.maximum, 900, ROUNDING);
    assert_close(summary.median, 450.5, ROUNDING);
    assert_close(summary.mean, 450.5, ROUNDING);

    histogram_clear(histogram);
    for (int i = 0; i < 99; i++)
        histogram_add(histogram, 5000000);
    histogram_add(histogram, 1ull << 40);
    histogram_trim(histogram, 0.01);
    histogram_summary(histogram, 1, &summary);
    assert_int_equal(summary.count, 99);
    assert_close(summary.mean, 5000000, BUCKET_ERROR);
    assert_close(summary.maximum, 5000000, BUCKET_ERROR);
    assert_true(summary.minimum <= summary.mean && summary.mean <= summary.maximum);
    histogram_free(histogram);
}

/* How often the interval holds the true median: 95% of the time, and a little more for the few
 * samples between which there is no rank that fits better. */
static void check_coverage(unsigned int count, double least, double most)
{
    struct histogram *histogram = histogram_new();
    unsigned int covered = 0;
    struct summary summary;

    for (int run = 0; run < INTERVAL_RUNS; run++) {
        histogram_clear(histogram);
        for (unsigned int i = 0; i < count; i++)
            histogram_add(histogram, (uint64_t)(1e9 * random_fraction()));
        histogram_summary(histogram, 1e-9, &summary);
        covered += summary.low <= 0.5 && 0.5 <= summary.high;
    }
    if (covered < least * INTERVAL_RUNS || covered > most * INTERVAL_RUNS)
        fail_msg("%u samples: %u of %u intervals hold the median", count, covered, INTERVAL_RUNS);
    histogram_free(histogram);
}

static void intervals_hold_the_median_95_times_of_100(void **state)
{
    check_coverage(10, 0.96, 0.995);
    check_coverage(100, 0.935, 0.98);
    check_coverage(200, 0.935, 0.98);
    check_coverage(201, 0.935, 0.98);
    check_coverage(1000, 0.93, 0.97);
}

static void a_few_values_are_summed_up_exactly(void **state)
{
    const double values[] = { 4, 1, 3, 2, 10 };
    struct summary summary;

    histogram_of_values(values, 5, &summary);
    assert_int_equal(summary.count, 5);
    assert_close(summary.minimum, 1, 0);
    assert_close(summary.median, 3, 0);
    assert_close(summary.mean, 4, ROUNDING);
    assert_close(summary.p99, 9.76, ROUNDING);
    assert_close(summary.maximum, 10, 0);
    assert_close(summary.deviation, sqrt(12.5), ROUNDING);
    assert_close(summary.low, 1, 0);
    assert_close(summary.high, 10, 0);
    histogram_of_values(values, 1, &summary);
    assert_close(summary.median, 4, 0);
    assert_true(summary.deviation == 0 && summary.low == 4 && summary.high == 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_values_are_exact),
        cmocka_unit_test(large_values_fall_into_their_bucket),
        cmocka_unit_test(deviation_survives_a_large_mean),
        cmocka_unit_test(every_value_has_a_bucket),
        cmocka_unit_test(nothing_measured_is_all_zero),
        cmocka_unit_test(the_scale_is_applied_to_all),
        cmocka_unit_test(parts_merge_into_the_whole),
        cmocka_unit_test(trimming_drops_the_largest),
        cmocka_unit_test(intervals_hold_the_median_95_times_of_100),
        cmocka_unit_test(a_few_values_are_summed_up_exactly),
    };

    return cmocka_run_group_tests_name("statistics", tests, seed, NULL);
}
