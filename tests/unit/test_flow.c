/* SPDX-License-Identifier: BSD-2-Clause */
/* --verify: what arrived is held against what was sent, byte by byte. */
#include "bench/measure/flow.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#define SIZE     1000
#define SEGMENTS 2

static uint8_t out[SIZE], in[GRH_BYTES + SIZE];
static struct ibv_sge out_list[SEGMENTS], in_list[SEGMENTS];
static struct slot slot;
static struct control control;
static struct bench bench;
static struct flow flow;

static void split(struct ibv_sge *list, uint8_t *bytes, size_t lead)
{
    list[0] = (struct ibv_sge){ .addr = (uintptr_t)bytes, .length = lead + SIZE / 3 };
    list[1] =
        (struct ibv_sge){ .addr = (uintptr_t)bytes + lead + SIZE / 3, .length = SIZE - SIZE / 3 };
}

/* A flow of one slot, whose two sides are 'out' and 'in'. */
static void prepare(enum operation operation, enum transport transport)
{
    size_t lead = transport == TRANSPORT_UD ? GRH_BYTES : 0;

    control = (struct control){ .ranks = 1 };
    bench = (struct bench){ .control = &control, .ranks = 1 };
    split(out_list, out, 0);
    split(in_list, in, lead);
    slot = (struct slot){
        .send = { .sg_list = out_list, .num_sge = SEGMENTS },
        .receive = { .sg_list = in_list, .num_sge = SEGMENTS },
    };
    flow = (struct flow){
        .bench = &bench,
        .spec = { .operation = operation,
                  .transport = transport,
                  .size = SIZE,
                  .send_segments = SEGMENTS,
                  .receive_segments = SEGMENTS,
                  .qps = 1 },
        .slots = &slot,
        .slot_count = 1,
    };
    memset(in, 0xee, sizeof(in));
}

static void carry(size_t lead, uint64_t message)
{
    flow_fill(&flow, message);
    memcpy(in + lead, out, SIZE);
}

static void test_every_byte_counts(void **state)
{
    prepare(OPERATION_SEND, TRANSPORT_RC);
    carry(0, 5);
    assert_int_equal(flow_check(&flow, 5), BENCH_OK);
    for (size_t i = 0; i < SIZE; i++) {
        in[i] ^= 1;
        assert_int_equal(flow_check(&flow, 5), BENCH_FAILED);
        control.status = CONTROL_OK;
        in[i] ^= 1;
    }
    assert_int_equal(flow_check(&flow, 5), BENCH_OK);
}

static void test_reason(void **state)
{
    prepare(OPERATION_SEND, TRANSPORT_RC);
    carry(0, 0);
    in[700] = 0xaa;
    assert_int_equal(flow_check(&flow, 0), BENCH_FAILED);
    assert_int_equal(control.status, CONTROL_FAILED);
    assert_non_null(strstr(control.text, "byte 700 is 0xaa"));
}

static void test_older_message(void **state)
{
    prepare(OPERATION_SEND, TRANSPORT_RC);
    carry(0, 8);
    assert_int_equal(flow_check(&flow, 9), BENCH_FAILED);
}

static void test_shifted_by_one(void **state)
{
    prepare(OPERATION_SEND, TRANSPORT_RC);
    flow_fill(&flow, 3);
    memcpy(in, out + 1, SIZE - 1);
    assert_int_equal(flow_check(&flow, 3), BENCH_FAILED);
}

static void test_datagram_header_is_skipped(void **state)
{
    prepare(OPERATION_SEND, TRANSPORT_UD);
    carry(GRH_BYTES, 4);
    assert_int_equal(flow_check(&flow, 4), BENCH_OK);
    in[GRH_BYTES + SIZE - 1] ^= 0x80;
    assert_int_equal(flow_check(&flow, 4), BENCH_FAILED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_byte_counts),
        cmocka_unit_test(test_reason),
        cmocka_unit_test(test_older_message),
        cmocka_unit_test(test_shifted_by_one),
        cmocka_unit_test(test_datagram_header_is_skipped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
