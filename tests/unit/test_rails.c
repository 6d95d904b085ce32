/* SPDX-License-Identifier: BSD-2-Clause */
/* Plans of every policy: each byte once, in order, on rails that are up, in stripes that fit the
 * limits; and the bookkeeping that policies rest on. */
#include "rails/rails.h"
#include "rails/stripes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#define PLANS 20000

struct rig {
    struct rails_traffic traffic;
    struct rails_set set;
    uint64_t now;
};

static void rig_init(struct rig *rig, const char *policy, uint32_t rails)
{
    struct rails_limits limits = rails_default_limits;

    rig->now = 1000;
    rails_traffic_init(&rig->traffic, rails_policy_find(policy), &limits);
    rails_set_init(&rig->set, &rig->traffic);
    for (uint32_t i = 0; i < rails; i++)
        assert_int_equal(rails_add(&rig->set, i / 4, i / 2 % 2, i % 2), i);
}

static void plan(struct rig *rig, enum rails_class class, uint64_t size, struct rails_plan *out)
{
    struct rails_message message = { .class = class, .size = size };

    assert_true(rails_plan(&rig->set, &message, out));
}

static void post(struct rig *rig, struct rails_plan *plan)
{
    for (uint32_t i = 0; i < plan->count; i++)
        rails_given(&rig->set, &plan->stripe[i], rig->now);
}

static void complete(struct rig *rig, const struct rails_plan *plan)
{
    for (uint32_t i = 0; i < plan->count; i++)
        rails_completed(&rig->set, &plan->stripe[i], true, rig->now);
    rails_ended(&rig->set, plan);
}

/* A message at a time, on rails of the given rates in bytes per nanosecond. */
static void exercise(struct rig *rig, const double *rates, enum rails_class class, uint64_t size)
{
    for (int round = 0; round < 200; round++) {
        struct rails_plan done;
        uint64_t last = rig->now;

        plan(rig, class, size, &done);
        post(rig, &done);
        for (uint32_t i = 0; i < done.count; i++) {
            double time = (double)done.stripe[i].length / rates[done.stripe[i].rail];
            uint64_t end = rig->now + (uint64_t)time;

            rails_completed(&rig->set, &done.stripe[i], true, end);
            last = end > last ? end : last;
        }
        rails_ended(&rig->set, &done);
        rig->now = last;
    }
}

static uint64_t on_rail(const struct rails_plan *plan, uint32_t rail)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < plan->count; i++)
        bytes += plan->stripe[i].rail == rail ? plan->stripe[i].length : 0;
    return bytes;
}

static void check_plan(const struct rig *rig, const struct rails_plan *plan, uint64_t size)
{
    const struct rails_limits *limits = &rig->traffic.limits;
    bool used[RAILS_MAX] = { false };
    uint64_t offset = 0;

    assert_in_range(plan->count, 1, RAILS_MAX);
    for (uint32_t i = 0; i < plan->count; i++) {
        const struct rails_stripe *stripe = &plan->stripe[i];

        assert_in_range(stripe->rail, 0, rig->set.count - 1);
        assert_true(rig->set.rail[stripe->rail].up);
        assert_false(used[stripe->rail]);
        used[stripe->rail] = true;
        assert_int_equal(stripe->offset, offset);
        assert_int_equal(stripe->offset % limits->alignment, 0);
        if (plan->count > 1)
            assert_true(stripe->length >= limits->minimum_stripe);
        offset += stripe->length;
    }
    assert_int_equal(offset, size);
    if (size < limits->stripe_threshold)
        assert_int_equal(plan->count, 1);
}

static uint64_t random_size(unsigned int *seed)
{
    return (uint64_t)rand_r(seed) & ((1ull << (rand_r(seed) % 27)) - 1);
}

