/* SPDX-License-Identifier: BSD-2-Clause */
/* From operands, options and sweep files to experiments with settings. */
#include "bench/session/session.h"
#include "bench/session/experiments.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIST(...) ((char *[]){ __VA_ARGS__, NULL })

static char directory[] = "/tmp/test-plan-XXXXXX";
static char sweep[64];
static char *said;

static int count_of(char *const *list)
{
    int count = 0;

    while (list[count])
        count++;
    return count;
}

/* Plans, with what is said on the way kept in 'said'. */
static int make_plan(char *const *operands, char *const *words, struct plan *plan)
{
    struct session_spec spec = {
        .version = "1",
        .command = "test",
        .operands = operands,
        .operand_count = count_of(operands),
        .words = words,
        .word_count = count_of(words),
    };
    FILE *before = stderr;
    size_t size;
    int status;

    free(said);
    said = NULL;
    stderr = open_memstream(&said, &size);
    status = plan_make(&spec, plan);
    fclose(stderr);
    stderr = before;
    return status;
}

static struct settings settings_of(const struct session_run *run)
{
    struct settings settings;
    char error[256];

    settings_init(&settings);
    assert_int_equal(settings_read(&settings, run->words, run->count, error, sizeof(error)), 0);
    return settings;
}

static void write_sweep(const char *text)
{
    FILE *file = fopen(sweep, "w");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void test_tour(void **state)
{
    struct plan plan;
    unsigned int count = 0;

    for_each_experiment(row)
        count++;
    assert_int_equal(make_plan(LIST(NULL), LIST(NULL), &plan), SESSION_OK);
    assert_int_equal(plan.count, count);
    assert_true(plan.ranks >= 2);
    plan_free(&plan);
}

/* Its own options, then --quick's, then the user's. */
static void test_order_of_options(void **state)
{
    struct plan plan;

    assert_int_equal(make_plan(LIST("latency"), LIST("--quick", "--iterations=7"), &plan),
                     SESSION_OK);
    assert_int_equal(plan.count, 1);
    assert_int_equal(settings_of(&plan.runs[0]).iterations, 7);
    assert_true(settings_of(&plan.runs[0]).sizes.count < 8);
    plan_free(&plan);
}

static void test_groups(void **state)
{
    struct plan plan;

    assert_int_equal(make_plan(LIST("basic", "latency"), LIST(NULL), &plan), SESSION_OK);
    assert_true(plan.count > 2);
    for (unsigned int i = 0; i + 1 < plan.count; i++)
        assert_string_equal(experiment_group(plan.runs[i].experiment), "basic");
    assert_string_equal(plan.runs[plan.count - 1].experiment->name, "latency");
    plan_free(&plan);
}

static void test_sweep(void **state)
{
    struct plan plan;

    write_sweep("# a comment\r\n"
                "--iterations 11\n"
                "\n"
                "  latency --sizes 8,16   # another\n"
                "latency\n"
                "--warmup 3\n"
                "bw --iterations 12");
    assert_int_equal(make_plan(LIST(sweep), LIST("--seed=9"), &plan), SESSION_OK);
    assert_int_equal(plan.count, 3);
    assert_int_equal(settings_of(&plan.runs[0]).sizes.count, 2);
    assert_int_equal(settings_of(&plan.runs[0]).iterations, 11);
    assert_int_equal(settings_of(&plan.runs[0]).seed, 9);
    assert_true(settings_of(&plan.runs[1]).sizes.count > 2);
    assert_int_equal(settings_of(&plan.runs[2]).iterations, 12);
    assert_int_equal(settings_of(&plan.runs[2]).warmup, 3);
    plan_free(&plan);
}

static void expect_refusal(char *const *operands, char *const *words, const char *says)
{
    struct plan plan;

    assert_int_equal(make_plan(operands, words, &plan), SESSION_USAGE);
    if (!strstr(said, says))
        fail_msg("'%s' does not say '%s'", said, says);
    assert_int_equal(plan.count, 0);
}

static void test_refused(void **state)
{
    expect_refusal(LIST("latncy"), LIST(NULL), "unknown experiment, group or file 'latncy'; did you");
    expect_refusal(LIST("lat"), LIST(NULL), "latency");
    expect_refusal(LIST("zzzzzz"), LIST(NULL), "'verbena list experiments' shows");
    expect_refusal(LIST("latency"), LIST("--sizes=4G"), "--sizes takes numbers");
    expect_refusal(LIST("latency"), LIST("--fail-if=latency"), "expected one of");
    expect_refusal(LIST("latency"), LIST("--fail-if=latncy>1"), "did you mean latency");
    expect_refusal(LIST("latency"), LIST("--fail-if=bw>1"), "not among the experiments");
    expect_refusal(LIST(directory), LIST(NULL), "Is a directory");
}

static void test_sweep_refused(void **state)
{
    static const struct {
        const char *text;
        const char *says;
    } cases[] = {
        { "# nothing\n", "sweep.txt: contains no experiment" },
        { "latency\nbandwith\n", "sweep.txt:2: unknown experiment or group 'bandwith'" },
        { "\n\nlatency --size 8\n", "sweep.txt:3: unknown option '--size'" },
        { "latency --sizes\n", "sweep.txt:1: --sizes needs a value" },
        { "latency --sizes 8..x\n", "sweep.txt:1: --sizes takes numbers" },
        { "latency 8\n", "sweep.txt:1: '8' is not an option" },
        { "latency --output x.json\n", "sweep.txt:1: --output applies to the whole run" },
        { "--connect=host\nlatency\n", "sweep.txt:1: --connect applies to the whole run" },
        { "--iterations 0\nlatency\n", "sweep.txt:2: --iterations takes a number" },
        { "latency --verify=1\n", "sweep.txt:1: --verify takes no value" },
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        write_sweep(cases[i].text);
        expect_refusal(LIST(sweep), LIST(NULL), cases[i].says);
    }
}

static int set_up(void **state)
{
    if (!mkdtemp(directory))
        return -1;
    snprintf(sweep, sizeof(sweep), "%s/sweep.txt", directory);
    return 0;
}

static int tear_down(void **state)
{
    free(said);
    unlink(sweep);
    return rmdir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tour),    cmocka_unit_test(test_order_of_options),
        cmocka_unit_test(test_groups),  cmocka_unit_test(test_sweep),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_sweep_refused),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
