/* SPDX-License-Identifier: BSD-2-Clause */
/* RC and XRC: whatever the wire does, everything is carried out once and in order. */

#include "transport_pair.h"

#include "transport/psn.h"
#include "util/util.h"

#include <stdio.h>

/* Every state of the machines but those of unreliable services and of failure. */
static const struct {
    const char *machine;
    const char *state;
} states[] = {
    { "requester", "fetch" },          { "requester", "check order" },
    { "requester", "check window" },   { "requester", "build" },
    { "requester", "advance" },        { "requester", "sent" },
    { "requester", "idle" },           { "responder", "check PSN" },
    { "responder", "check sequence" }, { "responder", "check length" },
    { "responder", "check resources" },
    { "responder", "check access" },
    { "responder", "take receive" },   { "responder", "execute" },
    { "responder", "complete" },       { "responder", "accept" },
    { "responder", "duplicate" },      { "responder", "gap" },
    { "responder", "refuse" },         { "responder", "done" },
    { "completer", "check PSN" },      { "completer", "acknowledge" },
    { "completer", "read" },           { "completer", "atomic" },
    { "completer", "syndrome" },       { "completer", "wait" },
    { "completer", "lost" },           { "completer", "done" },
};

static bool entered[ARRAY_SIZE(states)];

static void note_state(struct transport_qp *qp, const char *machine, const char *state)
{
    for (unsigned i = 0; i < ARRAY_SIZE(states); i++)
        if (strcmp(states[i].machine, machine) == 0 && strcmp(states[i].state, state) == 0)
            entered[i] = true;
}

static uint64_t running_seed;

static int tell_seed(void **state)
{
    if (running_seed)
        fprintf(stderr, "it was seed %llu\n", (unsigned long long)running_seed);
    running_seed = 0;
    return 0;
}

static void run_random(uint64_t seed, struct transport_attributes attributes,
                       struct pair_faults faults, uint32_t requests, uint64_t receive_period_ns)
{
    static const uint32_t mtus[] = { 256, 512, 1024, 2048, 4096 };

    running_seed = seed;
    attributes.path_mtu = mtus[seed % ARRAY_SIZE(mtus)];
    attributes.send_psn = PSN_MASK - seed % 100;
    attributes.receive_psn = seed * 7919 & PSN_MASK;
    struct pair *pair = pair_new(seed, &attributes);
    pair->faults = faults;
    pair->ops.trace = seed % 4 ? NULL : note_state;
    for (unsigned i = 0; i < 2; i++) {
        pair->ends[i].receive_period_ns = receive_period_ns;
        for (uint32_t n = 0; n < requests; n++)
            pair_post_random(&pair->ends[i]);
    }
    pair_run(pair, PAIR_LONG_NS);
    pair_check_all_done(pair);
    pair_free(pair);
    running_seed = 0;
}

static void a_clean_wire_needs_no_retries(void **state)
{
    struct transport_attributes attributes = pair_attributes(SERVICE_RC);
    struct pair *pair = pair_new(1, &attributes);

    for (unsigned n = 0; n < 300; n++) {
        pair_post_random(&pair->ends[0]);
        pair_post_random(&pair->ends[1]);
    }
    pair_run(pair, PAIR_LONG_NS);
    pair_check_all_done(pair);
    for (unsigned i = 0; i < 2; i++) {
        const struct transport_counters *counters = &pair->ends[i].counters;
        assert_int_equal(counters->resent, 0);
        assert_int_equal(counters->rewinds, 0);
        assert_int_equal(counters->duplicates, 0);
        assert_int_equal(counters->gaps, 0);
    }
    pair_free(pair);
}

static void receives_that_come_late_are_waited_for(void **state)
{
    for (uint64_t seed = 1; seed <= 6; seed++)
        run_random(seed, pair_attributes(SERVICE_RC), (struct pair_faults){ 0 }, 100, 50000);
}

/* From one in a thousand to one in ten. */
static const unsigned rates[] = { 1, 10, 30, 100 };

static void each_fault_alone_changes_nothing(void **state)
{
    for (unsigned i = 0; i < ARRAY_SIZE(rates); i++) {
        const struct pair_faults faults[] = {
            { .drop = rates[i] },
            { .duplicate = rates[i] },
            { .reorder = rates[i] },
            { .corrupt = rates[i] },
        };
        for (unsigned which = 0; which < ARRAY_SIZE(faults); which++)
            for (uint64_t seed = 1; seed <= 3; seed++)
                run_random(seed * 100 + i * 10 + which, pair_attributes(SERVICE_RC), faults[which],
                           60, seed % 2 ? 0 : 20000);
    }
}

/* Seven retries, the most that verbs can ask for, are not enough for such a wire: eight exchanges
 * in a row do fail now and then. */
static void nor_do_all_together(void **state)
{
    struct transport_attributes attributes = pair_attributes(SERVICE_RC);

    attributes.retry_count = 30;
    for (unsigned i = 0; i < ARRAY_SIZE(rates); i++)
        for (uint64_t seed = 1; seed <= 5; seed++)
            run_random(seed * 10 + i, attributes,
                       (struct pair_faults){ rates[i], rates[i], rates[i], rates[i] }, 60,
                       seed % 2 ? 0 : 20000);
}

