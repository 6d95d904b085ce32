/* SPDX-License-Identifier: BSD-2-Clause */
/* Single packets: by hand, one after the other, or lost at a chosen place. */

#include "transport_pair.h"

#include "transport/psn.h"
#include "util/util.h"

/* ---- packets by hand ---- */

static struct packet request_packet(const struct pair *pair, enum opcode opcode, uint32_t ahead)
{
    const struct transport_attributes *to = &pair->ends[1].qp.attributes;

    return (struct packet){
        .opcode = to->service | opcode,
        .pkey = to->pkey,
        .psn = psn_add(to->receive_psn, ahead),
        .destination_qpn = to->local_qpn,
    };
}

static void give(struct pair *pair, unsigned end, const struct packet *packet)
{
    transport_receive(&pair->ends[end].qp, pair->now, packet);
}

static void expect_acknowledgement(struct pair *pair, uint8_t syndrome, uint32_t psn, uint32_t msn)
{
    struct packet packet;

    assert_true(transport_pull_response(&pair->ends[1].qp, &packet));
    assert_int_equal(packet.opcode, OPCODE_ACKNOWLEDGE);
    assert_int_equal(packet.syndrome, syndrome);
    assert_int_equal(packet.psn, psn);
    assert_int_equal(packet.msn, msn);
    assert_false(transport_pull_response(&pair->ends[1].qp, &packet));
}

static void malformed_messages_are_invalid(void **state)
{
    static const struct {
        uint8_t first; /* accepted, if there are two */
        uint8_t refused;
        uint32_t length;
        uint32_t remote_length;
    } rows[] = {
        { OPCODE_SEND_MIDDLE, OPCODE_SEND_MIDDLE, 1024, 0 },           /* nothing to continue */
        { OPCODE_WRITE_FIRST, OPCODE_SEND_LAST, 10, 0 },               /* not what was begun */
        { OPCODE_WRITE_FIRST, OPCODE_WRITE_ONLY, 10, 10 },             /* begun before it is over */
        { OPCODE_WRITE_FIRST, OPCODE_READ_REQUEST, 0, 10 },            /* likewise */
        { OPCODE_WRITE_FIRST, OPCODE_WRITE_MIDDLE, 1000, 0 },          /* middle not full */
        { OPCODE_WRITE_FIRST, OPCODE_WRITE_LAST, 0, 0 },               /* last empty */
        { OPCODE_WRITE_FIRST, OPCODE_WRITE_LAST, 977, 0 },             /* one more than was said */
        { OPCODE_WRITE_FIRST, OPCODE_WRITE_MIDDLE, 1024, 0 },          /* likewise */
        { OPCODE_WRITE_ONLY, OPCODE_WRITE_ONLY, 10, 11 },              /* one less */
        { OPCODE_SEND_ONLY, OPCODE_SEND_ONLY, 1025, 0 },               /* over the MTU */
        { OPCODE_READ_REQUEST, OPCODE_READ_REQUEST, 0, 1u << 31 | 1 }, /* over the limit */
    };
    static uint8_t bytes[2048];

    for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
        struct pair *pair = pair_plain();
        uint32_t ahead = rows[i].first != rows[i].refused;
        struct packet first = request_packet(pair, rows[i].first, 0);
        first.payload = (struct packet_payload){ (uintptr_t)bytes, 0, 1024 };
        first.remote_address = PAIR_ADDRESS;
        first.remote_key = PAIR_KEY;
        first.remote_length = 2000;
        if (ahead)
            give(pair, 1, &first);
        struct packet refused = request_packet(pair, rows[i].refused, ahead);
        refused.payload = (struct packet_payload){ (uintptr_t)bytes, 0, rows[i].length };
        refused.remote_address = PAIR_ADDRESS;
        refused.remote_key = PAIR_KEY;
        refused.remote_length = rows[i].remote_length;
        give(pair, 1, &refused);
        assert_int_equal(pair->ends[1].why, TRANSPORT_INVALID_REQUEST);
        expect_acknowledgement(pair, NAK_INVALID, refused.psn, 0);
        pair_free(pair);
    }
}

