/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of results: what is written is read back, and what is damaged is refused with its reason.
 */
#include "results/csv.h"
#include "results/page.h"
#include "results/results.h"
#include "util/file.h"
#include "results/advice/advice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct results *make_results(void)
{
    struct results *results = results_new("0.1.0", "2026-01-02T03:04:05Z", "verbena bench latency");
    struct experiment_result *result;
    struct series *series;

    results_metadata_set(&results->machine, "processor", "%s, %d cores", "Any \"10\" GHz", 2);
    results_metadata_set(&results->machine, "kernel", "old");
    results_metadata_set(&results->machine, "kernel", "6.1");
    results_metadata_set(&results->device, "name", "verbena0");
    result = results_add(results, "latency", "basic", "How long?", "MIBA, figure 5");
    results_metadata_set(&result->settings, "iterations", "%d", 1000);
    results_metadata_set(&result->notes, "harness overhead", "%.1f ns", 20.5);
    series = result_series(result, "send poll", "latency", "us", "size", "B", BETTER_LOWER);
    for (double size = 8; size <= 64 * 1048576.0; size *= 8) {
        const double values[] = { 1.0 / 3, 0.25 + size / 7e3, size / 9e3 + 1e-3 };
        struct summary y;

        histogram_of_values(values, 3, &y);
        results_series_add(series, size, &y);
    }
    result_series(result, "send, \"block\"", "latency", "us", "size", "B", BETTER_NEITHER);
    result = results_add(results, "sl", "attributes", "Priorities?", "");
    result_skipped(result, "not yet known");
    result_skipped(result, "the device has %s virtual lane%s", "one", "");
    result_failed(result, "peer %s", "gone");
    return results;
}

/* Inlined, gcc takes the text for a pointer into this frame. */
static __attribute__((noinline)) char *written(const struct results *results,
                                               int (*write_results)(const struct results *, FILE *))
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    assert_int_equal(write_results(results, out), 0);
    fclose(out);
    return text;
}

static int read_text(const char *text, struct results **out, char *error, size_t size)
{
    char path[] = "/tmp/verbena-results-XXXXXX";
    int fd = mkstemp(path);
    int status;

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    status = results_read(path, out, error, size);
    unlink(path);
    if (status && !strncmp(error, path, strlen(path)))
        memmove(error, error + strlen(path), strlen(error + strlen(path)) + 1);
    return status;
}

static void json_is_read_back(void **state)
{
    struct results *results = make_results(), *again;
    char *text = written(results, results_write_json), *text_again;
    const struct series *series;
    char error[256];

    if (read_text(text, &again, error, sizeof(error)))
        fail_msg("%s", error);
    text_again = written(again, results_write_json);
    assert_string_equal(text, text_again);
    assert_int_equal(again->count, 2);
    assert_string_equal(results_metadata_get(&again->machine, "kernel"), "6.1");
    assert_string_equal(results_metadata_get(&again->machine, "processor"), "Any \"10\" GHz, 2 cores");
    assert_null(results_metadata_get(&again->machine, "nothing"));
    assert_string_equal(results_find(again, "sl")->skipped, "the device has one virtual lane");
    assert_string_equal(results_find(again, "sl")->failed, "peer gone");
    assert_null(results_find(again, "latency")->skipped);
    assert_null(results_find(again, "nothing"));
    series = result_find(results_find(again, "latency"), "send poll", "latency");
    assert_ptr_equal(series, result_find(results_find(again, "latency"), "send poll", NULL));
    assert_null(result_find(results_find(again, "latency"), "send poll", "rate"));
    assert_int_equal(series->count, 8);
    assert_true(series->points[7].x == 16777216);
    assert_true(fabs(series->points[0].y.maximum - 1.0 / 3) < 1e-9);
    assert_int_equal(series->better, BETTER_LOWER);
    free(text);
    free(text_again);
    results_free(results);
    results_free(again);
}

