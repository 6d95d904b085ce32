/* SPDX-License-Identifier: BSD-2-Clause */
/* Where values stand in papers, as the origins of adapter files name them, and what follows. */
#include "reproduce/role.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const struct {
    const char *one, *other;
    bool overlap;
} sources[] = {
    { "figure 3", "figure 3: 3.8 us", true },
    { "figure 10", "figures 8 to 11", true },
    { "figures 4 and 5", "figure 5", true },
    { "figure 4", "table 1 and figure 4", true },
    { "figure 5c", ", figure 5: 900 MB/s", true },
    { "figure 3a", "figures 3a to 3c", true },
    { "figure 12", "figures 8 to 11", false },
    { "figure 5c", "figure 5d", false },
    { "table 1", "figure 1", false },
    { "figure 2", "figure 3; 2 cycles", false },
    { "figure 1", "text", false },
};

static void test_sources(void **state)
{
    for (size_t i = 0; i < sizeof(sources) / sizeof(*sources); i++) {
        if (role_sources_overlap(sources[i].one, sources[i].other) != sources[i].overlap)
            fail_msg("'%s' and '%s'", sources[i].one, sources[i].other);
    }
}

/* The role of a row of paper 100 that stands at 'source', on an adapter with one parameter. */
static enum role role_with(const char *origin, const char *source)
{
    char path[] = "/tmp/verbena-role-XXXXXX.adapter", kind[] = "value";
    int fd = mkstemps(path, 8);
    json_t *spec = json_pack("{ss ss ss ss*}", "value", "latency/send/8", "run", "latency",
                             "adapter", path, "source", source);
    struct paper paper = { .number = "100" };
    struct paper_row row = { .paper = &paper, .spec = spec };
    enum role role;

    assert_true(fd >= 0 && dprintf(fd, "link.rate = 1 GB/s  # %s\n", origin) > 0);
    close(fd);
    row.fields[FIELD_KIND] = kind;
    role = role_of(&row);
    assert_int_equal(unlink(path), 0);
    json_decref(spec);
    return role;
}

static void test_roles(void **state)
{
    assert_int_equal(role_with("fitted to paper 100, figure 1", "figure 1"), ROLE_FITTED);
    assert_int_equal(role_with("fitted to paper 100, figure 2", "figure 1"), ROLE_PREDICTED);
    assert_int_equal(role_with("fitted to paper 101, figure 1", "figure 1"), ROLE_PREDICTED);
    assert_int_equal(role_with("assumed", "figure 1"), ROLE_PREDICTED);
}

static void what_is_in_doubt_is_fitted(void **state)
{
    assert_int_equal(role_with("fitted", "figure 1"), ROLE_FITTED);
    assert_int_equal(role_with("fitted, as hca.buffer", "figure 1"), ROLE_FITTED);
    assert_int_equal(role_with("fitted to paper 100: 5 us", "figure 1"), ROLE_FITTED);
    assert_int_equal(role_with("fitted to paper 100, figure 2", "the abstract"), ROLE_FITTED);
    assert_int_equal(role_with("fitted to paper 100, figure 2", NULL), ROLE_FITTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sources),
        cmocka_unit_test(test_roles),
        cmocka_unit_test(what_is_in_doubt_is_fitted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
