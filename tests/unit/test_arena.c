/* SPDX-License-Identifier: BSD-2-Clause */
/* The arena: blocks of every size, whom its units belong to, and what it says when it is full. */

#include "fabric.h"

#include "hca/arena.h"
#include "hca/proc.h"
#include "hca/segment.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { STRANGER = 700, NEIGHBOUR = 701 }; /* process slots that nobody has */

static int join_fabric(void **state)
{
    fabric_open();
    return 0;
}

static unsigned owner_of(const void *block)
{
    return seg->unit_owner[seg_offset(block) >> UNIT_SHIFT];
}

static uint64_t class_size(uint64_t size)
{
    uint64_t class = 64;

    while (class < size)
        class *= 2;
    return class;
}

/* As many blocks as three units hold fill three units, without touching each other, and leave at
 * most one unit behind. */
static void fill_units(uint64_t size)
{
    enum { MOST = 3 * UNIT_SIZE / 64 };
    static unsigned char *blocks[MOST];
    uint64_t count = 3 * UNIT_SIZE / class_size(size);

    void *first = arena_alloc(size); /* there may have been a unit of this class */
    uint64_t before = arena_bytes_used();
    arena_free(first, size);
    for (uint64_t i = 0; i < count; i++) {
        blocks[i] = arena_alloc(size);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % CACHE_LINE, 0);
        assert_int_equal(owner_of(blocks[i]), proc_self + 1);
        assert_int_equal(blocks[i][0] | blocks[i][size / 2] | blocks[i][size - 1], 0);
        memset(blocks[i], (int)(i % 251 + 1), size);
    }
    assert_true(arena_bytes_used() >= before + 2 * UNIT_SIZE);
    assert_true(arena_bytes_used() <= before + 3 * UNIT_SIZE);
    for (uint64_t i = 0; i < count; i++)
        for (uint64_t at = 0; at < size; at += size / 3 ? size / 3 : 1)
            assert_int_equal(blocks[i][at], i % 251 + 1);
    for (uint64_t i = 0; i < count; i++) /* from both ends, so that no order is favoured */
        arena_free(blocks[i % 2 ? count - 1 - i / 2 : i / 2], size);
    assert_true(arena_bytes_used() <= before);
}

static void blocks_of_every_size_fill_their_units(void **state)
{
    static const uint64_t sizes[] = { 1,    63,   64,   65,    128,   129,   192,
                                      1000, 4096, 8000, 16384, 16385, 32767, 32768 };

    for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++)
        fill_units(sizes[i]);
}

/* 32 KiB is the largest part of a unit; one byte more takes a unit. */
static void large_blocks_take_whole_units(void **state)
{
    static const struct {
        uint64_t size, units;
    } rows[] = { { 32769, 1 }, { UNIT_SIZE, 1 }, { UNIT_SIZE + 1, 2 }, { 5 * UNIT_SIZE, 5 } };

    for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
        uint64_t before = arena_bytes_used();
        char *block = arena_alloc(rows[i].size);
        assert_int_equal(seg_offset(block) % UNIT_SIZE, 0);
        assert_int_equal(arena_bytes_used(), before + rows[i].units * UNIT_SIZE);
        assert_int_equal(owner_of(block), proc_self + 1);
        assert_int_equal(owner_of(block + rows[i].size - 1), proc_self + 1);
        arena_free(block, rows[i].size);
        assert_int_equal(arena_bytes_used(), before);
        assert_int_equal(owner_of(block), 0);
    }
}

/* A block's spare cache lines spread the first lines of all blocks. */
static void blocks_begin_at_different_lines(void **state)
{
    void *blocks[16];
    unsigned seen = 0;

    for (int i = 0; i < 16; i++) {
        blocks[i] = arena_alloc(300); /* of 512: 212 bytes, three lines, are spare */
        seen |= 1u << (uintptr_t)blocks[i] % 512 / CACHE_LINE;
    }
    assert_int_equal(seen, 0xf);
    for (int i = 0; i < 16; i++)
        arena_free(blocks[i], 300);
}

