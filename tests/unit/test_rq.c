/* SPDX-License-Identifier: BSD-2-Clause */
/* Receive queues: how far a receive reaches, and how senders see it. */

#include "fabric.h"

#include "hca/mr.h"
#include "hca/rq.h"
#include "util/util.h"

#include <errno.h>
#include <stdlib.h>

enum { LENGTH = 1000 };

static struct ibv_pd *pd;
static struct ibv_mr *mr, *read_only;
static char memory[LENGTH];

static int join_fabric(void **state)
{
    pd = ibv_alloc_pd(fabric_open());
    mr = ibv_reg_mr(pd, memory, LENGTH, IBV_ACCESS_LOCAL_WRITE);
    read_only = ibv_reg_mr(pd, memory, LENGTH, 0);
    return !mr || !read_only;
}

static uint32_t pd_id(void)
{
    return ((struct hca_pd *)pd)->id;
}

static int post(struct hca_rq *rq, uint64_t wr_id, struct ibv_sge *sges, int count)
{
    struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = sges, .num_sge = count };

    return rq_post(rq, pd_id(), &wr);
}

static struct ibv_sge piece(uint32_t from, uint32_t length, uint32_t lkey)
{
    return (struct ibv_sge){ (uintptr_t)memory + from, length, lkey };
}

static void expect_capacity(struct hca_rq *rq, uint32_t slot, uint32_t length, uint32_t reach)
{
    struct rq_capacity capacity = rq_recv_capacity(rq->shared, slot);

    assert_int_equal(capacity.length, length);
    assert_int_equal(capacity.reach, reach);
}

/* Up to the first byte that cannot be written; what a message does not touch does not matter. */
static void a_receive_reaches_as_far_as_its_keys(void **state)
{
    struct ibv_sge whole[3] = { piece(0, 10, mr->lkey), piece(50, 0, 77), piece(90, 20, mr->lkey) };
    struct ibv_sge beyond[3] = { piece(0, 10, mr->lkey), piece(LENGTH - 5, 20, mr->lkey),
                                 piece(0, 30, mr->lkey) };
    struct ibv_sge wrong[3] = { piece(0, 10, mr->lkey), piece(0, 10, read_only->lkey),
                                piece(0, 10, mr->lkey) };
    struct ibv_sge endless[2] = { piece(0, UINT32_MAX, mr->lkey), piece(0, UINT32_MAX, mr->lkey) };
    struct hca_rq rq;

    assert_int_equal(rq_create(&rq, 8, 3, false), 0);
    assert_int_equal(load_relaxed(&rq.shared->min_posted_len), UINT32_MAX);
    assert_int_equal(post(&rq, 0, whole, 3), 0);
    expect_capacity(&rq, 0, 30, 30);
    assert_int_equal(load_relaxed(&rq.shared->min_posted_len), 30);
    assert_int_equal(post(&rq, 1, beyond, 3), 0);
    expect_capacity(&rq, 1, 60, 15);
    assert_int_equal(load_relaxed(&rq.shared->min_posted_len), 15);
    assert_int_equal(post(&rq, 2, wrong, 3), 0);
    expect_capacity(&rq, 2, 30, 10);
    assert_int_equal(load_relaxed(&rq.shared->min_posted_len), 10);
    assert_int_equal(post(&rq, 3, whole, 3), 0);
    assert_int_equal(load_relaxed(&rq.shared->min_posted_len), 10);
    assert_int_equal(post(&rq, 4, endless, 2), 0);
    expect_capacity(&rq, 4, UINT32_MAX, LENGTH);
    assert_int_equal(post(&rq, 5, NULL, 0), 0);
    expect_capacity(&rq, 5, 0, 0);
    assert_int_equal(load_relaxed(&rq.shared->min_posted_len), 0);
    assert_int_equal(post(&rq, 6, whole, 4), EINVAL);
    assert_int_equal(post(&rq, 6, whole, -1), EINVAL);
    expect_capacity(&rq, 8, 0, 0); /* no such slot */
    rq_reset(&rq);
    for (uint32_t slot = 0; slot < 8; slot++) { /* the pieces of the receive before do not count */
        assert_int_equal(post(&rq, slot, whole, 1), 0);
        expect_capacity(&rq, slot, 10, 10);
    }
    rq_destroy(&rq);
}

static void a_length_has_a_status(void **state)
{
    struct rq_capacity whole = { 30, 30 }, part = { 30, 10 };

    assert_int_equal(rq_capacity_check(whole, 30), IBV_WC_SUCCESS);
    assert_int_equal(rq_capacity_check(whole, 31), IBV_WC_LOC_LEN_ERR);
    assert_int_equal(rq_capacity_check(part, 10), IBV_WC_SUCCESS);
    assert_int_equal(rq_capacity_check(part, 11), IBV_WC_LOC_PROT_ERR);
}

