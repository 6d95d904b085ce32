/* SPDX-License-Identifier: BSD-2-Clause */
/* Up to which size messages go through shared memory, by the time that writes have taken. */
#include "mtl/ring_limit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define KIB   1024u
#define NEAR  0.02 /* ns for a byte, cores that share a cache */
#define APART 0.07
#define FAR   0.30

/* Sends messages of one size. Returns how many of them went through the ring. */
static unsigned int send(struct ring_limit *ring, uint64_t size, double byte_ns, unsigned int count)
{
    unsigned int through = 0;

    for (unsigned int i = 0; i < count; i++) {
        if (!ring_limit_allows(ring, size))
            continue;
        through++;
        if (ring_limit_wants_time(ring, size))
            ring_limit_learn(ring, size, size * byte_ns);
    }
    return through;
}

static void by_distance(void **state)
{
    struct ring_limit ring;

    ring_limit_init(&ring);
    assert_int_equal(send(&ring, 256 * KIB, NEAR, 1000), 1000);
    ring_limit_init(&ring);
    assert_int_equal(send(&ring, 16 * KIB, APART, 1000), 1000);
    assert_false(ring_limit_allows(&ring, 32 * KIB));
    ring_limit_init(&ring);
    assert_int_equal(send(&ring, 16 * KIB, FAR, 1000), RING_TIME_EVERY + 1 + 990 / RING_TRY_EVERY);
    assert_false(ring_limit_allows(&ring, 8 * KIB));
    assert_int_equal(send(&ring, 4 * KIB, FAR, 1000), 1000);
}

/* The receiver reads all but the last piece while the sender writes. */
static void longer_messages_in_pieces(void **state)
{
    struct ring_limit ring;
    double byte_ns = 0.04;
    uint64_t limit;

    ring_limit_init(&ring);
    for (int i = 0; i < 2; i++)
        ring_limit_learn(&ring, RING_PIECE, RING_PIECE * byte_ns);
    limit = ring.limit;
    assert_true(limit > RING_PIECE && limit < MTL_SHARED_MEMORY_LIMIT_MAX);
    assert_true(ring.byte_ns * (limit + RING_PIECE) <= RENDEZVOUS_NS + RENDEZVOUS_NS_PER_BYTE * limit);
    limit += KIB;
    assert_true(ring.byte_ns * (limit + RING_PIECE) > RENDEZVOUS_NS + RENDEZVOUS_NS_PER_BYTE * limit);
}

static void few_writes_are_timed(void **state)
{
    struct ring_limit ring;
    unsigned int timed = 0;

    ring_limit_init(&ring);
    for (int i = 0; i < 800; i++)
        timed += ring_limit_wants_time(&ring, 8 * KIB);
    assert_int_equal(timed, (800 + RING_TIME_EVERY - 1) / RING_TIME_EVERY);
    assert_false(ring_limit_wants_time(&ring, 4 * KIB));
}

/* Where all messages are too long for the ring, some go through it, until they are fast again. */
static void processes_move(void **state)
{
    struct ring_limit ring;

    ring_limit_init(&ring);
    assert_int_equal(send(&ring, 64 * KIB, FAR, RING_TIME_EVERY + 1), RING_TIME_EVERY + 1);
    assert_int_equal(send(&ring, 64 * KIB, FAR, 10 * RING_TRY_EVERY), 10);
    assert_int_equal(send(&ring, 64 * KIB, NEAR, RING_TRY_EVERY), 1);
    assert_int_equal(send(&ring, 64 * KIB, NEAR, 100), 100);
}

static void an_interrupt_does_not_decide(void **state)
{
    struct ring_limit ring;

    ring_limit_init(&ring);
    send(&ring, 16 * KIB, NEAR, 100);
    ring_limit_learn(&ring, 16 * KIB, 20000000);
    assert_true(ring_limit_allows(&ring, 16 * KIB));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_distance),
        cmocka_unit_test(longer_messages_in_pieces),
        cmocka_unit_test(few_writes_are_timed),
        cmocka_unit_test(processes_move),
        cmocka_unit_test(an_interrupt_does_not_decide),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
