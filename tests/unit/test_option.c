/* SPDX-License-Identifier: BSD-2-Clause */
/* Values of options: lists, ranges, suffixes, limits, and what is refused. */
#include "util/option.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
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
static const struct option_row share = { .name = "share", .kind = OPTION_REAL, .maximum = 100 };
static const struct option_row choice = { .name = "pin",
                                          .kind = OPTION_CHOICE,
                                          .choices = "auto none" };
static const struct option_row choices = { .name = "ops",
                                           .kind = OPTION_CHOICES,
                                           .choices = "send write write-imm read" };
static const struct option_row depths = {
    .name = "depths", .kind = OPTION_NUMBERS, .minimum = 2, .maximum = 64
};
static const struct option_row all = { .name = "all",
                                       .kind = OPTION_NUMBERS,
                                       .maximum = UINT64_MAX };
static const struct option_row title = { .name = "title", .kind = OPTION_TEXT };
static const struct option_row output = { .name = "output", .kind = OPTION_PATH };
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

static void expect_number(const char *text, uint64_t wanted, const char *rest)
{
    const char *end = NULL;
    uint64_t value = 0;

    if (!option_read_number(text, &end, &value))
        fail_msg("'%s' is refused", text);
    assert_int_equal(value, wanted);
    assert_string_equal(end, rest);
}

static void test_suffixes(void **state)
{
    const char *end;
    uint64_t value;

    expect_number("7", 7, "");
    expect_number("3k", 3ull << 10, "");
    expect_number("3M", 3ull << 20, "");
    expect_number("3g,", 3ull << 30, ",");
    expect_number("3T..", 3ull << 40, "..");
    expect_number("3P", 3, "P");
    expect_number("18446744073709551615", UINT64_MAX, "");
    expect_number("18014398509481983K", UINT64_MAX - 1023, "");
    expect_number("16777215T", 16777215ull << 40, "");
    assert_false(option_read_number("18014398509481984K", &end, &value));
    assert_false(option_read_number("16777216T", &end, &value));
    assert_false(option_read_number("18446744073709551616", &end, &value));
    assert_false(option_read_number(" 1", &end, &value));
    assert_false(option_read_number("K", &end, &value));
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
    expect_refusal(&real, "", "not ''");
    assert_int_equal(option_store(&real, "0", &value, error, sizeof(error)), 0);
    assert_true(value == 0);
    assert_int_equal(option_store(&share, "100", &value, error, sizeof(error)), 0);
    assert_true(value == 100);
    expect_refusal(&share, "100.5", "--share takes a number from 0 to 100, not '100.5'");
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
    expect_refusal(&title, "", "--title takes text");
    expect_refusal(&output, "", "--output takes a path");
    assert_int_equal(option_store(&title, "a b", &value, error, sizeof(error)), 0);
    assert_string_equal(value, "a b");
    assert_int_equal(option_store(&output, "/a/b c", &value, error, sizeof(error)), 0);
    assert_string_equal(value, "/a/b c");
}

static void test_length_of_names(void **state)
{
    char longest[66] = "";
    const char *value = NULL;
    char error[256];

    memset(longest, 'x', 64);
    assert_int_equal(option_store(&name, longest, &value, error, sizeof(error)), 0);
    longest[64] = 'x';
    expect_refusal(&name, longest, "1 to 64 letters, digits, '_', '.' or '-', not 'xxx");
}

/* A value can be checked without a place for it. */
static void test_check_only(void **state)
{
    char error[256];

    assert_int_equal(option_store(&number, "5", NULL, error, sizeof(error)), 0);
    assert_int_equal(option_store(&number, "0", NULL, error, sizeof(error)), -1);
}

static void test_longest_list(void **state)
{
    struct number_list list;
    char error[256];

    assert_int_equal(option_store(&sizes, "1..256:1", &list, error, sizeof(error)), 0);
    assert_int_equal(list.count, NUMBERS_MAX);
    assert_int_equal(list.value[NUMBERS_MAX - 1], 256);
    expect_refusal(&sizes, "1..257:1", "--sizes takes numbers");
    expect_refusal(&depths, "1,2", "numbers (8,64K or 2..4M or 0..100:25), each from 2 to 64");
    expect_refusal(&depths, "2..65", "not '2..65'");
    expect_refusal(&all, "1..18446744073709551615:9223372036854775808", "numbers");
    assert_int_equal(option_store(&depths, "2,64", &list, error, sizeof(error)), 0);
    assert_int_equal(list.count, 2);
}

/* ---- words of a command line ---- */

struct settings {
    uint64_t window;
    bool quiet;
    const char *title;
    uint64_t secret;
};

enum { HIDDEN = 2, OTHER = 1 };

