/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions that headers of src/util/ define. */
#include "util/bytes.h"
#include "util/hash.h"
#include "util/link.h"
#include "util/random.h"
#include "util/rank_env.h"
#include "util/sorted.h"
#include "util/spinlock.h"
#include "util/thread.h"
#include "util/util.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <semaphore.h>
#include <unistd.h>

static void numbers_are_rounded_up(void **state)
{
    static const uint32_t powers[][2] = {
        { 0, 1 }, { 1, 1 }, { 2, 2 },          { 3, 4 },
        { 4, 4 }, { 5, 8 }, { 65537, 131072 }, { 1u << 31, 1u << 31 },
    };

    for (unsigned i = 0; i < ARRAY_SIZE(powers); i++)
        assert_int_equal(round_up_pow2(powers[i][0]), powers[i][1]);
    assert_int_equal(round_up(0, 8), 0);
    assert_int_equal(round_up(1, 8), 8);
    assert_int_equal(round_up(8, 8), 8);
    assert_int_equal(round_up(9, 8), 16);
    assert_int_equal(round_up(10, 7), 14);
}

static void a_short_copy_has_all_its_bytes_and_no_others(void **state)
{
    uint8_t from[100], to[102];

    for (unsigned i = 0; i < sizeof(from); i++)
        from[i] = i + 1;
    for (uint32_t n = 0; n <= sizeof(from); n++) {
        memset(to, 0xee, sizeof(to));
        copy_short(to + 1, from, n);
        assert_int_equal(to[0], 0xee);
        assert_memory_equal(to + 1, from, n);
        assert_int_equal(to[n + 1], 0xee);
    }
}

static void integers_of_any_width_are_in_network_order(void **state)
{
    uint8_t bytes[8];

    for (unsigned count = 1; count <= 8; count++) {
        memset(bytes, 0xee, sizeof(bytes));
        bytes_put(bytes, count, 0x1122334455667788);
        assert_int_equal(bytes[count - 1], 0x88);
        assert_int_equal(bytes[0], 0x11 * (9 - count));
        if (count < 8)
            assert_int_equal(bytes[count], 0xee);
        assert_int_equal(bytes_get(bytes, count),
                         0x1122334455667788ull & ~0ull >> (64 - 8 * count));
    }
}

static void clocks_count_nanoseconds(void **state)
{
    struct timespec before, after;

    clock_gettime(CLOCK_MONOTONIC, &before);
    uint64_t now = now_ns();
    clock_gettime(CLOCK_MONOTONIC, &after);
    assert_in_range(now, before.tv_sec * 1000000000ull + before.tv_nsec,
                    after.tv_sec * 1000000000ull + after.tv_nsec);
    clock_gettime(CLOCK_MONOTONIC_COARSE, &before);
    now = coarse_now_ns();
    clock_gettime(CLOCK_MONOTONIC_COARSE, &after);
    assert_in_range(now, before.tv_sec * 1000000000ull + before.tv_nsec,
                    after.tv_sec * 1000000000ull + after.tv_nsec);
}

/* SplitMix64 and FNV-1a with their published values. */
static void numbers_are_as_published(void **state)
{
    uint64_t seed = 1234567, zero = 0;

    assert_int_equal(random_next(&seed), 6457827717110365317ull);
    assert_int_equal(random_next(&seed), 3203168211198807973ull);
    assert_int_equal(random_next(&zero), 0xe220a8397b1dcdafull);
    zero = 0;
    assert_true(random_fraction(&zero) == (0xe220a8397b1dcdafull >> 11) * 0x1p-53);
    assert_int_equal(hash_text(""), 0xcbf29ce484222325ull);
    assert_int_equal(hash_text("a"), 0xaf63dc4c8601ec8cull);
    assert_int_equal(hash_text("foobar"), 0x85944171f73967e8ull);
}

static void a_place_among_sorted_numbers(void **state)
{
    double numbers[20] = { 5, 1, 4, 2, 3 };

    sorted_make(numbers, 5);
    for (int i = 0; i < 5; i++)
        assert_true(numbers[i] == i + 1);
    assert_true(sorted_median(numbers, 1) == 1);
    assert_true(sorted_median(numbers, 2) == 1.5);
    assert_true(sorted_median(numbers, 5) == 3);
    for (int i = 0; i < 20; i++)
        numbers[i] = i + 1;
    assert_true(sorted_nine_in_ten(numbers, 1) == 1);
    assert_true(sorted_nine_in_ten(numbers, 2) == 2);
    assert_true(sorted_nine_in_ten(numbers, 9) == 9);
    assert_true(sorted_nine_in_ten(numbers, 10) == 9);
    assert_true(sorted_nine_in_ten(numbers, 11) == 10);
    assert_true(sorted_nine_in_ten(numbers, 20) == 18);
}

/* The values of active_width and active_speed, IBA volume 1, PortInfo. */
static void a_link_has_lanes_and_a_speed(void **state)
{
    static const unsigned lanes[] = { 1, 4, 8, 12, 2, 0, 0, 0 };
    static const struct link_speed speeds[] = {
        { "SDR", 25 },  { "DDR", 50 },  { "QDR", 100 }, { "FDR10", 100 },
        { "FDR", 140 }, { "EDR", 250 }, { "HDR", 500 }, { "NDR", 1000 },
    };

    for (int bit = 0; bit < 8; bit++) {
        assert_int_equal(link_lanes(1 << bit), lanes[bit]);
        assert_string_equal(link_speed(1 << bit)->name, speeds[bit].name);
        assert_int_equal(link_speed(1 << bit)->lane, speeds[bit].lane);
    }
    assert_int_equal(link_lanes(0), 0);
}