static void nor_when_most_exchanges_fail(void **state)
{
    struct transport_attributes attributes = pair_attributes(SERVICE_RC);

    attributes.retry_count = 200;
    for (uint64_t seed = 1; seed <= 8; seed++)
        run_random(seed, attributes,
                   (struct pair_faults){ .drop = 300, .duplicate = 300, .reorder = 300 }, 60,
                   seed % 2 ? 0 : 20000);
}

static void xrc_is_as_reliable(void **state)
{
    for (uint64_t seed = 1; seed <= 5; seed++)
        run_random(seed, pair_attributes(SERVICE_XRC),
                   (struct pair_faults){ .drop = 50, .duplicate = 50, .reorder = 50 }, 60, 20000);
}

static void any_window_will_do(void **state)
{
    static const uint32_t windows[] = { 1, 2, 7, 1000 };
    static const uint32_t ack_every[] = { 0, 1, 5 };

    for (unsigned i = 0; i < ARRAY_SIZE(windows); i++)
        for (unsigned n = 0; n < ARRAY_SIZE(ack_every); n++) {
            struct transport_attributes attributes = pair_attributes(SERVICE_RC);
            attributes.window = windows[i];
            attributes.ack_every = ack_every[n];
            attributes.max_reads = 1 + i * 5;
            attributes.responder_resources = 1 + i * 5;
            run_random(i * 10 + n + 1, attributes,
                       (struct pair_faults){ .drop = 20, .reorder = 20 }, 60, 0);
        }
}

/* What has completed when a QP gives up is right all the same, and nothing happened twice. */
static void giving_up_breaks_no_promise(void **state)
{
    unsigned given_up = 0;

    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct transport_attributes attributes = pair_attributes(SERVICE_RC);
        attributes.retry_count = 2;
        struct pair *pair = pair_new(seed, &attributes);
        pair->faults = (struct pair_faults){ .drop = 300, .duplicate = 100, .reorder = 100 };
        for (unsigned n = 0; n < 60; n++)
            pair_post_random(&pair->ends[0]);
        pair_run(pair, PAIR_LONG_NS);
        if (pair->ends[0].failed) {
            given_up++;
            assert_int_equal(pair->ends[0].why, TRANSPORT_RETRY_EXCEEDED);
            transport_flush(&pair->ends[0].qp);
        }
        assert_int_equal(pair->ends[0].completed, pair->ends[0].posted);
        pair_check_completed(&pair->ends[0]);
        pair_free(pair);
    }
    assert_true(given_up > 0);
}

/* Or the tests above would say little. */
static void every_state_was_entered(void **state)
{
    for (unsigned i = 0; i < ARRAY_SIZE(states); i++)
        if (!entered[i])
            fail_msg("%s: %s", states[i].machine, states[i].state);
}

static unsigned losses;

static bool lose_some(struct pair_end *from, const struct packet *packet)
{
    return losses && losses--;
}

/* Probes come before the timeout, cost no retries, and do nothing where no request waits. */
static void a_probe_asks_before_the_timeout(void **state)
{
    struct pair *pair = pair_plain();
    struct pair_end *end = &pair->ends[0];
    const unsigned probes = 2 * end->qp.attributes.retry_count;
    uint64_t timeout;

    transport_probe(&end->qp);
    assert_true(transport_deadline(&end->qp) == TRANSPORT_NEVER);
    losses = probes; /* the request, and all probes but the last */
    pair->lose = lose_some;
    pair_post(end, TRANSPORT_WRITE, 100);
    pair_run(pair, pair->now + 3 * PAIR_LINK_NS);
    timeout = transport_deadline(&end->qp);
    assert_true(timeout > pair->now + 100 * PAIR_LINK_NS && timeout != TRANSPORT_NEVER);
    for (unsigned i = 0; i < probes; i++) {
        assert_int_equal(end->completed, 0);
        transport_probe(&end->qp);
        pair_run(pair, pair->now + 3 * PAIR_LINK_NS);
    }
    assert_int_equal(end->completed, 1);
    assert_true(pair->now < timeout);
    pair_check_all_done(pair);
    pair_free(pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clean_wire_needs_no_retries),
        cmocka_unit_test_teardown(receives_that_come_late_are_waited_for, tell_seed),
        cmocka_unit_test_teardown(each_fault_alone_changes_nothing, tell_seed),
        cmocka_unit_test_teardown(nor_do_all_together, tell_seed),
        cmocka_unit_test_teardown(nor_when_most_exchanges_fail, tell_seed),
        cmocka_unit_test_teardown(xrc_is_as_reliable, tell_seed),
        cmocka_unit_test_teardown(any_window_will_do, tell_seed),
        cmocka_unit_test(giving_up_breaks_no_promise),
        cmocka_unit_test(a_probe_asks_before_the_timeout),
        cmocka_unit_test(every_state_was_entered),
    };

    return cmocka_run_group_tests_name("transport_reliable", tests, NULL, NULL);
}
