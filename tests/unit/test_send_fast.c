/* SPDX-License-Identifier: BSD-2-Clause */
/* Which sends the live engine's fast path takes, what arrives of them, and that it leaves everything
 * as it was where it declines. */

#include "fabric.h"

#include "hca/addr.h"
#include "hca/qp.h"
#include "live/live.h"

#include <string.h>

enum { DEPTH = 128, SIZE = 4096 };

static struct ibv_context *context;
static struct ibv_pd *pd, *other_pd;
static struct ibv_mr *mr, *other_mr;
static char memory[SIZE], remote[SIZE];
static struct ibv_mr *remote_mr;
static struct ibv_cq *near, *far;
static struct ibv_qp *a, *b;
static uint64_t posted, arrived;

static int join_fabric(void **state)
{
    context = fabric_open();
    pd = ibv_alloc_pd(context);
    other_pd = ibv_alloc_pd(context);
    mr = ibv_reg_mr(pd, memory, SIZE, 0);
    other_mr = ibv_reg_mr(other_pd, memory, SIZE, 0);
    remote_mr = ibv_reg_mr(pd, remote, SIZE, IBV_ACCESS_LOCAL_WRITE);
    for (int i = 0; i < SIZE; i++)
        memory[i] = (char)(i * 7 + 1);
    return !mr || !other_mr || !remote_mr;
}

static void post_recv(uint32_t length)
{
    struct ibv_sge sge = { (uintptr_t)remote, length, remote_mr->lkey };
    struct ibv_recv_wr *bad, wr = { .wr_id = posted++, .sg_list = &sge, .num_sge = 1 };

    assert_int_equal(ibv_post_recv(b, &wr, &bad), 0);
}

static bool fast(uint32_t from, uint32_t length, uint32_t lkey, unsigned flags)
{
    struct ibv_sge sge = { (uintptr_t)memory + from, length, lkey };
    bool sent = send_fast((struct hca_qp *)a, &sge, flags);

    store_release(&((struct hca_qp *)a)->publishing, 0);
    return sent;
}

static struct ibv_wc expect_message(uint32_t from, uint32_t length)
{
    struct ibv_wc wc;

    assert_int_equal(ibv_poll_cq(far, 1, &wc), 1);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(wc.opcode, IBV_WC_RECV);
    assert_int_equal(wc.wr_id, arrived++);
    assert_int_equal(wc.byte_len, length);
    assert_int_equal(wc.qp_num, b->qp_num);
    assert_int_equal(wc.src_qp, a->qp_num);
    assert_int_equal(wc.wc_flags, 0);
    assert_memory_equal(remote, memory + from, length);
    return wc;
}

/* The first message goes along the general path, and shows that the peer is there. */
static void send_first(void)
{
    struct ibv_sge sge = { (uintptr_t)memory, 8, mr->lkey };
    struct ibv_send_wr *bad, wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND };

    post_recv(SIZE);
    assert_int_equal(ibv_post_send(a, &wr, &bad), 0);
    expect_message(0, 8);
}

static int connect_with(int far_entries)
{
    posted = arrived = 0;
    near = ibv_create_cq(context, DEPTH, NULL, NULL, 0);
    far = ibv_create_cq(context, far_entries, NULL, NULL, 0);
    a = fabric_rc_qp(pd, near, DEPTH);
    b = fabric_rc_qp(pd, far, DEPTH);
    fabric_connect(a, b);
    return 0;
}

static int connect_pair(void **state)
{
    connect_with(DEPTH);
    send_first();
    return 0;
}

static int destroy_pair(void **state)
{
    return ibv_destroy_qp(a) || ibv_destroy_qp(b) || ibv_destroy_cq(near) || ibv_destroy_cq(far);
}

static void messages_of_every_short_length_arrive(void **state)
{
    for (uint32_t length = 1; length <= CQE_INLINE; length++) {
        memset(remote, 0, SIZE);
        post_recv(SIZE);
        assert_true(fast(length, length, mr->lkey, 0));
        struct ibv_wc wc = expect_message(length, length);
        assert_int_equal(wc.slid, addr_lid(0, 0, 1));
        assert_int_equal(wc.sl, 0);
        assert_int_equal(remote[length], 0);
    }
    for (int i = 0; i < 10; i++)
        post_recv(SIZE);
    for (int i = 0; i < 10; i++)
        assert_true(fast(0, 5, 0, IBV_SEND_INLINE));
    for (int i = 0; i < 10; i++)
        expect_message(0, 5);
}

static void expect_declined(uint32_t length, uint32_t lkey)
{
    struct shared_cq *cq = ((struct hca_cq *)far)->shared;
    struct shared_rq *rq = ((struct hca_qp *)b)->rq.shared;
    uint64_t tail = load_relaxed(&cq->tail);
    uint32_t head = load_relaxed(&rq->head);

    assert_false(fast(0, length, lkey, 0));
    assert_int_equal(load_relaxed(&cq->tail), tail);
    assert_int_equal(load_relaxed(&rq->head), head);
}

