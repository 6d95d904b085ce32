/* SPDX-License-Identifier: BSD-2-Clause */
/* Which translations miss, against the same rules written down page by page. */
#include "hca/arena.h"
#include "sim/model/icm.h"
#include "sim/model/observer.h"
#include "util/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define PAGES     4096
#define PROCS     2
#define LINES     (PROCS * PAGES)
#define STEPS     20000
#define PAGE_SIZE 4096ull
#define NONE      -1

/* In place of those of the modelled fabric. */
struct model_activity model_activity;
struct model_observer model_observer;

static void *given[64];
static unsigned int given_count;

void *arena_alloc_permanent(uint64_t size)
{
    assert_in_range(given_count, 0, sizeof(given) / sizeof(*given) - 1);
    return given[given_count++] = calloc(1, size);
}

uint64_t bus_write(struct bus *bus, uint64_t now, uint64_t bytes)
{
    return now;
}

uint64_t bus_read_short(struct bus *bus, uint64_t now, uint64_t bytes)
{
    return now;
}

struct reference {
    uint64_t line_pages;
    int line[PROCS][PAGES]; /* of each page, or NONE: not used yet */
    int first[LINES];
    bool cached[LINES];
    int lines;
};

static int begin_line(struct reference *reference, int proc, int page)
{
    if (reference->lines == LINES)
        fail_msg("the test makes too many lines");
    reference->first[reference->lines] = page;
    reference->cached[reference->lines] = false;
    return reference->line[proc][page] = reference->lines++;
}

static int line_of(struct reference *reference, int proc, int page)
{
    int *lines = reference->line[proc];

    if (lines[page] != NONE)
        return lines[page];
    for (int before = page - 1; before >= 0 && page - before < (int)reference->line_pages; before--) {
        if (lines[before] == NONE)
            continue;
        if (page - reference->first[lines[before]] < (int)reference->line_pages)
            return lines[page] = lines[before];
        break;
    }
    return begin_line(reference, proc, page);
}

static uint64_t misses(struct reference *reference, int proc, int page, int count)
{
    uint64_t sum = 0;

    for (int i = page; i < page + count; i++) {
        int line = line_of(reference, proc, i);

        sum += !reference->cached[line];
        reference->cached[line] = true;
    }
    return sum;
}

static void invalidate(struct reference *reference, int proc, int page, int count)
{
    for (int i = page; i < page + count; i++) {
        if (reference->line[proc][i] != NONE)
            reference->cached[reference->line[proc][i]] = false;
        reference->line[proc][i] = NONE;
    }
}

static struct icm icm;

static void begin(uint64_t line_bytes)
{
    static struct pool_memory blocks;
    static struct parameters parameters;

    memset(&blocks, 0, sizeof(blocks));
    memset(&icm, 0, sizeof(icm));
    pool_memory = &blocks;
    parameters.host.page_size = PAGE_SIZE;
    parameters.icm.location = ICM_ON_ADAPTER;
    parameters.icm.mtt_entries = 1 << 20;
    parameters.icm.mtt_read = line_bytes;
    parameters.icm.mtt_accesses = parameters.icm.access_time = parameters.icm.misses = 1;
    parameters.icm.ways = 4;
    assert_int_equal(icm_init(&icm, &parameters, NULL), 0);
}

static void end(void)
{
    while (given_count)
        free(given[--given_count]);
}

static void compare(uint64_t line_bytes, unsigned int seed)
{
    static struct reference reference;
    struct icm_line *near[PROCS] = { NULL };
    uint64_t now = 0;

    begin(line_bytes);
    reference.line_pages = line_bytes / 8;
    reference.lines = 0;
    memset(reference.line, NONE, sizeof(reference.line));
    srand(seed);
    for (int step = 0; step < STEPS && reference.lines < LINES - PAGES; step++) {
        int proc = rand() % PROCS, page = rand() % (PAGES - 64), count = 1 + rand() % 16;
        uint64_t address = page * PAGE_SIZE, length = count * PAGE_SIZE;

        now += 1000;
        if (rand() % 64 == 0) {
            count = rand() % 8 ? count : PAGES - page;
            icm_invalidate_mtt(&icm, proc, address, count * PAGE_SIZE);
            invalidate(&reference, proc, page, count);
        } else if (rand() % 64 == 0) {
            icm_add_region(&icm, proc, address, length);
            if (reference.line[proc][page] == NONE)
                begin_line(&reference, proc, page);
        } else {
            struct icm_range range = { proc, address, length };

            assert_int_equal(icm_mtt(&icm, &near[proc], &range, now) - now,
                             misses(&reference, proc, page, count));
        }
    }
    end();
}

static void one_page_a_line(void **state)
{
    compare(8, 1);
}

static void eight_pages_a_line(void **state)
{
    compare(64, 2);
}

static void more_pages_than_a_word_has_bits(void **state)
{
    compare(4096, 3);
}

static bool misses_at(uint64_t address)
{
    struct icm_line *nowhere = NULL;
    struct icm_range range = { 0, address, 1 };

    return icm_mtt(&icm, &nowhere, &range, 0);
}

/* More than the table of lines has different hashes for. */
static void many_lines(void **state)
{
    uint64_t distance = 3 * PAGE_SIZE, count = 100000;

    begin(8);
    for (uint64_t i = 0; i < count; i++)
        assert_true(misses_at(i * distance));
    for (uint64_t i = 0; i < count; i += 3)
        icm_invalidate_mtt(&icm, 0, i * distance, 1);
    for (uint64_t i = 0; i < count; i++)
        assert_int_equal(misses_at(i * distance), i % 3 == 0);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_page_a_line),
        cmocka_unit_test(eight_pages_a_line),
        cmocka_unit_test(more_pages_than_a_word_has_bits),
        cmocka_unit_test(many_lines),
    };

    return cmocka_run_group_tests_name("icm", tests, NULL, NULL);
}
