/* SPDX-License-Identifier: BSD-2-Clause */
/* UC and UD: a message arrives whole, or not at all. */

#include "transport_pair.h"

#define MESSAGES 400

static struct pair *run(uint64_t seed, enum transport_service service, struct pair_faults faults)
{
    struct transport_attributes attributes = pair_attributes(service);
    attributes.path_mtu = seed % 2 ? 256 : 1024;
    struct pair *pair = pair_new(seed, &attributes);

    pair->faults = faults;
    for (unsigned n = 0; n < MESSAGES; n++)
        pair_post_random(&pair->ends[0]);
    pair_run(pair, PAIR_LONG_NS);
    assert_int_equal(pair->ends[0].completed, MESSAGES);
    assert_false(pair->ends[0].failed || pair->ends[1].failed);
    assert_int_equal(pair->ends[1].packets_sent, 0);
    return pair;
}

static uint32_t messages_for_receives(const struct pair_end *end)
{
    uint32_t messages = 0;

    for (uint32_t i = 0; i < end->posted; i++)
        messages += end->requests[i].wqe.operation != TRANSPORT_WRITE;
    return messages;
}

static void nothing_is_lost_on_a_clean_wire(void **state)
{
    static const enum transport_service services[] = { SERVICE_UC, SERVICE_UD };

    for (unsigned i = 0; i < 2; i++) {
        struct pair *pair = run(i + 1, services[i], (struct pair_faults){ 0 });
        pair_check_all_done(pair);
        pair_free(pair);
    }
}

/* The pair checks each message that arrives: its bytes, and that no later one came before it. */
static void uc_messages_are_whole_or_absent_and_in_order(void **state)
{
    static const unsigned rates[] = { 10, 100, 300 };

    for (unsigned i = 0; i < 3; i++)
        for (uint64_t seed = 1; seed <= 8; seed++) {
            unsigned rate = rates[i];
            struct pair *pair =
                run(seed, SERVICE_UC, (struct pair_faults){ rate, rate, rate, rate });
            assert_in_range(pair->ends[1].received, 1, messages_for_receives(&pair->ends[0]) - 1);
            pair_free(pair);
        }
}

static void ud_messages_are_whole_or_absent(void **state)
{
    for (uint64_t seed = 1; seed <= 8; seed++) {
        struct pair *pair = run(seed, SERVICE_UD, (struct pair_faults){ 100, 0, 100, 100 });
        assert_in_range(pair->ends[1].received, MESSAGES / 2, MESSAGES - 1);
        pair_free(pair);
    }
}

static uint32_t packets_until_loss;

static bool lose_one(struct pair_end *from, const struct packet *packet)
{
    return packets_until_loss-- == 0;
}

static void a_receive_outlives_the_message_that_was_cut(void **state)
{
    struct transport_attributes attributes = pair_attributes(SERVICE_UC);
    struct pair *pair = pair_new(1, &attributes);

    pair->ends[1].receive_period_ns = PAIR_LONG_NS;
    pair->ends[1].next_receives_at = PAIR_LONG_NS;
    pair->ends[1].receives = 1;
    pair->lose = lose_one;
    packets_until_loss = 1;
    pair_post(&pair->ends[0], TRANSPORT_SEND, 3000);
    pair_post(&pair->ends[0], TRANSPORT_SEND, 1500);
    pair_post(&pair->ends[0], TRANSPORT_SEND, 10); /* finds no receive */
    pair_run(pair, PAIR_LONG_NS / 2);
    assert_int_equal(pair->ends[1].received, 1);
    assert_int_equal(pair->ends[1].receive_cursor, 2);
    assert_int_equal(pair->ends[1].counters.gaps, 1);
    assert_int_equal(pair->ends[1].counters.dropped, 2);
    pair_free(pair);
}

static void datagrams_for_another_key_or_partition_are_dropped(void **state)
{
    struct transport_attributes attributes = pair_attributes(SERVICE_UD);
    struct pair *pair = pair_new(1, &attributes);

    pair_post(&pair->ends[0], TRANSPORT_SEND, 10)->wqe.qkey++;
    pair_run(pair, PAIR_LONG_NS);
    pair->ends[0].qp.attributes.pkey = 0x8001;
    pair_post(&pair->ends[0], TRANSPORT_SEND, 10);
    pair_run(pair, PAIR_LONG_NS);
    pair->ends[0].qp.attributes.pkey = 0x7fff; /* a limited member may talk to a full one */
    pair_post(&pair->ends[0], TRANSPORT_SEND, 20);
    pair_run(pair, PAIR_LONG_NS);
    assert_int_equal(pair->ends[1].counters.dropped, 2);
    assert_int_equal(pair->ends[1].received, 1);
    assert_int_equal(pair->ends[1].receive_cursor, 3);
    pair_free(pair);
}

static void a_datagram_is_no_longer_than_the_mtu(void **state)
{
    struct transport_attributes attributes = pair_attributes(SERVICE_UD);
    struct pair *pair = pair_new(1, &attributes);

    pair_post(&pair->ends[0], TRANSPORT_SEND, attributes.path_mtu);
    pair_post(&pair->ends[0], TRANSPORT_SEND, attributes.path_mtu + 1);
    pair_run(pair, PAIR_LONG_NS);
    assert_int_equal(pair->ends[1].received, 1);
    assert_int_equal(pair->ends[0].requests[1].status, TRANSPORT_LOCAL_LENGTH);
    assert_int_equal(pair->ends[0].why, TRANSPORT_LOCAL_LENGTH);
    pair_free(pair);
}

static enum transport_status refuse_key(struct transport_qp *qp, enum transport_access access,
                                        uint32_t key, uint64_t address, uint32_t length,
                                        uint64_t *region)
{
    return TRANSPORT_ACCESS_ERROR;
}

static void a_uc_write_that_is_not_allowed_is_dropped_whole(void **state)
{
    struct transport_attributes attributes = pair_attributes(SERVICE_UC);
    struct pair *pair = pair_new(1, &attributes);

    pair->ops.check_remote = refuse_key;
    pair_post(&pair->ends[0], TRANSPORT_WRITE_IMMEDIATE, 5000);
    pair_post(&pair->ends[0], TRANSPORT_SEND, 5000);
    pair_run(pair, PAIR_LONG_NS);
    assert_int_equal(pair->ends[1].received, 1);
    assert_int_equal(pair->ends[1].receive_cursor, 2);
    assert_false(pair->ends[1].failed);
    pair_free(pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_lost_on_a_clean_wire),
        cmocka_unit_test(uc_messages_are_whole_or_absent_and_in_order),
        cmocka_unit_test(ud_messages_are_whole_or_absent),
        cmocka_unit_test(a_receive_outlives_the_message_that_was_cut),
        cmocka_unit_test(datagrams_for_another_key_or_partition_are_dropped),
        cmocka_unit_test(a_datagram_is_no_longer_than_the_mtu),
        cmocka_unit_test(a_uc_write_that_is_not_allowed_is_dropped_whole),
    };

    return cmocka_run_group_tests_name("transport_unreliable", tests, NULL, NULL);
}