static void a_gap_is_reported_once(void **state)
{
    struct pair *pair = pair_plain();
    struct pair_end *end = &pair->ends[0];
    struct packet packets[4];

    for (unsigned i = 0; i < 4; i++) {
        pair_post(end, TRANSPORT_SEND, 10);
        assert_true(transport_pull_request(&end->qp, 0, &packets[i]));
    }
    give(pair, 1, &packets[0]);
    expect_acknowledgement(pair, ACK_NO_CREDITS, packets[0].psn, 1);
    give(pair, 1, &packets[2]);
    expect_acknowledgement(pair, NAK_SEQUENCE, packets[1].psn, 1);
    give(pair, 1, &packets[3]);
    assert_false(transport_has_response(&pair->ends[1].qp));
    give(pair, 1, &packets[1]);
    give(pair, 1, &packets[2]);
    give(pair, 1, &packets[3]);
    expect_acknowledgement(pair, ACK_NO_CREDITS, packets[3].psn, 4); /* one for all three */
    assert_int_equal(pair->ends[1].received, 4);
    packets[3].psn = psn_add(packets[3].psn, 2);
    give(pair, 1, &packets[3]);
    expect_acknowledgement(pair, NAK_SEQUENCE, psn_add(packets[3].psn, PSN_MASK), 4);
    pair_free(pair);
}

static void an_old_send_is_acknowledged_and_not_received(void **state)
{
    struct pair *pair = pair_plain();
    struct pair_end *end = &pair->ends[0];
    struct packet packets[2], ack;

    for (unsigned i = 0; i < 2; i++) {
        pair_post(end, TRANSPORT_SEND, 10);
        assert_true(transport_pull_request(&end->qp, 0, &packets[i]));
        give(pair, 1, &packets[i]);
    }
    assert_true(transport_pull_response(&pair->ends[1].qp, &ack));
    give(pair, 1, &packets[0]);
    expect_acknowledgement(pair, ACK_NO_CREDITS, packets[1].psn, 2);
    assert_int_equal(pair->ends[1].received, 2);
    give(pair, 0, &ack);
    assert_int_equal(end->completed, 2);
    give(pair, 0, &ack); /* stale */
    ack.psn = psn_add(packets[1].psn, 1);
    give(pair, 0, &ack); /* for what was never sent */
    assert_int_equal(end->completed, 2);
    assert_int_equal(end->counters.dropped, 2);
    pair_free(pair);
}

static void an_old_atomic_is_answered_from_memory_while_there_is_one(void **state)
{
    struct transport_attributes attributes = pair_attributes(SERVICE_RC);
    attributes.responder_resources = 2;
    struct pair *pair = pair_new(1, &attributes);
    struct packet add = request_packet(pair, OPCODE_FETCH_ADD, 0), answer;
    struct transport_qp *qp = &pair->ends[1].qp;

    add.remote_address = PAIR_ADDRESS;
    add.remote_key = PAIR_KEY;
    add.swap_or_add = 5;
    for (unsigned i = 0; i < 3; i++) {
        add.psn = psn_add(qp->attributes.receive_psn, i);
        for (unsigned times = 0; times < 3; times++) {
            give(pair, 1, &add);
            assert_true(transport_pull_response(qp, &answer));
            assert_int_equal(answer.original, i * 5);
        }
    }
    assert_int_equal(pair->ends[1].memory[0], 15);
    add.psn = qp->attributes.receive_psn; /* two newer ones have been answered since */
    give(pair, 1, &add);
    assert_false(transport_has_response(qp));
    assert_int_equal(pair->ends[1].memory[0], 15);
    pair_free(pair);
}

static void a_repetition_makes_room_for_a_new_request(void **state)
{
    struct transport_attributes attributes = pair_attributes(SERVICE_RC);
    attributes.responder_resources = 1;
    struct pair *pair = pair_new(1, &attributes);
    struct packet add = request_packet(pair, OPCODE_FETCH_ADD, 0), answer;
    struct transport_qp *qp = &pair->ends[1].qp;

    add.remote_address = PAIR_ADDRESS;
    add.remote_key = PAIR_KEY;
    add.swap_or_add = 5;
    give(pair, 1, &add);
    assert_true(transport_pull_response(qp, &answer));
    give(pair, 1, &add); /* to be answered again, when the next one arrives */
    add.psn = psn_add(add.psn, 1);
    give(pair, 1, &add);
    assert_false(pair->ends[1].failed);
    assert_true(transport_pull_response(qp, &answer));
    assert_int_equal(answer.original, 5);
    assert_false(transport_has_response(qp));
    pair_free(pair);
}