/* Units of two processes side by side, in one run and in two. */
static void what_a_process_owned_is_freed_and_cleared(void **state)
{
    uint64_t before = arena_bytes_used();
    char *first = arena_alloc_for(STRANGER, 2 * UNIT_SIZE);
    char *between = arena_alloc_for(NEIGHBOUR, 1);
    char *second = arena_alloc_for(STRANGER, UNIT_SIZE + 1);

    assert_ptr_equal(between, first + 2 * UNIT_SIZE);
    assert_ptr_equal(second, between + UNIT_SIZE);
    assert_int_equal(owner_of(first + UNIT_SIZE), STRANGER + 1);
    assert_int_equal(owner_of(second + UNIT_SIZE), STRANGER + 1);
    assert_int_equal(arena_bytes_used(), before + 5 * UNIT_SIZE);
    memset(first, 1, 5 * UNIT_SIZE);
    arena_free_owner(STRANGER);
    assert_int_equal(arena_bytes_used(), before + UNIT_SIZE);
    assert_int_equal(owner_of(between), NEIGHBOUR + 1);
    assert_int_equal(between[0] & between[UNIT_SIZE - 1], 1);
    assert_int_equal(first[0] | first[2 * UNIT_SIZE - 1] | second[0] | second[2 * UNIT_SIZE - 1],
                     0);
    arena_free_owner(NEIGHBOUR);
    assert_int_equal(arena_bytes_used(), before);
}

/* The last unit that was ever used is looked at, too. */
static void the_high_water_mark_stays(void **state)
{
    uint64_t most = arena_bytes_most(), free = most - arena_bytes_used();
    char *block = arena_alloc_for(STRANGER, free + UNIT_SIZE);

    assert_true(arena_bytes_most() > most);
    assert_true(arena_bytes_most() >= most + UNIT_SIZE);
    most = arena_bytes_most();
    arena_free_owner(STRANGER);
    assert_int_equal(owner_of(block + free), 0);
    assert_int_equal(arena_bytes_most(), most);
}

static void permanent_memory_is_nobodys(void **state)
{
    char *block = arena_alloc_permanent(UNIT_SIZE + 1);

    assert_int_equal(owner_of(block), MAX_PROCS + 1);
    assert_int_equal(owner_of(block + UNIT_SIZE), MAX_PROCS + 1);
    arena_free_owner(proc_self + 1);
    assert_int_equal(owner_of(block), MAX_PROCS + 1);
}

/* In a corrupted segment a unit may have become another process's. */
static void units_of_others_are_not_freed(void **state)
{
    char *block = arena_alloc(3 * UNIT_SIZE);
    uint64_t first = seg_offset(block) >> UNIT_SHIFT;

    for (int i = 0; i < 3; i++) {
        store_relaxed(&seg->unit_owner[first + i], STRANGER + 1);
        arena_free(block, 3 * UNIT_SIZE);
        assert_int_equal(owner_of(block + (i + 1) % 3 * UNIT_SIZE), proc_self + 1);
        store_relaxed(&seg->unit_owner[first + i], proc_self + 1);
    }
    arena_free(block, 3 * UNIT_SIZE);
    assert_int_equal(owner_of(block), 0);
}

/* A hint where free units were found last must not hide those before it. */
static void freed_units_are_found_again(void **state)
{
    char *low = arena_alloc(4 * UNIT_SIZE), *high = arena_alloc(UNIT_SIZE);
    uint64_t most = arena_bytes_most();

    arena_free(low, 4 * UNIT_SIZE);
    arena_free(high, UNIT_SIZE);
    for (int i = 0; i < 50; i++) {
        char *block = arena_alloc(3 * UNIT_SIZE);
        assert_non_null(block);
        assert_int_equal(block[0] | block[3 * UNIT_SIZE - 1], 0);
        arena_free(block, 3 * UNIT_SIZE);
    }
    assert_true(arena_bytes_most() >= most);
}

/* The warning is for people, who need not read it again at each attempt. */
static void want_of_memory_is_told_once(void **state)
{
    fabric_log_begin();
    void *first = arena_alloc(1ull << 45);
    int err = errno;
    void *second = arena_alloc(1ull << 45);
    const char *text = fabric_log_end();

    assert_null(first);
    assert_null(second);
    assert_int_equal(err, ENOMEM);
    assert_non_null(
        strstr(text, "cannot allocate 34359738368 KiB of the fabric's shared memory: "));
    assert_non_null(strstr(text, segment_path()));
    assert_non_null(strstr(text, "Cannot allocate memory\n"));
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_of_every_size_fill_their_units),
        cmocka_unit_test(large_blocks_take_whole_units),
        cmocka_unit_test(blocks_begin_at_different_lines),
        cmocka_unit_test(what_a_process_owned_is_freed_and_cleared),
        cmocka_unit_test(the_high_water_mark_stays),
        cmocka_unit_test(permanent_memory_is_nobodys),
        cmocka_unit_test(units_of_others_are_not_freed),
        cmocka_unit_test(freed_units_are_found_again),
        cmocka_unit_test(want_of_memory_is_told_once),
    };

    return cmocka_run_group_tests_name("arena", tests, join_fabric, NULL);
}