/* Receives that are still posted lose the bytes of a region that has gone; those taken are over. */
static void a_region_that_goes_shortens_receives(void **state)
{
    for (int many_senders = 0; many_senders < 2; many_senders++) {
        struct ibv_mr *gone = ibv_reg_mr(pd, memory, LENGTH, IBV_ACCESS_LOCAL_WRITE);
        struct hca_rq rq;
        struct rq_view view;
        uint32_t slots[3];

        assert_int_equal(rq_create(&rq, 3, 2, many_senders), 0);
        assert_true(rq_open(seg_offset(rq.shared), &view));
        for (uint64_t i = 0; i < 3; i++) {
            struct ibv_sge sges[2] = { piece(0, 10, mr->lkey), piece(10, 10, gone->lkey) };
            assert_int_equal(post(&rq, i, sges, 2), 0);
            slots[i] = rq_slot(&view, i);
            expect_capacity(&rq, slots[i], 20, 20);
        }
        assert_int_equal(load_relaxed(&rq.shared->min_posted_len), 20);
        rq_advance(rq.shared);
        assert_int_equal(ibv_dereg_mr(gone), 0);
        rq_recheck(&rq, pd_id());
        expect_capacity(&rq, slots[0], 20, 20);
        expect_capacity(&rq, slots[1], 20, 10);
        expect_capacity(&rq, slots[2], 20, 10);
        assert_int_equal(load_relaxed(&rq.shared->min_posted_len), 10);
        assert_int_equal(load_relaxed(&rq.lock.held), 0);
        rq_destroy(&rq);
    }
}

/* Of a queue of eight one has completed, one waits in the CQ, one was taken and lost, two are
 * queued. */
static void a_lost_receive_of_many_senders_is_first_again(void **state)
{
    struct ibv_sge sge = piece(0, 8, mr->lkey);
    struct hca_rq rq;
    struct rq_view view;
    uint8_t accounted[8] = { 0 };
    uint32_t left, taken[3];
    uint64_t wr_id;

    assert_int_equal(rq_create(&rq, 8, 1, true), 0);
    assert_true(rq_open(seg_offset(rq.shared), &view));
    for (uint64_t i = 0; i < 5; i++)
        assert_int_equal(post(&rq, i, &sge, 1), 0);
    for (int i = 0; i < 3; i++) {
        assert_true(rq_take(&view, &left));
        assert_int_equal(left, 4 - i);
        taken[i] = view.slot;
    }
    assert_true(rq_complete(&rq, taken[0], &wr_id));
    accounted[taken[1]] = 1;
    rq_put_back_lost(&rq, accounted);
    for (uint64_t i = 2; i < 5; i++) {
        assert_true(rq_take(&view, &left));
        assert_true(rq_complete(&rq, view.slot, &wr_id));
        assert_int_equal(wr_id, i);
    }
    assert_false(rq_take(&view, &left));
    rq_destroy(&rq);
}

static void a_reset_queue_is_empty_and_whole(void **state)
{
    struct ibv_sge sge = piece(0, 8, mr->lkey);

    for (int many_senders = 0; many_senders < 2; many_senders++) {
        struct hca_rq rq;
        struct rq_view view;
        uint64_t wr_id;

        assert_int_equal(rq_create(&rq, 5, 1, many_senders), 0);
        assert_true(rq_open(seg_offset(rq.shared), &view));
        for (uint64_t i = 0; i < 5; i++)
            assert_int_equal(post(&rq, i, &sge, 1), 0);
        assert_int_equal(post(&rq, 5, &sge, 1), ENOMEM);
        assert_true(rq_peek(&view));
        uint32_t slot = view.slot;
        rq_advance(rq.shared);
        rq_reset(&rq);
        assert_false(rq_peek(&view));
        assert_false(rq_complete(&rq, slot, &wr_id));
        assert_int_equal(load_relaxed(&rq.shared->min_posted_len), UINT32_MAX);
        for (uint64_t i = 0; i < 5; i++)
            assert_int_equal(post(&rq, 10 + i, &sge, 1), 0);
        assert_int_equal(post(&rq, 15, &sge, 1), ENOMEM);
        for (uint64_t i = 0; i < 5; i++) {
            assert_true(rq_peek(&view));
            rq_advance(rq.shared);
            assert_true(rq_complete(&rq, view.slot, &wr_id));
            assert_int_equal(wr_id, 10 + i);
        }
        rq_destroy(&rq);
        assert_null(rq.shared);
        rq_destroy(&rq); /* of a QP without a queue */
    }
}

static void a_damaged_queue_has_no_receives(void **state)
{
    struct hca_rq rq;
    uint32_t max_sge;

    assert_int_equal(rq_create(&rq, 4, 2, false), 0);
    assert_ptr_equal(rq_wqe(rq.shared, 3, &max_sge), rq_own_wqe(&rq, 3));
    assert_int_equal(max_sge, 2);
    assert_null(rq_wqe(rq.shared, 4, &max_sge));
    rq.shared->max_sge = HCA_MAX_SGE + 1;
    assert_null(rq_wqe(rq.shared, 0, &max_sge));
    rq.shared->max_sge = 2;
    rq.shared->wqes = seg_limit - 8;
    assert_null(rq_wqe(rq.shared, 0, &max_sge));
    rq_destroy(&rq);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_receive_reaches_as_far_as_its_keys),
        cmocka_unit_test(a_length_has_a_status),
        cmocka_unit_test(a_region_that_goes_shortens_receives),
        cmocka_unit_test(a_lost_receive_of_many_senders_is_first_again),
        cmocka_unit_test(a_reset_queue_is_empty_and_whole),
        cmocka_unit_test(a_damaged_queue_has_no_receives),
    };

    return cmocka_run_group_tests_name("rq", tests, join_fabric, NULL);
}
