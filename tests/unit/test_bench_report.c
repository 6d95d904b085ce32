/* SPDX-License-Identifier: BSD-2-Clause */
/* What experiments report: to the terminal, and into the results. */
#include "bench/report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

static const struct experiment experiment = { .name = "made-up",
                                              .title = "Is it so?",
                                              .source = "nowhere" };

/* Reports one point of a panel; returns the text, to be freed. */
static char *report_one(const struct panel_spec *panel, double x, struct results *results)
{
    const struct summary y = { .count = 1, .median = 2.5, .maximum = 2.5 };
    struct settings settings;
    struct report *report;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    settings_init(&settings);
    report = report_new(results, out, 1);
    report_begin(report, &experiment, "none", &settings);
    report_panel(report, panel);
    report_point(report, 0, x, &y);
    report_end(report, CONTROL_OK, NULL);
    report_free(report);
    fclose(out);
    return text;
}

static void units_may_be_left_out(void **state)
{
    const char *const names[] = { "curve" };
    const struct panel_spec panel = {
        .quantity = "share", .axis = "threads", .count = 1, .names = names
    };
    struct results *results = results_new("1", "today", "test");
    char *text = report_one(&panel, 4096, results);
    const struct series *series = &results->experiments[0].series[0];

    assert_non_null(strstr(text, "  share, curve\n"));
    assert_non_null(strstr(text, " 4096 "));
    assert_string_equal(series->unit, "");
    assert_string_equal(series->axis_unit, "");
    free(text);
    results_free(results);
}

static void sizes_are_written_as_people_do(void **state)
{
    const char *const names[] = { "curve" };
    const struct panel_spec panel = { .quantity = "latency",
                                      .unit = "us",
                                      .axis = "size",
                                      .axis_unit = "B",
                                      .count = 1,
                                      .names = names };
    struct results *results = results_new("1", "today", "test");
    char *text = report_one(&panel, 4096, results);

    assert_non_null(strstr(text, "  latency in us, curve\n"));
    assert_non_null(strstr(text, " 4K "));
    free(text);
    results_free(results);
}

static void time_left_is_estimated_from_the_past(void **state)
{
    char text[48];

    assert_string_equal(report_time_left(0, 0, 5, text, sizeof(text)), "");
    assert_string_equal(report_time_left(10, 1, 5, text, sizeof(text)), ", about 40 s left");
    assert_string_equal(report_time_left(300, 5, 10, text, sizeof(text)), ", about 5 min left");
    assert_string_equal(report_time_left(10, 5, 5, text, sizeof(text)), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_left_is_estimated_from_the_past),
        cmocka_unit_test(units_may_be_left_out),
        cmocka_unit_test(sizes_are_written_as_people_do),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