static void bytes_that_are_no_text_do_not_spoil_the_file(void **state)
{
    struct results *results = results_new("0", "", "caf\xe9"), *again;
    char *text = written(results, results_write_json);
    char error[256];

    assert_int_equal(read_text(text, &again, error, sizeof(error)), 0);
    assert_string_equal(again->command, "caf?");
    free(text);
    results_free(results);
    results_free(again);
}

static void no_number_is_not_written(void **state)
{
    struct results *results = make_results();

    results->experiments[0].series[0].points[1].y.p99 = NAN;
    assert_int_equal(results_write_json(results, stderr), -1);
    assert_int_equal(errno, EDOM);
    assert_int_equal(results_write_csv(results, stderr), -1);
    assert_int_equal(errno, EDOM);
    results_free(results);
}

static void rounds_and_conditions_are_read_back(void **state)
{
    struct results *results = make_results(), *again;
    struct point *point = &results->experiments[0].series[0].points[1];
    char error[256] = "", *text;

    results->interrupted = results->deterministic = true;
    results_add_load(results, 0.25);
    results_add_load(results, 0.5);
    results_point_add_round(point, 3.5);
    results_point_add_round(point, 4.25);
    results_point_add_round(point, 4);
    text = written(results, results_write_json);
    if (read_text(text, &again, error, sizeof(error)))
        fail_msg("%s", error);
    assert_true(again->interrupted && again->deterministic);
    assert_int_equal(again->load_count, 2);
    assert_true(again->loads[0] == 0.25 && again->loads[1] == 0.5);
    assert_int_equal(again->experiments[0].series[0].points[0].round_count, 0);
    assert_int_equal(again->experiments[0].series[0].points[1].round_count, 3);
    assert_memory_equal(again->experiments[0].series[0].points[1].rounds, point->rounds,
                        3 * sizeof(double));
    assert_string_equal(again->version, results->version);
    assert_string_equal(again->date, results->date);
    assert_string_equal(again->command, results->command);
    assert_string_equal(results_metadata_get(&again->device, "name"), "verbena0");
    assert_string_equal(again->experiments[0].group, "basic");
    assert_string_equal(again->experiments[0].title, "How long?");
    assert_string_equal(again->experiments[0].source, "MIBA, figure 5");
    assert_string_equal(results_metadata_get(&again->experiments[0].settings, "iterations"), "1000");
    assert_string_equal(results_metadata_get(&again->experiments[0].notes, "harness overhead"),
                        "20.5 ns");
    free(text);
    results_free(again);
    point->rounds[2] = INFINITY;
    assert_int_equal(results_write_json(results, stderr), -1);
    assert_int_equal(errno, EDOM);
    results_free(results);
}

static void a_full_disk_is_noticed(void **state)
{
    struct results *results = make_results();
    FILE *full = fopen("/dev/full", "w");

    assert_int_equal(results_write_json(results, full), -1);
    assert_int_equal(errno, ENOSPC);
    fclose(full);
    full = fopen("/dev/full", "w");
    assert_int_equal(results_write_csv(results, full), -1);
    assert_int_equal(errno, ENOSPC);
    fclose(full);
    results_free(results);
}

static void csv_has_a_line_per_point(void **state)
{
    struct results *results = make_results();
    struct summary y = { .count = 1, .minimum = 2, .median = 2.5, .maximum = 1e7 / 3 };
    char *text;

    results_series_add(&results->experiments[0].series[1], 65536, &y);
    text = written(results, results_write_csv);
    assert_ptr_equal(strstr(text,
                            "experiment,series,quantity,unit,axis,axis_unit,x,count,min,median,"
                            "mean,p99,p999,max,stddev,ci_low,ci_high\n"
                            "latency,send poll,latency,us,size,B,8,3,"),
                     text);
    assert_non_null(strstr(text,
                           "\nlatency,\"send, \"\"block\"\"\",latency,us,size,B,65536,1,2,2.5,0,"
                           "0,0,3333333.33,0,0,0\n"));
    free(text);
    results_free(results);
}