/* Random loads, failures and returns. */
static void check_policy(const char *name, unsigned int seed)
{
    struct rails_plan under_way[8];
    unsigned int count = 0, dice = seed;
    struct rig rig;

    rig_init(&rig, name, 1 + rand_r(&dice) % RAILS_MAX);
    rig.traffic.limits.stripe_threshold = 1 + rand_r(&dice) % 65536;
    rig.traffic.limits.minimum_stripe = rand_r(&dice) % 16384;
    rig.traffic.limits.alignment = 1 << rand_r(&dice) % 13;
    rig.traffic.limits.bound = rand_r(&dice) % 8;
    for (int i = 0; i < PLANS; i++) {
        uint32_t rail = rand_r(&dice) % rig.set.count;
        uint64_t size = random_size(&dice);

        rig.now += rand_r(&dice) % 100000;
        if (count == 8 || (count && rand_r(&dice) % 2))
            complete(&rig, &under_way[--count]);
        if (!count && rand_r(&dice) % 8 == 0 && rails_up(&rig.set) > 1)
            rails_failed(&rig.set, rail);
        else if (!rig.set.rail[rail].up && rand_r(&dice) % 4 == 0)
            rails_restored(&rig.set, rail);
        plan(&rig, rand_r(&dice) % RAILS_CLASSES, size, &under_way[count]);
        check_plan(&rig, &under_way[count], size);
        post(&rig, &under_way[count++]);
    }
}

static void test_every_byte_once(void **state)
{
    for (const struct rails_policy *const *policy = rails_policies; *policy; policy++) {
        for (unsigned int seed = 1; seed <= 10; seed++)
            check_policy((*policy)->name, seed);
    }
}

static void test_names(void **state)
{
    char names[256] = "";

    for (const struct rails_policy *const *policy = rails_policies; *policy; policy++) {
        strcat(names, *names ? " " : "");
        strcat(names, (*policy)->name);
        assert_ptr_equal(rails_policy_find((*policy)->name), *policy);
    }
    assert_string_equal(names, RAILS_POLICY_NAMES);
    assert_null(rails_policy_find("stripes"));
}

static void test_same_calls_same_plans(void **state)
{
    static const double rates[] = { 1, 0.5, 1, 2 };

    for (const struct rails_policy *const *policy = rails_policies; *policy; policy++) {
        struct rails_plan first = { 0 }, second = { 0 };
        struct rig one, other;

        rig_init(&one, (*policy)->name, 4);
        rig_init(&other, (*policy)->name, 4);
        exercise(&one, rates, RAILS_COLLECTIVE, 300000);
        exercise(&other, rates, RAILS_COLLECTIVE, 300000);
        plan(&one, RAILS_BLOCKING, 123456, &first);
        plan(&other, RAILS_BLOCKING, 123456, &second);
        assert_memory_equal(&first, &second, sizeof(first));
    }
}

static void test_binding(void **state)
{
    struct rails_plan out;
    struct rig rig;

    rig_init(&rig, "binding", 4);
    rig.traffic.limits.bound = 6;
    plan(&rig, RAILS_NONBLOCKING, 1 << 20, &out);
    assert_int_equal(out.count, 1);
    assert_int_equal(out.stripe[0].rail, 2);
    rails_failed(&rig.set, 2);
    plan(&rig, RAILS_NONBLOCKING, 1 << 20, &out);
    assert_int_equal(out.stripe[0].rail, 0);
}

static void test_round_robin(void **state)
{
    static const uint32_t expected[] = { 0, 1, 3, 0, 1, 3 };
    struct rails_plan out;
    struct rig rig;

    rig_init(&rig, "round-robin", 4);
    rails_failed(&rig.set, 2);
    for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
        plan(&rig, RAILS_BLOCKING, 1 << 20, &out);
        assert_int_equal(out.count, 1);
        assert_int_equal(out.stripe[0].rail, expected[i]);
    }
}

static void test_sets_begin_apart(void **state)
{
    struct rails_message message = { .class = RAILS_NONBLOCKING, .size = 8 };
    struct rails_plan out;
    struct rails_set second;
    struct rig rig;

    rig_init(&rig, "round-robin", 4);
    rails_set_init(&second, &rig.traffic);
    for (uint32_t i = 0; i < 4; i++)
        rails_add(&second, 0, 0, i);
    assert_true(rails_plan(&rig.set, &message, &out));
    assert_int_equal(out.stripe[0].rail, 0);
    assert_true(rails_plan(&second, &message, &out));
    assert_int_equal(out.stripe[0].rail, 1);
}

