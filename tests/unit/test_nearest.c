/* SPDX-License-Identifier: BSD-2-Clause */
/* "did you mean": which names are close to a mistyped one. */
#include "util/nearest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

static void expect(const char *typed, const char *words, const char *text)
{
    struct nearest nearest;

    nearest_begin(&nearest, typed, strlen(typed));
    nearest_try_words(&nearest, words);
    assert_string_equal(nearest_text(&nearest), text);
}

static void one_mistake_is_found(void **state)
{
    expect("rnu", "run bench list", "; did you mean run?");
    expect("lst", "run bench list", "; did you mean list?");
    expect("benchh", "run bench list", "; did you mean bench?");
    expect("latnecy", "latency bw", "; did you mean latency?");
}

static void the_closest_comes_first(void **state)
{
    expect("--ndoes", "--node --nodes --ports", "; did you mean --nodes or --node?");
    expect("abcde", "abcxy abcdx abcde1 abxxx", "; did you mean abcdx, abcde1 or abcxy?");
    expect("aaaaa", "aaaab aaaac aaaad aaaae", "; did you mean aaaab, aaaac or aaaad?");
}

static void parts_of_names_count(void **state)
{
    expect("cache", "registration-cache bw", "; did you mean registration-cache?");
    expect("bw-and-more", "bw-and latency", "; did you mean bw-and?");
}

static void strange_words_suggest_nothing(void **state)
{
    static const char longer[] = "0123456789012345678901234567890123456789012345678901234567890123456";

    expect("nonsense", "run bench list", "");
    expect("", "run bench list", "");
    expect("x", "run x-ray", "");
    expect(longer, "run bench list", "");
    expect("run", longer, "");
}

/* One mistake, and one more for every five letters typed. */
static void longer_words_may_have_more_mistakes(void **state)
{
    expect("ab", "ba cd", "; did you mean ba?");
    expect("abcd", "abxy", "");
    expect("abcde", "abxye", "; did you mean abxye?");
    expect("abcdefghi", "abcdefgxy", "; did you mean abcdefgxy?");
    expect("abcdefghi", "abcdefxyz", "");
}

static void short_names_inside_a_word_do_not_count(void **state)
{
    expect("bw-and-more", "bw", "");
    expect("bw-and-more", "and", "; did you mean and?");
}

static void names_may_have_63_letters(void **state)
{
    char typed[65], name[65];

    for (int length = 63; length <= 64; length++) {
        memset(typed, 'a', sizeof(typed));
        memset(name, 'a', sizeof(name));
        typed[0] = 'b';
        typed[63] = name[length] = '\0';
        struct nearest nearest;
        nearest_begin(&nearest, typed, 63);
        nearest_try(&nearest, name);
        assert_int_equal(nearest.count, length == 63);
        if (length == 63)
            assert_int_equal(nearest.best[0].distance, 1);
    }
}

static void blanks_between_words_do_not_matter(void **state)
{
    expect("run", "  rum   ran ", "; did you mean rum or ran?");
}

static void a_name_is_suggested_once(void **state)
{
    expect("basc", "basic basic basic", "; did you mean basic?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_mistake_is_found),
        cmocka_unit_test(the_closest_comes_first),
        cmocka_unit_test(parts_of_names_count),
        cmocka_unit_test(strange_words_suggest_nothing),
        cmocka_unit_test(longer_words_may_have_more_mistakes),
        cmocka_unit_test(short_names_inside_a_word_do_not_count),
        cmocka_unit_test(names_may_have_63_letters),
        cmocka_unit_test(blanks_between_words_do_not_matter),
        cmocka_unit_test(a_name_is_suggested_once),
    };

    return cmocka_run_group_tests_name("nearest", tests, NULL, NULL);
}
