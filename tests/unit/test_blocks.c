/* SPDX-License-Identifier: BSD-2-Clause */
/* Which blocks are kept for the next message, and how many. */
#include "mtl/blocks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define KIB     1024u
#define MESSAGE (64 * KIB + 128) /* with its header */

static void used_again(void **state)
{
    char *first = blocks_get(MESSAGE), *second;

    memset(first, 1, MESSAGE);
    blocks_put(first, MESSAGE);
    second = blocks_get(33 * KIB);
    assert_ptr_equal(second, first);
    blocks_put(second, 33 * KIB);
    second = blocks_get(32 * KIB);
    assert_ptr_not_equal(second, first);
    blocks_put(second, 32 * KIB);
    blocks_free();
}

/* Whatever is put back beyond the limit is freed, and so is what is too long to be kept. */
static void bounded(void **state)
{
    enum { COUNT = 2 * BLOCKS_KEPT_MAX / MESSAGE };
    static void *block[COUNT];

    for (int i = 0; i < COUNT; i++)
        block[i] = blocks_get(MESSAGE);
    for (int i = 0; i < COUNT; i++)
        blocks_put(block[i], MESSAGE);
    assert_true(blocks_kept() > BLOCKS_KEPT_MAX - MESSAGE && blocks_kept() <= BLOCKS_KEPT_MAX);
    blocks_free();
    assert_int_equal(blocks_kept(), 0);
}

static void others_are_not_kept(void **state)
{
    static const size_t sizes[] = { 1, 100, 4 * KIB, 1024 * KIB };

    for (int i = 0; i < 4; i++) {
        char *block = blocks_get(sizes[i]);

        memset(block, 1, sizes[i]);
        blocks_put(block, sizes[i]);
        assert_int_equal(blocks_kept(), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(used_again),
        cmocka_unit_test(bounded),
        cmocka_unit_test(others_are_not_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
