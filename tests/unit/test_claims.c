/* Two processes divide a message between them: claims.h. */
#include "mtl/claims.h"

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
    claims_word word = 0;
    uint32_t number = claims_open(&word, 3);

    assert_int_equal(claims_take(&word, number, CLAIM_FIRST), 0);
    assert_int_equal(claims_take(&word, number, CLAIM_LAST), 2);
    assert_int_equal(claims_take(&word, number, CLAIM_LAST), 1);
    assert_int_equal(claims_take(&word, number, CLAIM_LAST), CLAIM_NONE);
    assert_int_equal(claims_take(&word, number, CLAIM_FIRST), CLAIM_NONE);
}

static void who_comes_late_gets_nothing(void **state)
{
    claims_word word = 0;
    uint32_t number = claims_open(&word, CLAIMS_MAX);

    assert_int_not_equal(claims_open(&word, CLAIMS_MAX), number);
    assert_int_equal(claims_take(&word, number, CLAIM_LAST), CLAIM_NONE);
}

static void all_parts_of_the_largest_message(void **state)
{
    claims_word word = UINT64_MAX; /* the number begins anew */
    uint32_t number = claims_open(&word, CLAIMS_MAX);

    assert_int_equal(number, 0);
    for (int i = 0; i < CLAIMS_MAX; i++)
        assert_int_equal(claims_take(&word, number, CLAIM_FIRST), i);
    assert_int_equal(claims_take(&word, number, CLAIM_FIRST), CLAIM_NONE);
}

struct helper {
    claims_word word;
    _Atomic uint32_t number;
    _Atomic uint32_t taken; /* of all messages, by the helper */
    atomic_bool over;
    atomic_uchar owners[PARTS];
};

static void *help(void *argument)
{
    struct helper *helper = argument;

    while (!atomic_load(&helper->over)) {
        int part = claims_take(&helper->word, atomic_load(&helper->number), CLAIM_LAST);

        if (part == CLAIM_NONE)
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
        atomic_store(&helper.number, claims_open(&helper.word, parts));
        while ((part = claims_take(&helper.word, helper.number, CLAIM_FIRST)) != CLAIM_NONE) {
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
