/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/model/cache.h"
#include "sim/memory/pool.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#define CAPACITY 96
#define WAYS     4

#define MEMORY   (64 << 10)

static char memory[MEMORY];
static uint64_t memory_left;

/* In place of that of the modelled fabric. */
void *pool_alloc_permanent(uint64_t size)
{
    if (size > memory_left)
        return NULL;
    memory_left -= size;
    return memory + memory_left;
}

static void make(struct cache *cache, uint64_t capacity, uint64_t ways)
{
    memset(memory, 0, MEMORY);
    memory_left = MEMORY;
    assert_int_equal(cache_init(cache, capacity, ways), 0);
}

/* Without remembering where the entry was. */
static bool use(struct cache *cache, uint64_t number, bool *evicted)
{
    struct cache_slot *slot = NULL;

    return cache_use(cache, number, &slot, evicted);
}

/* The share of misses, in percent, when 'count' entries are used in turn. */
static unsigned misses_in_turn(uint64_t capacity, uint64_t ways, uint64_t count)
{
    struct cache cache;
    bool evicted;
    uint64_t before;

    make(&cache, capacity, ways);
    for (uint64_t i = 0; i < 10 * count; i++)
        use(&cache, i % count, &evicted);
    before = cache.misses;
    for (uint64_t i = 0; i < 10 * count; i++)
        use(&cache, i % count, &evicted);
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
    assert_false(use(&cache, 0, &evicted));
    assert_false(use(&cache, 4, &evicted));
    assert_false(evicted);
    assert_true(use(&cache, 0, &evicted));
    assert_false(use(&cache, 8, &evicted));
    assert_true(evicted);
    assert_true(use(&cache, 0, &evicted));
    assert_false(use(&cache, 4, &evicted));
    assert_int_equal(cache.hits, 2);
    assert_int_equal(cache.misses, 4);
}

static void dropped_entries_leave_room(void **state)
{
    struct cache cache;
    bool evicted;

    make(&cache, 8, 2);
    use(&cache, 0, &evicted);
    use(&cache, 4, &evicted);
    cache_drop(&cache, 8); /* is not there */
    cache_drop(&cache, 4);
    assert_false(use(&cache, 8, &evicted));
    assert_false(evicted);
    assert_true(use(&cache, 0, &evicted));
    assert_false(use(&cache, 4, &evicted));
    assert_true(evicted);
}

/* A cache of any size takes memory for what it holds. */
static void memory_grows_with_use(void **state)
{
    struct cache cache;
    bool evicted;

    make(&cache, 100000, WAYS);
    for (uint64_t i = 0; i < CAPACITY; i++)
        assert_false(use(&cache, i, &evicted));
    assert_true(MEMORY - memory_left < 100000 / 8 + 4 * CAPACITY * sizeof(struct cache_slot));
    for (uint64_t i = 0; i < CAPACITY; i++)
        assert_true(use(&cache, i, &evicted));
}

static void remembers_where_an_entry_was(void **state)
{
    struct cache cache;
    struct cache_slot *slot = NULL, *other = NULL;
    bool evicted;

    make(&cache, 2, 1); /* entries 0 and 2 share a set */
    assert_false(cache_use(&cache, 0, &slot, &evicted));
    assert_true(cache_use(&cache, 0, &slot, &evicted));
    assert_true(use(&cache, 0, &evicted));
    assert_false(cache_use(&cache, 2, &other, &evicted));
    assert_ptr_equal(slot, other);
    assert_false(cache_use(&cache, 0, &slot, &evicted));
    cache_drop(&cache, 0);
    assert_false(cache_use(&cache, 0, &slot, &evicted));
    assert_int_equal(cache.hits, 2);
    assert_int_equal(cache.misses, 4);
}

static void without_memory_entries_miss(void **state)
{
    struct cache cache;
    bool evicted;

    make(&cache, CAPACITY, WAYS);
    memory_left = 0;
    assert_false(use(&cache, 7, &evicted));
    assert_false(use(&cache, 7, &evicted));
    assert_false(evicted);
    cache_drop(&cache, 7);
    assert_int_equal(cache.misses, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_that_fit_hit),
        cmocka_unit_test(misses_begin_gradually),
        cmocka_unit_test(replaces_the_least_recently_used),
        cmocka_unit_test(dropped_entries_leave_room),
        cmocka_unit_test(memory_grows_with_use),
        cmocka_unit_test(remembers_where_an_entry_was),
        cmocka_unit_test(without_memory_entries_miss),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