struct damage {
    const char *from, *to;
    const char *reason;
};

static const struct damage damages[] = {
    { "verbena-results/1", "verbena-results/2",
      ": schema: unsupported schema 'verbena-results/2': this version reads 'verbena-results/1'" },
    { "\"schema\"", "\"scheme\"", ": schema: expected a string: this is not a result file" },
    { "\"version\": \"0.1.0\"", "\"version\": 1", ": version: expected a string" },
    { "\"date\"", "\"day\"", ": date: expected a string" },
    { "\"command\"", "\"comand\"", ": command: expected a string" },
    { "false", "0", ": interrupted: expected true or false" },
    { "\"machine\": {", "\"machine\": [], \"was\": {", ": machine: expected an object" },
    { "\"6.1\"", "6.1", ": machine.kernel: expected a string" },
    { "\"device\": {", "\"gadget\": {", ": device: expected an object" },
    { "\"experiments\": [", "\"experiments\": {}, \"was\": [", ": experiments: expected an array" },
    { "\"experiments\": [", "\"experiments\": [ 7,", ": experiments[0]: expected an object" },
    { "\"skipped\": null", "\"skipped\": true",
      ": experiments[0].skipped: expected a string or null" },
    { "\"failed\"", "\"fell\"", ": experiments[0].failed: expected a string or null" },
    { "\"1000\"", "1000", ": experiments[0].settings.iterations: expected a string" },
    { "\"series\"", "\"curves\"", ": experiments[0].series: expected an array" },
    { "\"lower\"", "\"less\"",
      ": experiments[0].series[0].better: expected \"lower\", \"higher\" or \"neither\"" },
    { "\"us\"", "null", ": experiments[0].series[0].unit: expected a string" },
    { "\"points\": [", "\"points\": 3, \"was\": [",
      ": experiments[0].series[0].points: expected an array" },
    { "\"x\": 512", "\"x\": \"512\"", ": experiments[0].series[0].points[2].x: expected a number" },
    { "\"count\": 3", "\"count\": -3",
      ": experiments[0].series[0].points[0].count: expected a non-negative integer" },
    { "\"count\": 3", "\"count\": 3.5",
      ": experiments[0].series[0].points[0].count: expected a non-negative integer" },
    { "\"p999\"", "\"p9999\"", ": experiments[0].series[0].points[0].p999: expected a number" },
    { "\"median\":", "\"median\": 1e6, \"was\":",
      ": experiments[0].series[0].points[0].median: is not between min and max" },
    { "\"ci_high\":", "\"ci_high\": -5, \"was\":",
      ": experiments[0].series[0].points[0].median: is not between ci_low and ci_high" },
    { "\"stddev\":", "\"stddev\": -1, \"was\":",
      ": experiments[0].series[0].points[0].stddev: is negative" },
    { "\"x\": 8,", "\"x\": 8, \"x\": 9,", "duplicate object key" },
    { "\"x\": 8,", "\"x\": 1e999,", "real number overflow" },
    { "\"x\": 8,", "\"x\": NaN,", "invalid token near 'NaN'" },
    { "{", "", "line 2" },
};

static void expect_line(FILE *in, unsigned int wanted, const char *first, const char *last)
{
    char *fields[3] = { 0 };
    unsigned int count;

    assert_true(csv_read_line(in, fields, 3, &count));
    assert_int_equal(count, wanted);
    assert_string_equal(fields[0], first);
    assert_string_equal(fields[(wanted < 3 ? wanted : 3) - 1], last);
    for (int i = 0; i < 3; i++)
        free(fields[i]);
}

/* Commas, quotes and line ends inside quotes; lines of any number of fields; DOS and no line ends.
 */
