/* SPDX-License-Identifier: BSD-2-Clause */
/* Where values stand in papers, as the origins of adapter files name them. */
#include "reproduce/role.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void test_sources(void **state)
{
    assert_true(role_sources_overlap("figure 3", "figure 3: 3.8 us"));
    assert_true(role_sources_overlap("figure 10", "figures 8 to 11"));
    assert_true(role_sources_overlap("figures 4 and 5", "figure 5"));
    assert_true(role_sources_overlap("figure 4", "table 1 and figure 4"));
    assert_true(role_sources_overlap("figure 5c", ", figure 5: 900 MB/s"));
    assert_false(role_sources_overlap("figure 12", "figures 8 to 11"));
    assert_false(role_sources_overlap("figure 5c", "figure 5d"));
    assert_false(role_sources_overlap("table 1", "figure 1"));
    assert_false(role_sources_overlap("figure 2", "figure 3; 2 cycles"));
    assert_false(role_sources_overlap("figure 1", "text"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sources),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