static void test_striping(void **state)
{
    struct rails_plan out;
    struct rig rig;

    rig_init(&rig, "striping", 4);
    plan(&rig, RAILS_NONBLOCKING, 1 << 20, &out);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(on_rail(&out, i), 1 << 18);
    plan(&rig, RAILS_NONBLOCKING, rig.traffic.limits.stripe_threshold - 1, &out);
    assert_int_equal(out.count, 1);
    rig.traffic.limits.minimum_stripe = 8 << 10;
    plan(&rig, RAILS_NONBLOCKING, 20 << 10, &out);
    assert_int_equal(out.count, 2);
    assert_int_equal(out.stripe[0].length, 10 << 10);
}

static void test_weighted_follows_rates(void **state)
{
    static const double rates[] = { 3, 1 };
    struct rails_plan out;
    struct rig rig;

    rig_init(&rig, "weighted", 2);
    plan(&rig, RAILS_BLOCKING, 1 << 20, &out);
    assert_int_equal(on_rail(&out, 0), 1 << 19);
    rails_ended(&rig.set, &out);
    exercise(&rig, rates, RAILS_BLOCKING, 1 << 20);
    plan(&rig, RAILS_BLOCKING, 1 << 20, &out);
    assert_in_range(on_rail(&out, 0), (1 << 20) * 0.74, (1 << 20) * 0.76);
}

static void test_close_rates_are_equal(void **state)
{
    static const double rates[] = { 1, 0.95 };
    struct rails_plan out;
    struct rig rig;

    rig_init(&rig, "weighted", 2);
    exercise(&rig, rates, RAILS_BLOCKING, 1 << 20);
    plan(&rig, RAILS_BLOCKING, 1 << 20, &out);
    assert_int_equal(on_rail(&out, 0), 1 << 19);
}

static void test_epc_by_marker(void **state)
{
    static const struct {
        enum rails_class class;
        uint64_t size;
        uint32_t stripes;
    } rows[] = {
        { RAILS_BLOCKING, 1 << 20, 4 },    { RAILS_COLLECTIVE, 1 << 20, 4 },
        { RAILS_NONBLOCKING, 1 << 20, 1 }, { RAILS_PERSISTENT, 1 << 20, 1 },
        { RAILS_BLOCKING, 1 << 10, 1 },    { RAILS_COLLECTIVE, 1 << 10, 1 },
    };
    static const enum rails_class alone[] = { RAILS_BLOCKING, RAILS_COLLECTIVE };
    struct rails_plan first, second;
    struct rig rig;

    rig_init(&rig, "epc", 4);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        plan(&rig, rows[i].class, rows[i].size, &first);
        assert_int_equal(first.count, rows[i].stripes);
    }
    for (size_t i = 0; i < sizeof(alone) / sizeof(*alone); i++) {
        plan(&rig, alone[i], 1 << 10, &first);
        plan(&rig, alone[i], 1 << 10, &second);
        assert_int_equal(first.stripe[0].rail, second.stripe[0].rail);
    }
    plan(&rig, RAILS_NONBLOCKING, 1 << 10, &first);
    plan(&rig, RAILS_NONBLOCKING, 1 << 10, &second);
    assert_int_not_equal(first.stripe[0].rail, second.stripe[0].rail);
}

/* Non-blocking sends that are waited for one by one are alone, whatever they are called; blocking
 * ones of many threads are not. */