/* Two to the 24 packets later, the same number stands for another atomic. */
static void the_newest_of_the_same_number_is_repeated(void **state)
{
    struct pair *pair = pair_plain();
    struct packet add = request_packet(pair, OPCODE_FETCH_ADD, 0), answer;
    struct transport_qp *qp = &pair->ends[1].qp;

    add.remote_address = PAIR_ADDRESS;
    add.remote_key = PAIR_KEY;
    add.swap_or_add = 5;
    for (unsigned i = 0; i < 2; i++) {
        qp->responder.expected_psn = add.psn;
        give(pair, 1, &add);
        assert_true(transport_pull_response(qp, &answer));
    }
    give(pair, 1, &add);
    assert_true(transport_pull_response(qp, &answer));
    assert_int_equal(answer.original, 5);
    pair_free(pair);
}

static void an_old_read_is_not_answered_once_it_is_forbidden(void **state)
{
    struct pair *pair = pair_plain();
    struct packet read = request_packet(pair, OPCODE_READ_REQUEST, 0), answer;
    struct transport_qp *qp = &pair->ends[1].qp;

    read.remote_address = PAIR_ADDRESS;
    read.remote_key = PAIR_KEY;
    read.remote_length = 3000;
    give(pair, 1, &read);
    for (unsigned i = 0; i < 3; i++)
        assert_true(transport_pull_response(qp, &answer));
    read.psn = psn_add(read.psn, 1);
    read.remote_address += 1024;
    read.remote_length -= 1024;
    give(pair, 1, &read); /* from the middle */
    for (unsigned i = 0; i < 2; i++)
        assert_true(transport_pull_response(qp, &answer));
    assert_int_equal(answer.opcode, OPCODE_READ_RESPONSE_LAST);
    assert_int_equal(answer.payload.length, 3000 - 2048);
    struct packet others[] = { read, read, read }; /* not what was asked for first */
    others[0].remote_length--;
    others[1].remote_address++;
    others[2].remote_key++;
    for (unsigned i = 0; i < ARRAY_SIZE(others); i++) {
        give(pair, 1, &others[i]);
        assert_false(transport_has_response(qp));
    }
    give(pair, 1, &read);
    assert_true(transport_has_response(qp));
    assert_false(pair->ends[1].failed);
    pair_free(pair);
}

static void more_reads_than_agreed_are_invalid(void **state)
{
    struct transport_attributes attributes = pair_attributes(SERVICE_RC);
    attributes.max_reads = 3;
    attributes.responder_resources = 2;
    struct pair *pair = pair_new(1, &attributes);
    struct packet packet;

    for (unsigned i = 0; i < 4; i++)
        pair_post(&pair->ends[0], TRANSPORT_READ, 10);
    for (unsigned i = 0; i < 3; i++) {
        assert_true(transport_pull_request(&pair->ends[0].qp, 0, &packet));
        give(pair, 1, &packet);
    }
    assert_false(
        transport_pull_request(&pair->ends[0].qp, 0, &packet)); /* keeps to its own limit */
    assert_int_equal(pair->ends[1].why, TRANSPORT_INVALID_REQUEST);
    pair_free(pair);
}

static void a_fence_waits_for_reads(void **state)
{
    struct pair *pair = pair_plain();
    struct transport_qp *qp = &pair->ends[0].qp;
    struct packet packet;

    pair_post(&pair->ends[0], TRANSPORT_READ, 10);
    pair_post(&pair->ends[0], TRANSPORT_SEND, 10);
    pair_post(&pair->ends[0], TRANSPORT_SEND, 10)->wqe.fence = true;
    for (unsigned i = 0; i < 2; i++) {
        assert_true(transport_pull_request(qp, 0, &packet));
        give(pair, 1, &packet);
    }
    assert_false(transport_pull_request(qp, 0, &packet));
    assert_true(transport_pull_response(&pair->ends[1].qp, &packet));
    give(pair, 0, &packet);
    assert_true(transport_pull_request(qp, 0, &packet));
    pair_free(pair);
}

static void a_full_window_asks_for_an_answer(void **state)
{
    struct transport_attributes attributes = pair_attributes(SERVICE_RC);
    attributes.window = 6;
    attributes.ack_every = 4;
    struct pair *pair = pair_new(1, &attributes);
    struct packet packet;

    pair_post(&pair->ends[0], TRANSPORT_WRITE, 20000);
    for (unsigned i = 1; i <= 6; i++) {
        assert_true(transport_pull_request(&pair->ends[0].qp, 0, &packet));
        assert_int_equal(packet.ack_request, i == 4 || i == 6);
    }
    assert_false(transport_pull_request(&pair->ends[0].qp, 0, &packet));
    assert_true(transport_deadline(&pair->ends[0].qp) < TRANSPORT_NEVER);
    pair_free(pair);
}

