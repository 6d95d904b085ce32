/* SPDX-License-Identifier: BSD-2-Clause */
/* Two processes divide a message between them: coop_copy.h. */
#include "mtl/coop_copy.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define PARTS    1000
#define MESSAGES 2000

static void each_takes_from_its_end(void **state)
{
    coop_word word = 0;
    uint32_t number = coop_start(&word, 3);

    assert_int_equal(coop_claim(&word, number, COOP_FRONT), 0);
    assert_int_equal(coop_claim(&word, number, COOP_BACK), 2);
    assert_int_equal(coop_claim(&word, number, COOP_BACK), 1);
    assert_int_equal(coop_claim(&word, number, COOP_BACK), COOP_NONE);
    assert_int_equal(coop_claim(&word, number, COOP_FRONT), COOP_NONE);
}

static void who_comes_late_gets_nothing(void **state)
{
    coop_word word = 0;
    uint32_t number = coop_start(&word, COOP_CHUNKS_MAX);

    assert_int_not_equal(coop_start(&word, COOP_CHUNKS_MAX), number);
    assert_int_equal(coop_claim(&word, number, COOP_BACK), COOP_NONE);
}

static void all_parts_of_the_largest_message(void **state)
{
    coop_word word = UINT64_MAX; /* the number begins anew */
    uint32_t number = coop_start(&word, COOP_CHUNKS_MAX);

    assert_int_equal(number, 0);
    for (int i = 0; i < COOP_CHUNKS_MAX; i++)
        assert_int_equal(coop_claim(&word, number, COOP_FRONT), i);
    assert_int_equal(coop_claim(&word, number, COOP_FRONT), COOP_NONE);
}

struct helper {
    coop_word word;
    _Atomic uint32_t number;
    _Atomic uint32_t taken; /* of all messages, by the helper */
    atomic_bool over;
    atomic_uchar owners[PARTS];
};

static void *help(void *argument)
{
    struct helper *helper = argument;

    while (!atomic_load(&helper->over)) {
        int part = coop_claim(&helper->word, atomic_load(&helper->number), COOP_BACK);

        if (part == COOP_NONE)
            continue;
        atomic_fetch_add(&helper->owners[part], 1);
        atomic_fetch_add(&helper->taken, 1);
    }
    return NULL;
}

/* The helper never learns how many parts there are, and is often late. */
static void every_part_has_one_owner(void **state)
{
    static struct helper helper;
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, help, &helper), 0);
    for (int i = 0; i < MESSAGES; i++) {
        uint32_t own = 0, before = atomic_load(&helper.taken), parts = 1 + i % PARTS;
        int part;

        memset(helper.owners, 0, sizeof(helper.owners));
        atomic_store(&helper.number, coop_start(&helper.word, parts));
        while ((part = coop_claim(&helper.word, helper.number, COOP_FRONT)) != COOP_NONE) {
            atomic_fetch_add(&helper.owners[part], 1);
            own++;
        }
        while (own + atomic_load(&helper.taken) - before < parts)
            ;
        for (uint32_t k = 0; k < PARTS; k++)
            assert_int_equal(helper.owners[k], k < parts);
    }
    atomic_store(&helper.over, true);
    pthread_join(thread, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_takes_from_its_end),
        cmocka_unit_test(who_comes_late_gets_nothing),
        cmocka_unit_test(all_parts_of_the_largest_message),
        cmocka_unit_test(every_part_has_one_owner),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
