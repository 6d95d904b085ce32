/* SPDX-License-Identifier: BSD-2-Clause */
/* Values of options: lists, ranges, suffixes, limits, and what is refused. */
#include "util/option.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

static const struct option_row sizes = { .name = "sizes",
                                         .kind = OPTION_NUMBERS,
                                         .maximum = 1u << 31 };
static const struct option_row number = {
    .name = "window", .kind = OPTION_NUMBER, .minimum = 1, .maximum = 8192
};
static const struct option_row listed = { .name = "mtu",
                                          .kind = OPTION_NUMBER,
                                          .choices = "0 256 1024" };
static const struct option_row real = { .name = "trim", .kind = OPTION_REAL };
static const struct option_row choice = { .name = "pin",
                                          .kind = OPTION_CHOICE,
                                          .choices = "auto none" };
static const struct option_row choices = { .name = "ops",
                                           .kind = OPTION_CHOICES,
                                           .choices = "send write write-imm read" };
static const struct option_row name = { .name = "device", .kind = OPTION_NAME };

static void expect_list(const char *text, unsigned int count, const uint64_t *values)
{
    struct number_list list;
    char error[256] = "";

    if (option_store(&sizes, text, &list, error, sizeof(error)))
        fail_msg("%s: %s", text, error);
    assert_int_equal(list.count, count);
    assert_memory_equal(list.value, values, count * sizeof(*values));
}

#define EXPECT_LIST(text, ...)                                       \
    do {                                                             \
        const uint64_t values[] = { __VA_ARGS__ };                   \
        expect_list(text, sizeof(values) / sizeof(*values), values); \
    } while (0)

static void test_lists(void **state)
{
    EXPECT_LIST("8", 8);
    EXPECT_LIST("8,64K,1m", 8, 65536, 1 << 20);
    EXPECT_LIST("2..16", 2, 4, 8, 16);
    EXPECT_LIST("2..12", 2, 4, 8, 12);
    EXPECT_LIST("5..5", 5);
    EXPECT_LIST("0..4", 0, 1, 2, 4);
    EXPECT_LIST("0..100:25", 0, 25, 50, 75, 100);
    EXPECT_LIST("0..10:4", 0, 4, 8, 10);
    EXPECT_LIST("1,2..8,1K..2K:512", 1, 2, 4, 8, 1024, 1536, 2048);
}

static void expect_refusal(const struct option_row *row, const char *text, const char *says)
{
    struct number_list place = { .count = 77 };
    char error[256] = "";

    assert_int_equal(option_store(row, text, &place, error, sizeof(error)), -1);
    assert_int_equal(place.count, 77);
    if (!strstr(error, says))
        fail_msg("'%s': '%s' does not say '%s'", text, error, says);
}

static void test_lists_refused(void **state)
{
    static const char *const wrong[] = {
        "",
        ",",
        "8,",
        "8,,16",
        "x",
        "-1",
        "8..",
        "..8",
        "16..2",
        "0..100:0",
        "1..8:",
        "8 16",
        "4G",
        "2..4G",
        "0x10",
        "99999999999999999999",
        "0..100000:1",
        "18446744073709551615K",
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        expect_refusal(&sizes, wrong[i], "--sizes takes numbers");
}

static void test_numbers(void **state)
{
    uint64_t value = 0;
    char error[256];

    assert_int_equal(option_store(&number, "8K", &value, error, sizeof(error)), 0);
    assert_int_equal(value, 8192);
    assert_int_equal(option_store(&number, "1", &value, error, sizeof(error)), 0);
    assert_int_equal(value, 1);
    expect_refusal(&number, "0", "from 1 to 8K, not '0'");
    expect_refusal(&number, "8193", "from 1 to 8K");
    expect_refusal(&number, "1.5", "not '1.5'");
    expect_refusal(&number, "2x", "not '2x'");
    expect_refusal(&number, "", "not ''");
}

static void test_listed_numbers(void **state)
{
    uint64_t value = 0;
    char error[256];

    assert_int_equal(option_store(&listed, "1K", &value, error, sizeof(error)), 0);
    assert_int_equal(value, 1024);
    assert_int_equal(option_store(&listed, "0", &value, error, sizeof(error)), 0);
    assert_int_equal(value, 0);
    expect_refusal(&listed, "3", "one of '0 256 1024', not '3'");
    expect_refusal(&listed, "2048", "one of");
    expect_refusal(&listed, "25", "one of");
}

static void test_reals(void **state)
{
    double value = 0;
    char error[256];

    assert_int_equal(option_store(&real, "2.5", &value, error, sizeof(error)), 0);
    assert_true(value == 2.5);
    expect_refusal(&real, "-1", "of at least 0");
    expect_refusal(&real, "much", "not 'much'");
    expect_refusal(&real, "1%", "not '1%'");
    expect_refusal(&real, "nan", "not 'nan'");
    expect_refusal(&real, "inf", "not 'inf'");
}

static void test_choices(void **state)
{
    uint64_t value = 0;
    char error[256];

    assert_int_equal(option_store(&choice, "none", &value, error, sizeof(error)), 0);
    assert_int_equal(value, 1);
    expect_refusal(&choice, "non", "one of 'auto none'");
    expect_refusal(&choice, "auto none", "one of 'auto none'");
    assert_int_equal(option_store(&choices, "write-imm,send", &value, error, sizeof(error)), 0);
    assert_int_equal(value, 1 << 0 | 1 << 2);
    expect_refusal(&choices, "send,", "comma-separated list");
    expect_refusal(&choices, "send read", "comma-separated list");
    expect_refusal(&choices, "", "comma-separated list");
}

static void test_texts(void **state)
{
    const char *value = NULL;
    char error[256];

    assert_int_equal(option_store(&name, "mlx5_0", &value, error, sizeof(error)), 0);
    assert_string_equal(value, "mlx5_0");
    expect_refusal(&name, "a b", "letters, digits");
    expect_refusal(&name, "", "letters, digits");
}

static void test_number_text(void **state)
{
    char text[32];

    assert_string_equal(option_number_text(0, text, sizeof(text)), "0");
    assert_string_equal(option_number_text(1000, text, sizeof(text)), "1000");
    assert_string_equal(option_number_text(1536, text, sizeof(text)), "1536");
    assert_string_equal(option_number_text(65536, text, sizeof(text)), "64K");
    assert_string_equal(option_number_text(3ull << 30, text, sizeof(text)), "3G");
    assert_string_equal(option_number_text(1ull << 50, text, sizeof(text)), "1024T");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),          cmocka_unit_test(test_lists_refused),
        cmocka_unit_test(test_numbers),        cmocka_unit_test(test_reals),
        cmocka_unit_test(test_listed_numbers), cmocka_unit_test(test_choices),
        cmocka_unit_test(test_texts),          cmocka_unit_test(test_number_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