static bool accept_read(struct transport_qp *qp, uint32_t index, uint32_t offset,
                        const struct packet_payload *payload)
{
    return true;
}

/* A read of 2 GB at the smallest MTU takes every PSN that may be in use at once. */
static void half_of_the_psns_stay_free(void **state)
{
    struct transport_attributes attributes = pair_attributes(SERVICE_RC);
    attributes.path_mtu = 256;
    struct pair *pair = pair_new(1, &attributes);
    struct transport_qp *qp = &pair->ends[0].qp;
    struct packet read, send;
    uint8_t bytes[256];

    pair->ops.place_read = accept_read;
    pair_post(&pair->ends[0], TRANSPORT_READ, 10)->wqe.length = TRANSPORT_MAX_MESSAGE_BYTES;
    pair_post(&pair->ends[0], TRANSPORT_SEND, 10);
    assert_true(transport_pull_request(qp, 0, &read));
    assert_false(transport_pull_request(qp, 0, &send));
    read.opcode = OPCODE_READ_RESPONSE_FIRST;
    read.payload = (struct packet_payload){ (uintptr_t)bytes, 0, sizeof(bytes) };
    give(pair, 0, &read);
    assert_true(transport_pull_request(qp, 0, &send));
    assert_int_equal(psn_distance(read.psn, send.psn), PSN_HALF);
    pair_free(pair);
}

static struct packet acknowledgement(const struct packet *request, uint8_t syndrome)
{
    struct packet packet = *request;

    packet.opcode = OPCODE_ACKNOWLEDGE;
    packet.syndrome = syndrome;
    packet.payload.length = 0;
    return packet;
}

static void progress_starts_the_clock_again(void **state)
{
    struct pair *pair = pair_plain();
    struct transport_qp *qp = &pair->ends[0].qp;
    uint64_t timeout = transport_timeout_ns(qp->attributes.timeout);
    struct packet packets[2];

    for (unsigned i = 0; i < 2; i++) {
        pair_post(&pair->ends[0], TRANSPORT_SEND, 10);
        assert_true(transport_pull_request(qp, 0, &packets[i]));
    }
    transport_sent(qp, 5);
    assert_int_equal(transport_deadline(qp), timeout + 5);
    transport_sent(qp, 0);
    assert_int_equal(transport_deadline(qp), timeout);
    pair->now = timeout - 1;
    struct packet ack = acknowledgement(&packets[0], ACK_NO_CREDITS);
    give(pair, 0, &ack);
    assert_int_equal(transport_deadline(qp), timeout - 1 + timeout);
    ack = acknowledgement(&packets[1], ACK_NO_CREDITS);
    give(pair, 0, &ack);
    assert_true(transport_deadline(qp) == TRANSPORT_NEVER);
    pair_free(pair);
}

static void an_answer_may_come_after_the_timeout(void **state)
{
    struct pair *pair = pair_plain();
    struct transport_qp *qp = &pair->ends[0].qp;
    struct packet packets[3], next;

    for (unsigned i = 0; i < 3; i++) {
        pair_post(&pair->ends[0], TRANSPORT_SEND, 10);
        if (i < 2)
            assert_true(transport_pull_request(qp, 0, &packets[i]));
    }
    pair->now = transport_deadline(qp);
    transport_timeout(qp, pair->now);
    struct packet ack = acknowledgement(&packets[1], ACK_NO_CREDITS);
    give(pair, 0, &ack);
    assert_int_equal(pair->ends[0].completed, 2);
    assert_true(transport_pull_request(qp, pair->now, &next));
    assert_int_equal(next.psn, psn_add(packets[1].psn, 1));
    assert_int_equal(qp->attributes.counters->resent, 0);
    pair_free(pair);
}

