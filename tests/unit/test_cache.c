/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/model/cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define CAPACITY 96
#define WAYS     4

static struct cache_slot slots[CAPACITY];

static void make(struct cache *cache, uint64_t capacity, uint64_t ways)
{
    for (int i = 0; i < CAPACITY; i++)
        slots[i] = (struct cache_slot){ 0 };
    cache_init(cache, slots, capacity, ways);
}

/* The share of misses, in percent, when 'count' entries are used in turn. */
static unsigned misses_in_turn(uint64_t capacity, uint64_t ways, uint64_t count)
{
    struct cache cache;
    bool evicted;
    uint64_t before;

    make(&cache, capacity, ways);
    for (uint64_t i = 0; i < 10 * count; i++)
        cache_use(&cache, i % count, &evicted);
    before = cache.misses;
    for (uint64_t i = 0; i < 10 * count; i++)
        cache_use(&cache, i % count, &evicted);
    return 100 * (cache.misses - before) / (10 * count);
}

static void all_that_fit_hit(void **state)
{
    for (uint64_t capacity = 1; capacity <= CAPACITY; capacity++)
        for (uint64_t ways = 1; ways <= capacity; ways++)
            assert_int_equal(misses_in_turn(capacity, ways, capacity / ways * ways), 0);
}

static void misses_begin_gradually(void **state)
{
    unsigned last = 0;

    for (uint64_t count = CAPACITY; count <= 2 * CAPACITY; count++) {
        unsigned share = misses_in_turn(CAPACITY, WAYS, count);

        assert_in_range(share, last, last + 6);
        last = share;
    }
    assert_int_equal(last, 100);
    assert_int_equal(misses_in_turn(CAPACITY, CAPACITY, CAPACITY + 1), 100); /* one set: a cliff */
}

static void replaces_the_least_recently_used(void **state)
{
    struct cache cache;
    bool evicted;

    make(&cache, 8, 2); /* entries 0, 4 and 8 share a set */
    assert_false(cache_use(&cache, 0, &evicted));
    assert_false(cache_use(&cache, 4, &evicted));
    assert_false(evicted);
    assert_true(cache_use(&cache, 0, &evicted));
    assert_false(cache_use(&cache, 8, &evicted));
    assert_true(evicted);
    assert_true(cache_use(&cache, 0, &evicted));
    assert_false(cache_use(&cache, 4, &evicted));
    assert_int_equal(cache.hits, 2);
    assert_int_equal(cache.misses, 4);
}

static void dropped_entries_leave_room(void **state)
{
    struct cache cache;
    bool evicted;

    make(&cache, 8, 2);
    cache_use(&cache, 0, &evicted);
    cache_use(&cache, 4, &evicted);
    cache_drop(&cache, 8); /* is not there */
    cache_drop(&cache, 4);
    assert_false(cache_use(&cache, 8, &evicted));
    assert_false(evicted);
    assert_true(cache_use(&cache, 0, &evicted));
    assert_false(cache_use(&cache, 4, &evicted));
    assert_true(evicted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_that_fit_hit),
        cmocka_unit_test(misses_begin_gradually),
        cmocka_unit_test(replaces_the_least_recently_used),
        cmocka_unit_test(dropped_entries_leave_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