static void test_adaptive_learns(void **state)
{
    static const double rates[] = { 1, 1, 1, 1 };
    struct rails_plan window[32], out;
    struct rig rig;

    rig_init(&rig, "adaptive", 4);
    plan(&rig, RAILS_NONBLOCKING, 64 << 10, &out);
    assert_int_equal(out.count, 1);
    rails_ended(&rig.set, &out);
    exercise(&rig, rates, RAILS_NONBLOCKING, 64 << 10);
    plan(&rig, RAILS_NONBLOCKING, 64 << 10, &out);
    assert_int_equal(out.count, 4);
    rails_ended(&rig.set, &out);
    for (int i = 0; i < 32; i++)
        plan(&rig, RAILS_BLOCKING, 64 << 10, &window[i]);
    for (int i = 0; i < 32; i++)
        rails_ended(&rig.set, &window[i]);
    plan(&rig, RAILS_BLOCKING, 64 << 10, &out);
    assert_int_equal(out.count, 1);
}

/* Short messages whose end nobody has heard of yet do not make a long one share the rails. */
static void test_adaptive_ignores_short_ones(void **state)
{
    struct rails_plan shorts[16], out;
    struct rig rig;

    rig_init(&rig, "adaptive", 4);
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 16; i++)
            plan(&rig, RAILS_BLOCKING, 1 << 10, &shorts[i]);
        plan(&rig, RAILS_BLOCKING, 64 << 10, &out);
        assert_int_equal(out.count, 4);
        rails_ended(&rig.set, &out);
        for (int i = 0; i < 16; i++)
            rails_ended(&rig.set, &shorts[i]);
    }
}

static void test_adaptive_avoids_the_busy(void **state)
{
    struct rails_message message = { .class = RAILS_NONBLOCKING, .size = 64 << 10 };
    struct rails_plan out;
    struct rails_set other;
    struct rig rig;

    rig_init(&rig, "adaptive", 4);
    for (int i = 0; i < 3; i++) {
        struct rails_stripe busy = { .rail = i, .length = 1 << 20, .rated = true };

        rails_given(&rig.set, &busy, rig.now);
    }
    plan(&rig, RAILS_NONBLOCKING, 64 << 10, &out);
    assert_int_equal(out.stripe[0].rail, 3);
    plan(&rig, RAILS_BLOCKING, 64 << 10, &out);
    assert_int_equal(out.count, 1);
    assert_int_equal(out.stripe[0].rail, 3);
    rails_set_init(&other, &rig.traffic);
    for (uint32_t port = 0; port < 2; port++)
        rails_add(&other, 0, port, 0);
    other.next = 0;
    assert_true(rails_plan(&other, &message, &out));
    assert_int_equal(out.stripe[0].rail, 1);
}

/* Alone, short messages stay where they are; once their end is open they take turns. */
static void test_adaptive_short_ones_stay(void **state)
{
    struct rails_plan first, out, window[4];
    bool used[4] = { false };
    struct rig rig;

    rig_init(&rig, "adaptive", 4);
    plan(&rig, RAILS_BLOCKING, 1 << 10, &first);
    post(&rig, &first);
    complete(&rig, &first);
    for (int i = 0; i < 10; i++) {
        plan(&rig, i % RAILS_CLASSES, 1 << 10, &out);
        assert_int_equal(out.stripe[0].rail, first.stripe[0].rail);
        post(&rig, &out);
        complete(&rig, &out);
    }
    for (int i = 0; i < 4; i++) {
        plan(&rig, RAILS_BLOCKING, 1 << 10, &window[i]);
        post(&rig, &window[i]);
        used[window[i].stripe[0].rail] = true;
    }
    assert_true(used[0] && used[1] && used[2] && used[3]);
    for (int i = 0; i < 4; i++)
        complete(&rig, &window[i]);
    rails_failed(&rig.set, first.stripe[0].rail);
    plan(&rig, RAILS_BLOCKING, 1 << 10, &out);
    assert_int_not_equal(out.stripe[0].rail, first.stripe[0].rail);
}

/* Whatever went before, the same part of a buffer takes the same rail. */
static void test_parts_keep_their_rail(void **state)
{
    static const char *const policies[] = { "striping", "weighted", "epc", "adaptive" };
    struct rails_plan out;
    struct rig rig;

    for (size_t k = 0; k < sizeof(policies) / sizeof(*policies); k++) {
        rig_init(&rig, policies[k], 4);
        for (int round = 0; round < 8; round++) {
            plan(&rig, RAILS_NONBLOCKING, 1 << 10, &out);
            post(&rig, &out);
            complete(&rig, &out);
            plan(&rig, RAILS_COLLECTIVE, 1 << 20, &out);
            assert_int_equal(out.count, 4);
            for (uint32_t i = 0; i < 4; i++)
                assert_int_equal(out.stripe[i].rail, i);
            post(&rig, &out);
            complete(&rig, &out);
        }
    }
}