static void asked_to_wait_twice_it_waits_once(void **state)
{
    struct transport_attributes attributes = pair_attributes(SERVICE_RC);
    attributes.rnr_retry_count = 1;
    struct pair *pair = pair_new(1, &attributes);
    struct transport_qp *qp = &pair->ends[0].qp;
    struct packet packet;

    pair_post(&pair->ends[0], TRANSPORT_SEND, 10);
    assert_true(transport_pull_request(qp, 0, &packet));
    struct packet wait = acknowledgement(&packet, SYNDROME_RNR | 1);
    give(pair, 0, &wait);
    give(pair, 0, &wait);
    assert_int_equal(transport_deadline(qp), transport_rnr_ns(1));
    transport_sent(qp, 5);
    assert_int_equal(transport_deadline(qp), transport_rnr_ns(1));
    assert_false(transport_pull_request(qp, 0, &packet));
    transport_timeout(qp, transport_rnr_ns(1) - 1);
    assert_false(transport_pull_request(qp, 0, &packet));
    transport_timeout(qp, transport_rnr_ns(1));
    assert_true(transport_pull_request(qp, 0, &packet));
    give(pair, 0, &wait);
    assert_int_equal(pair->ends[0].why, TRANSPORT_RNR_RETRY_EXCEEDED);
    pair_free(pair);
}

static void a_stopped_qp_is_deaf_and_dumb(void **state)
{
    struct pair *pair = pair_plain();
    struct transport_qp *qp = &pair->ends[0].qp;
    struct packet packet;

    pair_post(&pair->ends[0], TRANSPORT_SEND, 10);
    pair_post(&pair->ends[0], TRANSPORT_SEND, 10);
    assert_true(transport_pull_request(qp, 0, &packet));
    transport_stop(qp);
    struct packet ack = acknowledgement(&packet, ACK_NO_CREDITS);
    give(pair, 0, &ack);
    assert_int_equal(pair->ends[0].completed, 0);
    assert_false(pair->ends[0].failed);
    assert_false(transport_pull_request(qp, 0, &packet));
    assert_true(transport_deadline(qp) == TRANSPORT_NEVER);
    pair_free(pair);
}

static void answers_to_something_else_are_bad(void **state)
{
    static const struct {
        enum transport_operation asked;
        enum opcode answered;
        uint8_t syndrome;
        uint32_t length;
    } rows[] = {
        { TRANSPORT_SEND, OPCODE_READ_RESPONSE_ONLY, 0, 10 },
        { TRANSPORT_SEND, OPCODE_ATOMIC_ACKNOWLEDGE, 0, 0 },
        { TRANSPORT_READ, OPCODE_ATOMIC_ACKNOWLEDGE, 0, 0 },
        { TRANSPORT_FETCH_ADD, OPCODE_READ_RESPONSE_ONLY, 0, 8 },
        { TRANSPORT_READ, OPCODE_READ_RESPONSE_ONLY, 0, 11 },
        { TRANSPORT_READ, OPCODE_READ_RESPONSE_FIRST, 0, 10 },
        { TRANSPORT_SEND, OPCODE_ACKNOWLEDGE, SYNDROME_NAK | 9, 0 },
        { TRANSPORT_SEND, OPCODE_ACKNOWLEDGE, 0x40, 0 },
    };

    for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
        struct pair *pair = pair_plain();
        struct packet packet;

        pair_post(&pair->ends[0], rows[i].asked, 10);
        assert_true(transport_pull_request(&pair->ends[0].qp, 0, &packet));
        packet.opcode = rows[i].answered;
        packet.syndrome = rows[i].syndrome;
        packet.payload.length = rows[i].length;
        give(pair, 0, &packet);
        assert_int_equal(pair->ends[0].requests[0].status, TRANSPORT_BAD_RESPONSE);
        pair_free(pair);
    }
}

/* ---- single losses ---- */

static struct {
    enum opcode opcode;
    uint32_t nth; /* counted from 1 */
    uint64_t last_read_address;
    uint32_t last_read_length;
} loss;

static bool lose_nth(struct pair_end *from, const struct packet *packet)
{
    if (packet->opcode == OPCODE_READ_REQUEST) {
        loss.last_read_address = packet->remote_address;
        loss.last_read_length = packet->remote_length;
    }
    return packet->opcode == loss.opcode && loss.nth && --loss.nth == 0;
}

static struct pair *pair_losing(enum opcode opcode, uint32_t nth)
{
    struct pair *pair = pair_plain();

    loss.opcode = opcode;
    loss.nth = nth;
    pair->lose = lose_nth;
    return pair;
}

static void a_read_goes_on_where_it_was_cut(void **state)
{
    struct pair *pair = pair_losing(OPCODE_READ_RESPONSE_MIDDLE, 2);
    struct pair_request *request = pair_post(&pair->ends[0], TRANSPORT_READ, 10000);

    pair_run(pair, PAIR_LONG_NS);
    pair_check_all_done(pair);
    assert_int_equal(loss.last_read_address, request->wqe.remote_address + 2 * 1024);
    assert_int_equal(loss.last_read_length, 10000 - 2 * 1024);
    assert_int_equal(pair->ends[0].counters.timeouts, 0); /* the next packet told of the loss */
    pair_free(pair);
}

