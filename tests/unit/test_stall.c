/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends of the live engine that wait: for a receive, for a peer, for RTS; and how waiting ends. */

#include "fabric.h"

#include "hca/engine.h"
#include "hca/qp.h"
#include "util/util.h"

#include <string.h>
#include <unistd.h>

enum { SIZE = 1 << 16, SENDS = 5, FIRST = 40, SECOND = 24, ROOM = 80 };

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *near, *far;
static struct ibv_qp *a, *b;
static struct ibv_mr *mr;
static char memory[2 * SIZE], *const remote = memory + SIZE;

static int join_fabric(void **state)
{
    context = fabric_open();
    pd = ibv_alloc_pd(context);
    mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    return !mr;
}

static int connect_pair(void **state)
{
    near = ibv_create_cq(context, 64, NULL, NULL, 0);
    far = ibv_create_cq(context, 64, NULL, NULL, 0);
    a = fabric_rc_qp(pd, near, 16);
    b = fabric_rc_qp(pd, far, 16);
    fabric_connect(a, b);
    return 0;
}

static int destroy_pair(void **state)
{
    return ibv_destroy_qp(a) || ibv_destroy_qp(b) || ibv_destroy_cq(near) || ibv_destroy_cq(far) ||
           load_relaxed(&hca_waiting);
}

static struct ibv_qp_attr *attributes(struct ibv_qp *qp)
{
    return &((struct hca_qp *)qp)->attr;
}

static struct ibv_wc poll_one(struct ibv_cq *cq)
{
    struct ibv_wc wc = { 0 };
    uint64_t limit = now_ns() + 20000000000ull;
    int got;

    while ((got = ibv_poll_cq(cq, 1, &wc)) == 0 && now_ns() < limit)
        ;
    assert_int_equal(got, 1);
    return wc;
}

static void expect(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status)
{
    struct ibv_wc wc = poll_one(cq);

    assert_int_equal(wc.wr_id, wr_id);
    assert_int_equal(wc.status, status);
}

static void expect_nothing_for(struct ibv_cq *cq, uint64_t ns)
{
    uint64_t limit = now_ns() + ns;
    struct ibv_wc wc;

    while (now_ns() < limit)
        assert_int_equal(ibv_poll_cq(cq, 1, &wc), 0);
}

/* The service thread may be about to change it. */
static void expect_waiting(unsigned pairs)
{
    uint64_t limit = now_ns() + 20000000000ull;

    while (load_relaxed(&hca_waiting) != pairs && now_ns() < limit)
        usleep(100);
    assert_int_equal(load_relaxed(&hca_waiting), pairs);
}

/* Each has two pieces, and bytes of its own. */
static void post_send(uint64_t number, unsigned flags)
{
    char *at = memory + 256 * number;
    struct ibv_sge sges[2] = { { (uintptr_t)at, FIRST, mr->lkey },
                               { (uintptr_t)at + 128, SECOND, mr->lkey } };
    struct ibv_send_wr *bad, wr = { .wr_id = number,
                                    .sg_list = sges,
                                    .num_sge = 2,
                                    .opcode = IBV_WR_SEND,
                                    .send_flags = IBV_SEND_SIGNALED | flags };

    memset(at, (int)number + 1, FIRST);
    memset(at + 128, (int)number + 101, SECOND);
    assert_int_equal(ibv_post_send(a, &wr, &bad), 0);
    if (flags & IBV_SEND_INLINE)
        memset(at, 0, 256); /* it is the program's again */
}

static void post_recv(uint64_t number)
{
    struct ibv_sge sge = { (uintptr_t)remote + 256 * number, ROOM, mr->lkey };
    struct ibv_recv_wr *bad, wr = { .wr_id = number, .sg_list = &sge, .num_sge = 1 };

    memset(remote + 256 * number, 0, ROOM);
    assert_int_equal(ibv_post_recv(b, &wr, &bad), 0);
}

static void expect_message(uint64_t number)
{
    const char *at = remote + 256 * number;

    expect(far, number, IBV_WC_SUCCESS);
    for (int i = 0; i < ROOM; i++)
        assert_int_equal((unsigned char)at[i], i < FIRST            ? number + 1
                                               : i < FIRST + SECOND ? number + 101
                                                                    : 0);
}

static void set_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = { .qp_state = state };

    assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
}

static void sends_wait_for_receives_in_order(void **state)
{
    for (uint64_t i = 0; i < SENDS; i++)
        post_send(i, i % 2 ? IBV_SEND_INLINE : 0);
    expect_waiting(1);
    expect_nothing_for(near, 1000000);
    for (uint64_t i = 0; i < SENDS; i++) {
        post_recv(i);
        expect(near, i, IBV_WC_SUCCESS);
        expect_message(i);
        expect_nothing_for(near, 100000);
    }
    expect_waiting(0);
    post_recv(0);
    post_send(0, 0);
    expect(near, 0, IBV_WC_SUCCESS);
    expect_message(0);
}

