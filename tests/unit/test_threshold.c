/* SPDX-License-Identifier: BSD-2-Clause */
/* --fail-if: what is understood, what is refused, which points it finds. */
#include "results/threshold.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void add_point(struct series *series, double x, double median)
{
    struct summary y = { .count = 10,
                         .minimum = median * 0.9,
                         .median = median,
                         .mean = median * 1.1,
                         .p99 = median * 2,
                         .p999 = median * 3,
                         .maximum = median * 4,
                         .deviation = 0.5,
                         .low = median,
                         .high = median };

    results_series_add(series, x, &y);
}

/* latency: "send poll" 1 us at 8 B, 5 us at 64 KB; "send-x" 100 us; bw: 4000 MB/s, and a rate. */
static struct results *sample(void)
{
    struct results *results = results_new("1", "2000-01-01T00:00:00Z", "test");
    struct experiment_result *latency = results_add(results, "latency", "basic", "t", "s");
    struct experiment_result *bw;
    struct series *series;

    series = result_series(latency, "send poll", "latency", "us", "size", "B", BETTER_LOWER);
    add_point(series, 8, 1);
    add_point(series, 65536, 5);
    series = result_series(latency, "send-x", "latency", "us", "size", "B", BETTER_LOWER);
    add_point(series, 8, 100);
    bw = results_add(results, "bw", "basic", "t", "s");
    series = result_series(bw, "write", "bandwidth", "MB/s", "size", "B", BETTER_HIGHER);
    add_point(series, 65536, 4000);
    series = result_series(bw, "rate", "rate", "M/s", "share", "%", BETTER_HIGHER);
    add_point(series, 0.5, 2);
    return results;
}

static unsigned int violations(const char *text, char **said)
{
    struct results *results = sample();
    struct thresholds thresholds;
    char error[512];
    size_t size;
    FILE *out = open_memstream(said, &size);
    unsigned int count;

    if (thresholds_read(text, &thresholds, error, sizeof(error)))
        fail_msg("%s", error);
    count = thresholds_check(&thresholds, results, out);
    fclose(out);
    thresholds_free(&thresholds);
    results_free(results);
    return count;
}

static void test_points(void **state)
{
    static const struct {
        const char *text;
        unsigned int count;
    } cases[] = {
        { "latency>0.5us", 3 },
        { "latency > 2", 2 },
        { "latency[8]>2us", 1 },
        { "latency[64K] >= 5us", 1 },
        { "latency[64K]>5us", 0 },
        { "latency.send>0.5us", 2 },
        { "latency.send poll>0.5us", 2 },
        { "latency.\"send poll\".p99[8]>1.5us", 1 },
        { "latency.'send-x'.max < 1ms", 1 },
        { "latency.p999[64K]>14999ns", 1 },
        { "latency.stddev[64K] > 0.4", 1 },
        { "latency.min[64K]<4.6 us", 1 },
        { "latency.mean[64K]<=5.5us", 1 },
        { "bw<5GB/s", 1 },
        { "bw<30Gbit/s", 0 },
        { "bw<40Gbit/s", 1 },
        { "bw.write<3000", 0 },
        { "bw<3M", 1 },
        { "bw[0.5]<2000K/s", 0 },
        { "bw.rate[0.5]<=2000K/s", 1 },
        { "latency>0.5us; bw<5GB/s;", 4 },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char *said = NULL;
        unsigned int count = violations(cases[i].text, &said);

        if (count != cases[i].count)
            fail_msg("%s: %u, not %u: %s", cases[i].text, count, cases[i].count, said);
        free(said);
    }
}

static void expect_said(const char *text, const char *says)
{
    char *said = NULL;

    violations(text, &said);
    if (!strstr(said, says))
        fail_msg("%s: '%s'", text, said);
    free(said);
}

static void test_words(void **state)
{
    expect_said("latency.p99[64K]>1us",
                "fail-if: latency, send poll, size 64K: p99 10 us > 1 us\n");
    expect_said("latency.sned>1us", "nothing was measured for latency, sned, in us\n");
    expect_said("latency[9]>1", "nothing was measured for latency, at 9\n");
    expect_said("latency>1MB/s", "nothing was measured for latency, in MB/s\n");
    expect_said("reuse-1>1", "nothing was measured for reuse-1\n");
}

static void test_refused(void **state)
{
    static const struct {
        const char *text;
        const char *says;
    } cases[] = {
        { "", "expected the name of an experiment" },
        { ";", "expected the name of an experiment" },
        { ">5", "expected the name of an experiment" },
        { "latency", "expected one of > >= < <=" },
        { "latency=5", "expected one of > >= < <=" },
        { "latency>", "expected a number" },
        { "latency>fast", "expected a number" },
        { "latency>nan", "expected a number" },
        { "latency>5furlongs", "unknown unit" },
        { "latency>5us 6", "expected ';'" },
        { "latency>5us,bw<3", "unknown unit" },
        { "latency.p98>5us", "expected min, median" },
        { "latency.a.b>5us", "expected min, median" },
        { "latency.p99.max>5us", "expected min, median" },
        { "latency.>5us", "expected the name of a series" },
        { "latency.\"send>5us", "unterminated quote" },
        { "latency[]>5us", "expected a number such as 64K" },
        { "latency[8>5us", "expected ']'" },
        { "latency>5us;;", "expected the name of an experiment" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct thresholds thresholds;
        char error[512] = "";

        assert_int_equal(thresholds_read(cases[i].text, &thresholds, error, sizeof(error)), -1);
        if (!strstr(error, cases[i].says))
            fail_msg("'%s': '%s' does not say '%s'", cases[i].text, error, cases[i].says);
    }
}

static void test_units(void **state)
{
    double value;

    assert_true(threshold_convert_unit(1, "ms", "us", &value) && fabs(value - 1000) < 1e-9);
    assert_true(threshold_convert_unit(8, "Gbit/s", "MB/s", &value) && fabs(value - 1000) < 1e-9);
    assert_true(threshold_convert_unit(2, "MB", "KB", &value) && fabs(value - 2048) < 1e-9);
    assert_false(threshold_convert_unit(1, "us", "MB/s", &value));
    assert_false(threshold_convert_unit(1, "us", "parsec", &value));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_points),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_units),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
