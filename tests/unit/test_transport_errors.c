/* SPDX-License-Identifier: BSD-2-Clause */
/* Silence, missing receives, refusals: each has its defined outcome. */

#include "transport_pair.h"

#include "util/util.h"

/* ---- nobody answers ---- */

static bool lose_all(struct pair_end *from, const struct packet *packet)
{
    return true;
}

static void silence_is_borne_for_as_long_as_configured(void **state)
{
    for (uint8_t retries = 0; retries <= 7; retries++)
        for (uint8_t timeout = 1; timeout <= 14; timeout += 13) {
            struct transport_attributes attributes = pair_attributes(SERVICE_RC);
            attributes.retry_count = retries;
            attributes.timeout = timeout;
            struct pair *pair = pair_new(1, &attributes);
            pair->lose = lose_all;
            pair_post(&pair->ends[0], TRANSPORT_SEND, 10);
            pair_run(pair, PAIR_LONG_NS);
            const struct pair_request *request = &pair->ends[0].requests[0];
            assert_true(request->completed);
            assert_int_equal(request->status, TRANSPORT_RETRY_EXCEEDED);
            assert_int_equal(pair->ends[0].packets_sent, retries + 1);
            assert_int_equal(request->completed_at, (retries + 1) * (4096ull << timeout));
            assert_int_equal(pair->ends[0].why, TRANSPORT_RETRY_EXCEEDED);
            pair_free(pair);
        }
}

static void a_timeout_of_zero_is_for_ever(void **state)
{
    struct transport_attributes attributes = pair_attributes(SERVICE_RC);
    attributes.timeout = 0;
    struct pair *pair = pair_new(1, &attributes);

    pair->lose = lose_all;
    pair_post(&pair->ends[0], TRANSPORT_SEND, 10);
    pair_run(pair, PAIR_LONG_NS);
    assert_int_equal(pair->ends[0].completed, 0);
    assert_true(transport_deadline(&pair->ends[0].qp) == TRANSPORT_NEVER);
    pair_free(pair);
}

static void what_comes_after_a_failure_is_flushed(void **state)
{
    struct pair *pair = pair_plain();
    struct pair_end *end = &pair->ends[0];

    pair->lose = lose_all;
    for (unsigned i = 0; i < 3; i++)
        pair_post(end, TRANSPORT_WRITE, 10);
    pair_run(pair, PAIR_LONG_NS);
    assert_int_equal(end->completed, 1);
    transport_flush(&end->qp);
    pair_post(end, TRANSPORT_SEND, 10);
    transport_flush(&end->qp);
    assert_int_equal(end->completed, 4);
    for (unsigned i = 1; i < 4; i++)
        assert_int_equal(end->requests[i].status, TRANSPORT_FLUSHED);
    pair_free(pair);
}

/* ---- no receive ---- */

static void without_receives(struct pair *pair)
{
    pair->ends[1].receive_period_ns = PAIR_LONG_NS;
    pair->ends[1].next_receives_at = PAIR_LONG_NS;
}

static void a_missing_receive_is_borne_for_as_long_as_configured(void **state)
{
    for (uint8_t retries = 0; retries < TRANSPORT_RETRY_FOREVER; retries++) {
        struct transport_attributes attributes = pair_attributes(SERVICE_RC);
        attributes.rnr_retry_count = retries;
        attributes.rnr_timer = 14; /* 1.28 ms */
        struct pair *pair = pair_new(1, &attributes);
        without_receives(pair);
        pair_post(&pair->ends[0], TRANSPORT_SEND, 10);
        pair_run(pair, PAIR_LONG_NS / 2);
        const struct pair_request *request = &pair->ends[0].requests[0];
        assert_true(request->completed);
        assert_int_equal(request->status, TRANSPORT_RNR_RETRY_EXCEEDED);
        assert_int_equal(pair->ends[0].packets_sent, retries + 1);
        assert_int_equal(request->completed_at,
                         retries * 1280000ull + (retries + 1) * 2 * PAIR_LINK_NS);
        pair_free(pair);
    }
}

static void seven_means_for_ever(void **state)
{
    struct pair *pair = pair_plain();

    without_receives(pair);
    pair_post(&pair->ends[0], TRANSPORT_SEND, 10);
    pair_run(pair, 100000000);
    assert_int_equal(pair->ends[0].completed, 0);
    assert_true(pair->ends[0].counters.rnr_waits > 1000);
    pair->ends[1].receives = 1;
    pair_run(pair, PAIR_LONG_NS / 2);
    pair_check_all_done(pair);
    pair_free(pair);
}

/* Only the last packet of a write with immediate data needs a receive: the others stay placed. */
static void a_write_waits_at_its_last_packet(void **state)
{
    struct pair *pair = pair_plain();
    const struct transport_counters *counters = &pair->ends[0].counters;

    without_receives(pair);
    pair_post(&pair->ends[0], TRANSPORT_WRITE_IMMEDIATE, 10000);
    pair_run(pair, 1000000);
    assert_true(counters->rnr_waits > 10);
    assert_int_equal(counters->resent, counters->requests - 10);
    assert_true(counters->resent <= counters->rnr_waits);
    pair->ends[1].receives = 1;
    pair_run(pair, PAIR_LONG_NS / 2);
    pair_check_all_done(pair);
    pair_free(pair);
}

/* ---- refusals ---- */