/* One that waits does not keep others from waiting, nor from going on. */
static void each_pair_waits_for_itself(void **state)
{
    struct ibv_qp *first = a, *second = b;
    struct ibv_cq *first_near = near, *first_far = far;

    post_send(0, 0);
    connect_pair(NULL);
    post_send(1, 0);
    expect_waiting(2);
    post_recv(1);
    expect(near, 1, IBV_WC_SUCCESS);
    expect_message(1);
    expect_waiting(1);
    post_send(2, 0);
    assert_int_equal(ibv_destroy_qp(a) | ibv_destroy_qp(b), 0);
    assert_int_equal(ibv_destroy_cq(near) | ibv_destroy_cq(far), 0);
    expect_waiting(1);
    a = first;
    b = second;
    near = first_near;
    far = first_far;
    post_recv(0);
    expect(near, 0, IBV_WC_SUCCESS);
    expect_message(0);
}

static void without_retries_a_missing_receive_is_an_error(void **state)
{
    attributes(a)->rnr_retry = 0;
    post_send(0, 0);
    post_send(1, 0);
    expect(near, 0, IBV_WC_RNR_RETRY_EXC_ERR);
    expect(near, 1, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(qp_state((struct hca_qp *)a), IBV_QPS_ERR);
    assert_int_equal(qp_state((struct hca_qp *)b), IBV_QPS_RTS);
    post_send(2, 0);
    expect(near, 2, IBV_WC_WR_FLUSH_ERR);
}

/* 20.48 ms each, as the receiver asks. */
static void retries_last_as_long_as_the_receiver_asks(void **state)
{
    uint64_t started = now_ns();

    attributes(a)->rnr_retry = 3;
    ((struct hca_qp *)b)->shared->min_rnr_timer = 22;
    post_send(0, 0);
    expect(near, 0, IBV_WC_RNR_RETRY_EXC_ERR);
    assert_true(now_ns() - started >= 3 * 20480000ull);
}

static void seven_retries_are_endless(void **state)
{
    post_send(0, 0); /* 10 us, seven times */
    expect_nothing_for(near, 10000000);
    post_recv(0);
    expect(near, 0, IBV_WC_SUCCESS);
    expect_message(0);
}

/* 2^12 ns times 2^10, twice. */
static void a_peer_that_is_not_ready_is_waited_for(void **state)
{
    uint64_t started = now_ns();

    set_state(b, IBV_QPS_RESET);
    post_send(0, 0);
    expect(near, 0, IBV_WC_RETRY_EXC_ERR);
    assert_true(now_ns() - started >= 2 * (4096ull << 10));
    assert_int_equal(qp_state((struct hca_qp *)a), IBV_QPS_ERR);
}

static void without_a_timeout_it_is_waited_for_without_end(void **state)
{
    struct hca_qp *peer = (struct hca_qp *)b;

    attributes(a)->timeout = 0;
    store_relaxed(&peer->shared->dest_qpn, 0); /* as if it were not connected */
    post_send(0, 0);
    expect_nothing_for(near, 15000000);
    store_relaxed(&peer->shared->dest_qpn, a->qp_num);
    post_recv(0);
    expect(near, 0, IBV_WC_SUCCESS);
    expect_message(0);
}

static void an_error_flushes_what_waits_and_a_reset_drops_it(void **state)
{
    for (uint64_t i = 0; i < SENDS; i++)
        post_send(i, 0);
    set_state(a, IBV_QPS_ERR);
    for (uint64_t i = 0; i < SENDS; i++)
        expect(near, i, IBV_WC_WR_FLUSH_ERR);
    set_state(a, IBV_QPS_RESET);
    set_state(b, IBV_QPS_RESET);
    fabric_connect(a, b);
    for (uint64_t i = 0; i < SENDS; i++)
        post_send(i, 0);
    set_state(a, IBV_QPS_RESET);
    expect_waiting(0);
    expect_nothing_for(near, 1000000);
    set_state(b, IBV_QPS_RESET);
    fabric_connect(a, b);
    post_recv(3);
    post_send(3, 0);
    expect(near, 3, IBV_WC_SUCCESS);
    expect_message(3);
}

static void a_drained_queue_keeps_its_sends(void **state)
{
    set_state(a, IBV_QPS_SQD);
    for (uint64_t i = 0; i < SENDS; i++) {
        post_recv(i);
        post_send(i, 0);
    }
    expect_nothing_for(near, 1000000);
    expect_nothing_for(far, 100000);
    set_state(a, IBV_QPS_RTS);
    for (uint64_t i = 0; i < SENDS; i++) {
        expect(near, i, IBV_WC_SUCCESS);
        expect_message(i);
    }
}

#define WITH_PAIR(test) cmocka_unit_test_setup_teardown(test, connect_pair, destroy_pair)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_PAIR(sends_wait_for_receives_in_order),
        WITH_PAIR(each_pair_waits_for_itself),
        WITH_PAIR(without_retries_a_missing_receive_is_an_error),
        WITH_PAIR(retries_last_as_long_as_the_receiver_asks),
        WITH_PAIR(seven_retries_are_endless),
        WITH_PAIR(a_peer_that_is_not_ready_is_waited_for),
        WITH_PAIR(without_a_timeout_it_is_waited_for_without_end),
        WITH_PAIR(an_error_flushes_what_waits_and_a_reset_drops_it),
        WITH_PAIR(a_drained_queue_keeps_its_sends),
    };

    return cmocka_run_group_tests_name("stall", tests, join_fabric, NULL);
}
