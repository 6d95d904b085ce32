/* SPDX-License-Identifier: BSD-2-Clause */
/* The event queue of virtual time: whatever is queued in whatever order comes out by time, and in
 * order of creation at equal times. */
#include "hca/arena.h"
#include "sim/memory/pool.h"
#include "sim/sched/vthread.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>

#define STEPS 400000

struct sched *sched;

/* The segment. */
static char memory[64 << 20] __attribute__((aligned(CACHE_LINE)));
static uint64_t used;

void *arena_alloc_permanent(uint64_t size)
{
    void *block = memory + used;

    used += size;
    assert_true(used <= sizeof(memory));
    return block;
}

static int open_queue(void **state)
{
    pool_memory = arena_alloc_permanent(sizeof(*pool_memory));
    sched = arena_alloc_permanent(sizeof(*sched));
    return 0;
}

/* From now to far behind the wheel; many at the same time. */
static uint64_t random_delay(void)
{
    switch (random() % 8) {
    case 0:
        return 0;
    case 1:
        return random() % 70000000;
    case 2:
        return random() % 200000;
    case 3:
        return 15;
    default:
        return random() % 4000;
    }
}

/* The object of an event is the number of its creation. */
static uint64_t created;

static void pop_and_check(uint64_t *now, uint64_t *order)
{
    struct event event;
    uint64_t next;

    assert_true(event_next_time(&next));
    event_pop(&event);
    assert_int_equal(event.time, next);
    assert_true(event.time > *now || (event.time == *now && (uintptr_t)event.object > *order));
    assert_int_equal(event.argument, (uint32_t)(event.time * 7));
    *now = event.time;
    *order = (uintptr_t)event.object;
}

static void queue(uint64_t time)
{
    event_at(time, 1, (void *)(uintptr_t)++created, (uint32_t)(time * 7));
}

static void order_is_total(void **state)
{
    uint64_t now = 0, order = 0, first;

    srandom(7);
    queue(1);
    queue(2);
    for (uint32_t i = 0; i < STEPS; i++) {
        pop_and_check(&now, &order);
        for (uint32_t more = random() % 3; more || !sched->events.count; more -= more > 0)
            queue(now + random_delay());
        /* Now and then an event comes before the first one, or the queue runs empty. */
        if (i % 5 == 0 && event_next_time(&first) && first > now)
            queue(first - 1);
        while (i % 50000 == 49999 && sched->events.count > 1)
            pop_and_check(&now, &order);
    }
    while (sched->events.count)
        pop_and_check(&now, &order);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test_setup(order_is_total, open_queue) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