static void what_needs_a_closer_look_is_declined(void **state)
{
    expect_declined(8, mr->lkey); /* no receive */
    post_recv(20);
    post_recv(SIZE);
    expect_declined(0, mr->lkey);
    expect_declined(21, mr->lkey); /* longer than the shortest receive */
    expect_declined(8, mr->lkey ^ 1);
    expect_declined(8, other_mr->lkey);
    assert_true(fast(0, 20, mr->lkey, 0));
    expect_message(0, 20);
}

static void a_peer_that_was_never_heard_is_declined(void **state)
{
    connect_with(DEPTH);
    post_recv(SIZE);
    expect_declined(8, mr->lkey);
    assert_int_equal(destroy_pair(NULL), 0);
}

static void set_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = { .qp_state = state };

    assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
}

/* It is known already, and looked at again each time. */
static void a_peer_that_has_changed_is_declined(void **state)
{
    struct hca_qp *peer = (struct hca_qp *)b;

    post_recv(SIZE);
    post_recv(SIZE);
    assert_true(fast(0, 8, mr->lkey, 0));
    expect_message(0, 8);
#define EXPECT_DECLINED(field, change) \
    do {                               \
        field += (change);             \
        expect_declined(8, mr->lkey);  \
        field -= (change);             \
    } while (0)
    EXPECT_DECLINED(peer->shared->qpn, 1);
    EXPECT_DECLINED(peer->shared->dest_qpn, 1);
    EXPECT_DECLINED(peer->shared->state, IBV_QPS_ERR - IBV_QPS_RTS);
    EXPECT_DECLINED(peer->shared->state, IBV_QPS_INIT - IBV_QPS_RTS);
    EXPECT_DECLINED(((struct hca_cq *)far)->shared->overrun, 1);
    assert_true(fast(0, 8, mr->lkey, 0));
    expect_message(0, 8);
    set_state(b, IBV_QPS_RESET);
    expect_declined(8, mr->lkey);
}

static void nothing_passes_a_port_that_is_down(void **state)
{
    post_recv(SIZE);
    assert_int_equal(load_relaxed(&seg->ports_down), 0);
    store_relaxed(&seg->port_down[0], 1);
    store_relaxed(&seg->ports_down, 1);
    expect_declined(8, mr->lkey);
    store_relaxed(&seg->ports_down, 0);
    store_relaxed(&seg->port_down[0], 0);
    assert_true(fast(0, 8, mr->lkey, 0));
    expect_message(0, 8);
}

/* The general path tells of it. */
static void a_full_completion_queue_is_declined(void **state)
{
    connect_with(4);
    send_first();
    for (int i = 0; i < 5; i++)
        post_recv(SIZE);
    for (int i = 0; i < 3; i++)
        assert_true(fast(0, 8, mr->lkey, 0));
    while (fast(0, 8, mr->lkey, 0))
        ;
    expect_declined(8, mr->lkey);
    assert_int_equal(load_relaxed(&((struct hca_cq *)far)->shared->overrun), 0);
    assert_true(load_relaxed(&((struct hca_cq *)far)->shared->tail) <= 1 + 4);
    assert_int_equal(destroy_pair(NULL), 0);
}

static void a_shared_receive_queue_is_declined(void **state)
{
    struct ibv_srq_init_attr srq_init = { .attr = { .max_wr = 4, .max_sge = 1 } };
    struct ibv_srq *srq = ibv_create_srq(pd, &srq_init);
    struct ibv_qp_init_attr init = { .send_cq = far,
                                     .recv_cq = far,
                                     .srq = srq,
                                     .qp_type = IBV_QPT_RC,
                                     .cap = { .max_send_wr = 4, .max_send_sge = 1 } };
    struct ibv_sge sge = { (uintptr_t)remote, SIZE, remote_mr->lkey };
    struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };
    struct ibv_qp *sender = fabric_rc_qp(pd, near, 4), *receiver = ibv_create_qp(pd, &init);
    struct ibv_sge data = { (uintptr_t)memory, 8, mr->lkey };

    fabric_connect(sender, receiver);
    assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
    store_relaxed(&((struct hca_qp *)receiver)->shared->comm_est, 1);
    assert_false(send_fast((struct hca_qp *)sender, &data, 0));
    assert_int_equal(ibv_destroy_qp(sender) | ibv_destroy_qp(receiver) | ibv_destroy_srq(srq), 0);
}

#define WITH_PAIR(test) cmocka_unit_test_setup_teardown(test, connect_pair, destroy_pair)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_PAIR(messages_of_every_short_length_arrive),
        WITH_PAIR(what_needs_a_closer_look_is_declined),
        cmocka_unit_test(a_peer_that_was_never_heard_is_declined),
        WITH_PAIR(a_peer_that_has_changed_is_declined),
        WITH_PAIR(nothing_passes_a_port_that_is_down),
        cmocka_unit_test(a_full_completion_queue_is_declined),
        WITH_PAIR(a_shared_receive_queue_is_declined),
    };

    return cmocka_run_group_tests_name("send_fast", tests, join_fabric, NULL);
}