/* With fewer stripes than rails, all rails have their turn. */
static void test_few_stripes_take_turns(void **state)
{
    bool used[4] = { false };
    struct rails_plan out;
    struct rig rig;

    rig_init(&rig, "striping", 4);
    for (int round = 0; round < 2; round++) {
        plan(&rig, RAILS_BLOCKING, 2 * rig.traffic.limits.minimum_stripe, &out);
        assert_int_equal(out.count, 2);
        used[out.stripe[0].rail] = used[out.stripe[1].rail] = true;
    }
    assert_true(used[0] && used[1] && used[2] && used[3]);
}

/* A message over all rails is nobody's turn: the next short one goes where it would have gone. */
static void test_full_stripe_takes_no_turn(void **state)
{
    struct rails_plan out;
    struct rig rig;

    rig_init(&rig, "adaptive", 4);
    rig.set.next = 2;
    plan(&rig, RAILS_NONBLOCKING, 4 << 20, &out);
    assert_int_equal(out.count, 4);
    assert_int_equal(rig.set.next, 2);
    rig.set.next = 2;
    plan(&rig, RAILS_NONBLOCKING, 8, &out);
    assert_int_equal(out.count, 1);
    assert_int_equal(rig.set.next, out.stripe[0].rail + 1);
}

/* A rail that also carries short messages, of which nobody has heard, is not slower for that. */
static void test_rates_are_of_long_ones(void **state)
{
    static const double rates[] = { 1, 1 };
    struct rails_stripe unheard = { .rail = 0, .length = 1 << 10 };
    struct rails_plan out;
    struct rig rig;

    rig_init(&rig, "weighted", 2);
    rails_given(&rig.set, &unheard, rig.now);
    rig.now += 1000000000;
    exercise(&rig, rates, RAILS_BLOCKING, 1 << 20);
    assert_in_range(rig.set.rail[0].rate * 1000, 990, 1010);
    assert_int_equal(rig.set.rail[0].bytes, 0);
    assert_int_equal(rig.set.rail[0].messages, 1);
    plan(&rig, RAILS_BLOCKING, 1 << 20, &out);
    assert_int_equal(on_rail(&out, 0), 1 << 19);
}

/* One that is slow the first time gets its part the next time. */
static void test_first_rate_does_not_count(void **state)
{
    struct rails_plan out;
    struct rig rig;

    rig_init(&rig, "weighted", 2);
    plan(&rig, RAILS_BLOCKING, 16 << 10, &out);
    post(&rig, &out);
    rails_completed(&rig.set, &out.stripe[0], true, rig.now + 10000);
    rails_completed(&rig.set, &out.stripe[1], true, rig.now + 100000);
    rails_ended(&rig.set, &out);
    assert_true(rig.set.rail[0].rate == 0 && rig.set.rail[1].rate == 0);
    plan(&rig, RAILS_BLOCKING, 16 << 10, &out);
    assert_int_equal(on_rail(&out, 1), 8 << 10);
}

/* Rates to plan with, of rails that are slower than a byte in a nanosecond, too. */
static void test_rates_to_plan_with(void **state)
{
    static const double known[][2] = { { 0.3, 0.2 }, { 0.3, 0.15 }, { 0.32, 0 }, { 0.32, 0.01 } };
    static const double used[][2] = {
        { 0.25, 0.25 }, { 0.3, 0.15 }, { 0.32, 0.32 }, { 0.32, 0.02 }
    };
    double rate[RAILS_MAX];
    struct rig rig;

    rig_init(&rig, "weighted", 2);
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
        for (int rail = 0; rail < 2; rail++)
            rig.set.rail[rail].rate = known[i][rail];
        stripes_rates(&rig.set, rate);
        for (int rail = 0; rail < 2; rail++)
            assert_float_equal(rate[rail], used[i][rail], 1e-9);
    }
}