static void expect_refusal(struct pair *pair, enum transport_status status)
{
    struct pair_end *end = &pair->ends[0];
    uint32_t refused = end->posted - 1;

    pair_post(end, TRANSPORT_SEND, 20);
    pair_run(pair, PAIR_LONG_NS);
    assert_int_equal(end->completed, refused + 1);
    for (uint32_t i = 0; i < refused; i++)
        assert_int_equal(end->requests[i].status, TRANSPORT_SUCCESS);
    assert_int_equal(end->requests[refused].status, status);
    assert_int_equal(end->why, status);
    assert_int_equal(pair->ends[1].why, status);
    assert_true(transport_deadline(&end->qp) == TRANSPORT_NEVER);
    transport_flush(&end->qp);
    assert_int_equal(end->requests[refused + 1].status, TRANSPORT_FLUSHED);
    pair_free(pair);
}

static void a_wrong_key_is_an_access_error(void **state)
{
    static const enum transport_operation operations[] = {
        TRANSPORT_WRITE,        TRANSPORT_WRITE_IMMEDIATE, TRANSPORT_READ,
        TRANSPORT_COMPARE_SWAP, TRANSPORT_FETCH_ADD,
    };

    for (unsigned i = 0; i < ARRAY_SIZE(operations); i++) {
        struct pair *pair = pair_plain();
        pair_post(&pair->ends[0], TRANSPORT_SEND, 3000);
        pair_post(&pair->ends[0], operations[i], 3000)->wqe.remote_key++;
        expect_refusal(pair, TRANSPORT_ACCESS_ERROR);
    }
}

static void a_key_is_not_looked_at_for_nothing(void **state)
{
    struct pair *pair = pair_plain();

    pair_post(&pair->ends[0], TRANSPORT_WRITE, 0)->wqe.remote_key++;
    pair_post(&pair->ends[0], TRANSPORT_READ, 0)->wqe.remote_key++;
    pair_run(pair, PAIR_LONG_NS);
    pair_check_all_done(pair);
    pair_free(pair);
}

static void a_message_too_long_for_its_receive_is_invalid(void **state)
{
    struct pair *pair = pair_plain();

    pair->ends[1].receive_length = 5000;
    pair_post(&pair->ends[0], TRANSPORT_SEND, 5000);
    pair_post(&pair->ends[0], TRANSPORT_SEND, 5001);
    expect_refusal(pair, TRANSPORT_INVALID_REQUEST);
}

static void an_atomic_off_its_boundary_is_invalid(void **state)
{
    struct pair *pair = pair_plain();

    pair_post(&pair->ends[0], TRANSPORT_FETCH_ADD, 8)->wqe.remote_address += 4;
    expect_refusal(pair, TRANSPORT_INVALID_REQUEST);
}

static enum transport_status fail_to_place(struct transport_qp *qp, uint64_t region,
                                           uint64_t address, const struct packet_payload *payload)
{
    return TRANSPORT_OPERATIONAL_ERROR;
}

static void a_responder_that_fails_says_so(void **state)
{
    struct pair *pair = pair_plain();

    pair->ops.place_write = fail_to_place;
    pair_post(&pair->ends[0], TRANSPORT_WRITE, 10);
    expect_refusal(pair, TRANSPORT_OPERATIONAL_ERROR);
}

static enum transport_status refuse_to_invalidate(struct transport_qp *qp, uint32_t key)
{
    return TRANSPORT_ACCESS_ERROR;
}

static void a_key_that_cannot_be_invalidated_is_an_access_error(void **state)
{
    struct pair *pair = pair_plain();

    pair->ops.invalidate = refuse_to_invalidate;
    pair_post(&pair->ends[0], TRANSPORT_SEND_INVALIDATE, 10);
    expect_refusal(pair, TRANSPORT_ACCESS_ERROR);
}

static bool refuse_read(struct transport_qp *qp, uint32_t index, uint32_t offset,
                        const struct packet_payload *payload)
{
    return false;
}

static void an_answer_that_cannot_be_placed_fails_the_requester(void **state)
{
    struct pair *pair = pair_plain();

    pair->ops.place_read = refuse_read;
    pair_post(&pair->ends[0], TRANSPORT_READ, 10);
    pair_run(pair, PAIR_LONG_NS);
    assert_int_equal(pair->ends[0].why, TRANSPORT_LOCAL_PROTECTION);
    assert_false(pair->ends[1].failed);
    pair_free(pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(silence_is_borne_for_as_long_as_configured),
        cmocka_unit_test(a_timeout_of_zero_is_for_ever),
        cmocka_unit_test(what_comes_after_a_failure_is_flushed),
        cmocka_unit_test(a_missing_receive_is_borne_for_as_long_as_configured),
        cmocka_unit_test(seven_means_for_ever),
        cmocka_unit_test(a_write_waits_at_its_last_packet),
        cmocka_unit_test(a_wrong_key_is_an_access_error),
        cmocka_unit_test(a_key_is_not_looked_at_for_nothing),
        cmocka_unit_test(a_message_too_long_for_its_receive_is_invalid),
        cmocka_unit_test(an_atomic_off_its_boundary_is_invalid),
        cmocka_unit_test(a_responder_that_fails_says_so),
        cmocka_unit_test(a_key_that_cannot_be_invalidated_is_an_access_error),
        cmocka_unit_test(an_answer_that_cannot_be_placed_fails_the_requester),
    };

    return cmocka_run_group_tests_name("transport_errors", tests, NULL, NULL);
}