static void expect_rank(const char *rank, const char *node, const char *local)
{
    unsetenv("VERBENA_NODE");
    unsetenv("VERBENA_LOCAL_RANK");
    unsetenv("VERBENA_RANK");
    rank_env_set();
    if (!node) {
        assert_null(getenv("VERBENA_NODE"));
        assert_null(getenv("VERBENA_LOCAL_RANK"));
        assert_null(getenv("VERBENA_RANK"));
        return;
    }
    assert_string_equal(getenv("VERBENA_NODE"), node);
    assert_string_equal(getenv("VERBENA_LOCAL_RANK"), local);
    assert_string_equal(getenv("VERBENA_RANK"), rank);
}

static void ranks_are_dealt_to_nodes(void **state)
{
    static const char *const variables[] = { "SLURM_PROCID", "PMI_RANK", "PMIX_RANK",
                                             "OMPI_COMM_WORLD_RANK" };
    static const char *const expected[][2] = { { "0", "0" }, { "0", "1" }, { "1", "0" },
                                               { "1", "1" }, { "2", "0" }, { "2", "1" },
                                               { "0", "2" }, { "0", "3" }, { "1", "2" } };
    char rank[8];

    setenv("VERBENA_RANKS_PER_NODE", "2", 1);
    expect_rank(NULL, NULL, NULL);
    setenv("OMPI_COMM_WORLD_RANK", "", 1);
    expect_rank(NULL, NULL, NULL);
    unsetenv("OMPI_COMM_WORLD_RANK");
    for (unsigned i = 0; i < ARRAY_SIZE(variables); i++) { /* the later ones go first */
        snprintf(rank, sizeof(rank), "%u", i + 3);
        setenv(variables[i], rank, 1);
        expect_rank(rank, "0", rank); /* of one node */
    }
    setenv("VERBENA_NODES", "3", 1);
    for (unsigned i = 0; i < ARRAY_SIZE(expected); i++) {
        snprintf(rank, sizeof(rank), "%u", i);
        setenv("OMPI_COMM_WORLD_RANK", rank, 1);
        expect_rank(rank, expected[i][0], expected[i][1]);
    }
    setenv("VERBENA_NODES", "0", 1);
    expect_rank(rank, NULL, NULL);
    setenv("VERBENA_NODES", "3", 1);
    setenv("VERBENA_RANKS_PER_NODE", "0", 1);
    expect_rank(rank, NULL, NULL);
    unsetenv("VERBENA_RANKS_PER_NODE");
    expect_rank(rank, NULL, NULL);
}

static sem_t answered;
static struct {
    sigset_t blocked;
    int detached;
    size_t stack_bytes;
} thread;

static void *look_at_itself(void *argument)
{
    pthread_attr_t attr;

    pthread_sigmask(SIG_SETMASK, NULL, &thread.blocked);
    pthread_getattr_np(pthread_self(), &attr);
    pthread_attr_getdetachstate(&attr, &thread.detached);
    pthread_attr_getstacksize(&attr, &thread.stack_bytes);
    pthread_attr_destroy(&attr);
    sem_post(argument);
    return NULL;
}

static void a_thread_leaves_signals_to_the_program(void **state)
{
    static const int numbers[] = { SIGINT, SIGTERM, SIGUSR1, SIGCHLD, SIGALRM };
    sigset_t ours;

    sem_init(&answered, 0, 0);
    assert_int_equal(thread_start(look_at_itself, &answered, 1 << 18), 0);
    sem_wait(&answered);
    pthread_sigmask(SIG_SETMASK, NULL, &ours);
    for (unsigned i = 0; i < ARRAY_SIZE(numbers); i++) {
        assert_true(sigismember(&thread.blocked, numbers[i]));
        assert_false(sigismember(&ours, numbers[i]));
    }
    assert_int_equal(thread.detached, PTHREAD_CREATE_DETACHED);
    assert_int_equal(thread.stack_bytes, 1 << 18);
}

static struct spinlock lock;
static uint64_t guarded;

static void *count_up(void *argument)
{
    for (int i = 0; i < 100000; i++) {
        spin_lock(&lock);
        guarded++;
        spin_unlock(&lock);
    }
    return NULL;
}

static void a_spinlock_excludes_others(void **state)
{
    pthread_t threads[3];

    spin_lock(&lock);
    assert_false(spin_trylock(&lock));
    spin_unlock(&lock);
    assert_true(spin_trylock(&lock));
    spin_unlock(&lock);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_up, NULL), 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(guarded, 300000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_rounded_up),
        cmocka_unit_test(a_short_copy_has_all_its_bytes_and_no_others),
        cmocka_unit_test(integers_of_any_width_are_in_network_order),
        cmocka_unit_test(clocks_count_nanoseconds),
        cmocka_unit_test(numbers_are_as_published),
        cmocka_unit_test(a_place_among_sorted_numbers),
        cmocka_unit_test(a_link_has_lanes_and_a_speed),
        cmocka_unit_test(ranks_are_dealt_to_nodes),
        cmocka_unit_test(a_thread_leaves_signals_to_the_program),
        cmocka_unit_test(a_spinlock_excludes_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