static void test_failed_rail_is_forgotten(void **state)
{
    struct rails_message message = { .class = RAILS_BLOCKING, .size = 1 << 20 };
    struct rails_plan out, again;
    struct rig rig;

    rig_init(&rig, "striping", 2);
    plan(&rig, RAILS_BLOCKING, 1 << 20, &out);
    post(&rig, &out);
    assert_int_equal(rig.traffic.port[0].bytes, 1 << 20);
    rails_failed(&rig.set, 0);
    assert_int_equal(rig.set.rail[0].bytes, 0);
    assert_int_equal(rig.traffic.port[0].bytes, 1 << 19);
    assert_true(rails_replan(&rig.set, &message, &again));
    assert_int_equal(again.count, 1);
    assert_int_equal(again.stripe[0].rail, 1);
    assert_int_equal(rig.traffic.begun, 1);
    rails_completed(&rig.set, &out.stripe[1], false, rig.now);
    assert_true(rig.set.rail[1].rate == 0);
    rails_failed(&rig.set, 1);
    assert_int_equal(rig.traffic.port[0].bytes, 0);
    assert_false(rails_plan(&rig.set, &message, &out));
    rails_restored(&rig.set, 1);
    assert_true(rails_plan(&rig.set, &message, &out));
}

static void test_set_is_full(void **state)
{
    struct rig rig;

    rig_init(&rig, "binding", RAILS_MAX);
    assert_int_equal(rails_add(&rig.set, 0, 0, 0), -1);
}

/* Whatever place it has among the others. */
static void test_too_light_a_rail_is_left_out(void **state)
{
    const struct rails_limits limits = { .alignment = 8, .minimum_stripe = 256 };

    for (uint32_t light = 0; light < 3; light++) {
        struct stripes_shares shares = { .count = 3 };
        struct rails_plan plan;
        uint32_t kept = 0;

        for (uint32_t i = 0; i < 3; i++)
            shares.share[i] = (struct stripes_share){ .rail = i,
                                                      .weight = i == light ? 1 : kept++ ? 1000 : 3000 };
        stripes_cut(&plan, &limits, 32000, &shares);
        assert_int_equal(plan.count, 2);
        assert_int_equal(plan.stripe[0].rail, light == 0 ? 1 : 0);
        assert_int_equal(plan.stripe[1].rail, light == 2 ? 1 : 2);
        assert_int_equal(plan.stripe[0].offset, 0);
        assert_int_equal(plan.stripe[0].length, 24000);
        assert_int_equal(plan.stripe[1].offset, 24000);
        assert_int_equal(plan.stripe[1].length, 8000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_byte_once),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_same_calls_same_plans),
        cmocka_unit_test(test_binding),
        cmocka_unit_test(test_round_robin),
        cmocka_unit_test(test_sets_begin_apart),
        cmocka_unit_test(test_striping),
        cmocka_unit_test(test_weighted_follows_rates),
        cmocka_unit_test(test_close_rates_are_equal),
        cmocka_unit_test(test_epc_by_marker),
        cmocka_unit_test(test_adaptive_learns),
        cmocka_unit_test(test_adaptive_ignores_short_ones),
        cmocka_unit_test(test_adaptive_avoids_the_busy),
        cmocka_unit_test(test_adaptive_short_ones_stay),
        cmocka_unit_test(test_parts_keep_their_rail),
        cmocka_unit_test(test_few_stripes_take_turns),
        cmocka_unit_test(test_full_stripe_takes_no_turn),
        cmocka_unit_test(test_rates_are_of_long_ones),
        cmocka_unit_test(test_first_rate_does_not_count),
        cmocka_unit_test(test_rates_to_plan_with),
        cmocka_unit_test(test_failed_rail_is_forgotten),
        cmocka_unit_test(test_set_is_full),
        cmocka_unit_test(test_too_light_a_rail_is_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