static void a_later_answer_tells_of_a_lost_one(void **state)
{
    struct pair *pair = pair_losing(OPCODE_ATOMIC_ACKNOWLEDGE, 1);

    pair_post(&pair->ends[0], TRANSPORT_FETCH_ADD, 8);
    pair_post(&pair->ends[0], TRANSPORT_SEND, 10);
    pair_run(pair, PAIR_LONG_NS);
    pair_check_all_done(pair);
    assert_int_equal(pair->ends[0].counters.timeouts, 0);
    assert_int_equal(pair->ends[0].counters.rewinds, 1);
    pair_free(pair);
}

static void the_last_answer_is_missed_by_the_clock(void **state)
{
    static const struct {
        enum transport_operation asked;
        enum opcode lost;
    } rows[] = {
        { TRANSPORT_SEND, OPCODE_ACKNOWLEDGE },
        { TRANSPORT_SEND, OPCODE_SEND_ONLY },
        { TRANSPORT_READ, OPCODE_READ_RESPONSE_ONLY },
        { TRANSPORT_FETCH_ADD, OPCODE_ATOMIC_ACKNOWLEDGE },
    };

    for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
        struct pair *pair = pair_losing(rows[i].lost, 1);
        pair_post(&pair->ends[0], rows[i].asked, 8);
        pair_run(pair, PAIR_LONG_NS);
        pair_check_all_done(pair);
        assert_int_equal(pair->ends[0].counters.timeouts, 1);
        assert_int_equal(pair->ends[0].packets_sent, 2);
        assert_int_equal(pair->ends[0].counters.resent, 1);
        assert_int_equal(pair->ends[1].counters.duplicates, rows[i].lost != OPCODE_SEND_ONLY);
        pair_free(pair);
    }
}

static void a_lost_request_is_missed_by_the_peer(void **state)
{
    struct pair *pair = pair_losing(OPCODE_WRITE_MIDDLE, 1);
    const struct transport_counters *near = &pair->ends[0].counters;
    const struct transport_counters *far = &pair->ends[1].counters;

    pair_post(&pair->ends[0], TRANSPORT_WRITE, 10000); /* ten packets */
    pair_run(pair, PAIR_LONG_NS);
    pair_check_all_done(pair);
    assert_int_equal(near->timeouts, 0);
    assert_int_equal(near->rewinds, 1);
    assert_int_equal(near->requests, pair->ends[0].packets_sent);
    assert_int_equal(near->resent, near->requests - 10);
    assert_int_equal(far->responses, pair->ends[1].packets_sent);
    assert_int_equal(far->duplicates, 0);
    assert_true(far->gaps > 0);
    assert_int_equal(far->gaps, near->requests - 10 - 1); /* all that arrived, but ten */
    pair_free(pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(malformed_messages_are_invalid),
        cmocka_unit_test(a_gap_is_reported_once),
        cmocka_unit_test(an_old_send_is_acknowledged_and_not_received),
        cmocka_unit_test(an_old_atomic_is_answered_from_memory_while_there_is_one),
        cmocka_unit_test(a_repetition_makes_room_for_a_new_request),
        cmocka_unit_test(the_newest_of_the_same_number_is_repeated),
        cmocka_unit_test(an_old_read_is_not_answered_once_it_is_forbidden),
        cmocka_unit_test(more_reads_than_agreed_are_invalid),
        cmocka_unit_test(a_fence_waits_for_reads),
        cmocka_unit_test(a_full_window_asks_for_an_answer),
        cmocka_unit_test(half_of_the_psns_stay_free),
        cmocka_unit_test(progress_starts_the_clock_again),
        cmocka_unit_test(an_answer_may_come_after_the_timeout),
        cmocka_unit_test(asked_to_wait_twice_it_waits_once),
        cmocka_unit_test(a_stopped_qp_is_deaf_and_dumb),
        cmocka_unit_test(answers_to_something_else_are_bad),
        cmocka_unit_test(a_read_goes_on_where_it_was_cut),
        cmocka_unit_test(a_later_answer_tells_of_a_lost_one),
        cmocka_unit_test(the_last_answer_is_missed_by_the_clock),
        cmocka_unit_test(a_lost_request_is_missed_by_the_peer),
    };

    return cmocka_run_group_tests_name("transport_exchange", tests, NULL, NULL);
}