static void csv_is_read_field_by_field(void **state)
{
    char text[] = "a,b,c\n"
                  "\"x,y\",\"say \"\"no\"\"\"\n"
                  "one\r\n"
                  "\"two\r\nlines\",z\r\n"
                  "1,2,3,4,5\n"
                  "\n"
                  ",\n"
                  "p,\"end\"";
    FILE *in = fmemopen(text, strlen(text), "r");
    char *fields[3];
    unsigned int count = 9;

    expect_line(in, 3, "a", "c");
    expect_line(in, 2, "x,y", "say \"no\"");
    expect_line(in, 1, "one", "one");
    expect_line(in, 2, "two\r\nlines", "z");
    expect_line(in, 5, "1", "3");
    expect_line(in, 1, "", "");
    expect_line(in, 2, "", "");
    expect_line(in, 2, "p", "end");
    assert_false(csv_read_line(in, fields, 3, &count));
    assert_int_equal(count, 0);
    fclose(in);
}

static char *text_of(const char *path)
{
    char error[256];
    size_t length;
    char *text = file_read(path, FILE_TEXT_MAX, &length, error, sizeof(error));

    assert_non_null(text);
    return text;
}

static void the_name_of_a_file_tells_its_format(void **state)
{
    struct results *results = make_results();
    char folder[] = "/tmp/verbena-results-XXXXXX", path[64];
    static const char *const names[] = { "a.csv", ".csv", "a.json", "csv" };

    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(results_write_file(results, names[i]), 0);
        char *text = text_of(names[i]);
        assert_int_equal(text[0] == '{', i != 0);
        free(text);
        unlink(names[i]);
    }
    snprintf(path, sizeof(path), "%s/none/x.json", folder);
    assert_int_equal(results_write_file(results, path), -1);
    assert_int_equal(errno, ENOENT);
    results->experiments[0].series[0].points[0].y.median = NAN;
    assert_int_equal(results_write_file(results, "nan.json"), -1);
    assert_int_equal(errno, EDOM);
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(rmdir(folder), 0);
    results_free(results);
}

/* The data stand where the mark was, and cannot end the script they are in. */
static void a_page_is_its_template_with_data(void **state)
{
    char folder[] = "/tmp/verbena-page-XXXXXX", error[256] = "";
    json_t *data = json_pack("{s:s}", "a", "</script>");

    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(file_write("template", "before @DATA@ after @DATA@", 26), 0);
    assert_int_equal(page_write("template", data, "page", error, sizeof(error)), 0);
    char *text = text_of("page");
    assert_string_equal(text, "before {\"a\":\"\\u003c/script>\"} after @DATA@");
    free(text);
    assert_int_equal(page_write("template", data, "none/page", error, sizeof(error)), -1);
    assert_string_equal(error, "none/page: No such file or directory");
    assert_int_equal(file_write("template", "nothing", 7), 0);
    assert_int_equal(page_write("template", data, "page", error, sizeof(error)), -1);
    assert_string_equal(error, "template: has no @DATA@");
    assert_int_equal(page_write("absent", data, "page", error, sizeof(error)), -1);
    assert_string_equal(error, "absent: No such file or directory");
    assert_int_equal(unlink("page") | unlink("template"), 0);
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(rmdir(folder), 0);
    json_decref(data);
}

static void damaged_files_are_refused_with_the_reason(void **state)
{
    struct results *results = make_results(), *out;
    char *text = written(results, results_write_json);

    for (size_t i = 0; i < sizeof(damages) / sizeof(*damages); i++) {
        const struct damage *damage = &damages[i];
        const char *at = strstr(text, damage->from);
        char *damaged, error[256];

        assert_non_null(at);
        assert_true(asprintf(&damaged, "%.*s%s%s", (int)(at - text), text, damage->to,
                             at + strlen(damage->from)) > 0);
        assert_int_equal(read_text(damaged, &out, error, sizeof(error)), -1);
        if (damage->reason[0] == ':' ? strcmp(error, damage->reason) != 0
                                     : !strstr(error, damage->reason))
            fail_msg("'%s' instead of '%s'", error, damage->reason);
        free(damaged);
    }
    free(text);
    results_free(results);
}