static const struct option_row table[] = {
    { .name = "window",
      .letter = 'w',
      .kind = OPTION_NUMBER,
      .minimum = 1,
      .maximum = 8192,
      .offset = offsetof(struct settings, window) },
    { .name = "quiet", .kind = OPTION_FLAG, .offset = offsetof(struct settings, quiet) },
    { .name = "title",
      .letter = 't',
      .kind = OPTION_TEXT,
      .tags = OTHER,
      .offset = offsetof(struct settings, title) },
    { .name = "secret",
      .kind = OPTION_NUMBER,
      .maximum = 9,
      .tags = HIDDEN,
      .offset = offsetof(struct settings, secret) },
    { 0 },
};

static void test_words_select_rows(void **state)
{
    assert_ptr_equal(option_find(table, "titles", 5), &table[2]);
    assert_null(option_find(table, "titles", 6));
    assert_null(option_find(table, "title", 4));
    assert_ptr_equal(option_of_word(table, "--window"), &table[0]);
    assert_ptr_equal(option_of_word(table, "--window=5"), &table[0]);
    assert_ptr_equal(option_of_word(table, "-t"), &table[2]);
    assert_null(option_of_word(table, "-tx"));
    assert_null(option_of_word(table, "-x"));
    assert_null(option_of_word(table, "-"));
    assert_null(option_of_word(table, "t"));
    assert_null(option_of_word(table, "window"));
    assert_null(option_of_word(table, "--windows"));
}

static int read_words(struct settings *settings, unsigned int hidden, char *error, size_t size,
                      const char *first, const char *second, const char *third)
{
    char *words[] = { (char *)first, (char *)second, (char *)third };
    int count = 1 + (second != NULL) + (third != NULL);

    memset(settings, 0, sizeof(*settings));
    return option_read_words(table, hidden, count, words, settings, error, size);
}

static void test_words_are_read(void **state)
{
    struct settings settings;
    char error[256] = "";

    assert_int_equal(
        read_words(&settings, HIDDEN, error, sizeof(error), "--window", "7", "--title=a=b"), 0);
    assert_int_equal(settings.window, 7);
    assert_string_equal(settings.title, "a=b");
    assert_int_equal(read_words(&settings, HIDDEN, error, sizeof(error), "-w", "9", NULL), 0);
    assert_int_equal(settings.window, 9);
    assert_int_equal(read_words(&settings, 0, error, sizeof(error), "--secret=3", NULL, NULL), 0);
    assert_int_equal(settings.secret, 3);
    assert_false(settings.quiet);
    assert_int_equal(read_words(&settings, 0, error, sizeof(error), "--quiet=", NULL, NULL), 0);
    assert_true(settings.quiet);
}

static void test_words_are_refused(void **state)
{
    struct settings settings;
    char error[256] = "";

    assert_int_equal(read_words(&settings, HIDDEN, error, sizeof(error), "--secret=3", NULL, NULL),
                     -1);
    assert_string_equal(error, "unknown option '--secret'");
    assert_int_equal(read_words(&settings, HIDDEN, error, sizeof(error), "-w", "9", "--title"), -1);
    assert_string_equal(error, "--title needs a value");
    assert_int_equal(read_words(&settings, HIDDEN, error, sizeof(error), "--window=0", NULL, NULL),
                     -1);
    assert_string_equal(error, "--window takes a number from 1 to 8K, not '0'");
}

static void test_unknown_words(void **state)
{
    char error[256];

    option_unknown(table, 0, "--windw=5", error, sizeof(error));
    assert_string_equal(error, "unknown option '--windw'; did you mean --window?");
    option_unknown(table, HIDDEN, "--secre", error, sizeof(error));
    assert_string_equal(error, "unknown option '--secre'");
    option_unknown(table, OTHER, "--secre", error, sizeof(error));
    assert_string_equal(error, "unknown option '--secre'; did you mean --secret?");
    option_unknown(table, 0, "-windw", error, sizeof(error));
    assert_string_equal(error, "unknown option '-windw'");
}

/* The word of a list that is wrong gets the suggestion, not the first word. */
static void test_wrong_choice_of_a_list(void **state)
{
    char error[256];

    assert_int_equal(option_store(&choices, "send,raed", NULL, error, sizeof(error)), -1);
    assert_string_equal(error, "--ops takes a comma-separated list of 'send write write-imm read', "
                               "not 'send,raed'; did you mean read?");
    assert_int_equal(option_store(&choices, "raed,send", NULL, error, sizeof(error)), -1);
    assert_non_null(strstr(error, "did you mean read?"));
    assert_int_equal(option_store(&choice, "nome", NULL, error, sizeof(error)), -1);
    assert_string_equal(error, "--pin takes one of 'auto none', not 'nome'; did you mean none?");
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
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_lists_refused),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_reals),
        cmocka_unit_test(test_listed_numbers),
        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_number_text),
        cmocka_unit_test(test_suffixes),
        cmocka_unit_test(test_length_of_names),
        cmocka_unit_test(test_check_only),
        cmocka_unit_test(test_longest_list),
        cmocka_unit_test(test_words_select_rows),
        cmocka_unit_test(test_words_are_read),
        cmocka_unit_test(test_words_are_refused),
        cmocka_unit_test(test_unknown_words),
        cmocka_unit_test(test_wrong_choice_of_a_list),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