static void a_file_cut_short_anywhere_is_refused(void **state)
{
    struct results *results = make_results(), *out;
    char *text = written(results, results_write_json);
    char error[256];

    for (size_t length = strlen(text) - 2; length; length -= length > 50 ? 50 : 1) {
        text[length] = '\0';
        assert_int_equal(read_text(text, &out, error, sizeof(error)), -1);
    }
    free(text);
    results_free(results);
}

static void what_is_no_file_is_named(void **state)
{
    struct results *out;
    char error[256];

    assert_int_equal(results_read("/no/such/file", &out, error, sizeof(error)), -1);
    assert_string_equal(error, "/no/such/file: No such file or directory");
    assert_int_equal(results_read("/tmp", &out, error, sizeof(error)), -1);
    assert_string_equal(error, "/tmp: Is a directory");
    assert_int_equal(results_read("/dev/null", &out, error, sizeof(error)), -1);
    assert_string_equal(error, "/dev/null: is a device, not a file");
    assert_int_equal(read_text("", &out, error, sizeof(error)), -1);
    assert_non_null(strstr(error, ": line 1, column 0: '[' or '{' expected near end of file"));
}

/* The error is cut where its room ends. */
static void a_small_buffer_is_enough(void **state)
{
    struct results *out;
    char error[12];

    assert_int_equal(read_text("[]", &out, error, sizeof(error)), -1);
    assert_true(strlen(error) < sizeof(error));
}

static void advice_has_numbers_without_exponents(void **state)
{
    assert_string_equal(advice_size_text(0), "0");
    assert_string_equal(advice_size_text(900), "900");
    assert_string_equal(advice_size_text(65536), "64K");
    assert_string_equal(advice_size_text(8763), "8.56K");
    assert_string_equal(advice_size_text(1 << 20), "1M");
    assert_string_equal(advice_time_text(0.85), "850 ns");
    assert_string_equal(advice_time_text(3.2), "3.2 us");
    assert_string_equal(advice_time_text(100), "100 us");
    assert_string_equal(advice_time_text(12345), "12.3 ms");
    assert_string_equal(advice_quantity_text(999.9, "MB/s"), "1 GB/s");
    assert_string_equal(advice_quantity_text(1250, "MB/s"), "1.25 GB/s");
    assert_string_equal(advice_quantity_text(123456, "messages"), "123k messages");
}

static void advice_sets_what_the_component_accepts(void **state)
{
    struct advice advice = { 0 };

    advice_parameter(&advice, MTL_eager_limit, 8763);
    advice_parameter(&advice, MTL_eager_limit, 8192);
    advice_parameter(&advice, MTL_inline_limit, 5000);
    advice_parameter(&advice, MTL_window, 1);
    assert_int_equal(advice.parameters[0].value, 8704);
    assert_false(advice.parameters[0].is_default);
    assert_true(advice.parameters[1].is_default);
    assert_int_equal(advice.parameters[2].value, 1024);
    assert_int_equal(advice.parameters[3].value, 4);
    free(advice.parameters);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(advice_has_numbers_without_exponents),
        cmocka_unit_test(advice_sets_what_the_component_accepts),
        cmocka_unit_test(json_is_read_back),
        cmocka_unit_test(bytes_that_are_no_text_do_not_spoil_the_file),
        cmocka_unit_test(no_number_is_not_written),
        cmocka_unit_test(rounds_and_conditions_are_read_back),
        cmocka_unit_test(a_full_disk_is_noticed),
        cmocka_unit_test(csv_has_a_line_per_point),
        cmocka_unit_test(csv_is_read_field_by_field),
        cmocka_unit_test(the_name_of_a_file_tells_its_format),
        cmocka_unit_test(a_page_is_its_template_with_data),
        cmocka_unit_test(damaged_files_are_refused_with_the_reason),
        cmocka_unit_test(a_file_cut_short_anywhere_is_refused),
        cmocka_unit_test(what_is_no_file_is_named),
        cmocka_unit_test(a_small_buffer_is_enough),
    };

    return cmocka_run_group_tests_name("results", tests, NULL, NULL);
}
