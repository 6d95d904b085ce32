/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues from the owner's side: what waits in them, what is taken out, what is
 * overwritten. */

#include "fabric.h"

#include "dma/agent.h"
#include "hca/cq.h"
#include "hca/epoch.h"
#include "hca/proc.h"
#include "hca/qp.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static char memory[4096];

static int join_fabric(void **state)
{
    context = fabric_open();
    pd = ibv_alloc_pd(context);
    mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
    return !mr;
}

static struct hca_cq *new_cq(int entries, struct ibv_comp_channel *channel)
{
    struct ibv_cq *cq = ibv_create_cq(context, entries, NULL, channel, 0);

    assert_non_null(cq);
    return (struct hca_cq *)cq;
}

static struct cqe *reserve(struct hca_cq *cq, uint64_t *ticket)
{
    epoch_enter();
    struct cqe *e = cq_reserve(cq->shared, ticket);
    epoch_exit();
    return e;
}

/* A completion for 'slot' as a sender writes it; polling passes over it. */
static void publish(struct hca_cq *cq, uint32_t qpn, uint32_t srqn, uint32_t slot)
{
    uint64_t ticket;
    struct cqe *e = reserve(cq, &ticket);

    assert_non_null(e);
    e->qpn = qpn;
    e->srqn = srqn;
    e->slot = slot;
    cq_publish(cq->shared, e, ticket, IBV_WC_SUCCESS, IBV_WC_RECV, CQE_HOLE);
}

static void expect_empty(struct hca_cq *cq)
{
    struct ibv_wc wc;

    assert_int_equal(ibv_poll_cq(&cq->ibv, 1, &wc), 0);
    assert_int_equal(load_relaxed(&cq->shared->head), load_relaxed(&cq->shared->tail));
}

/* In the ring that is being read and in the one that it has grown into. */
static void a_ring_holds_what_was_published(void **state)
{
    enum { COUNT = 700 };
    struct hca_cq *cq = new_cq(1000, NULL);

    for (uint32_t i = 0; i < COUNT; i++)
        publish(cq, 0x100 + i % 2, i % 3 ? 0 : 7, i);
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_int_equal(cq_ring_holds(cq, 0x100, 0, i), i % 2 == 0 && i % 3 != 0);
        assert_int_equal(cq_ring_holds(cq, 0x101, 0, i), i % 2 == 1 && i % 3 != 0);
        assert_int_equal(cq_ring_holds(cq, 0, 7, i), i % 3 == 0); /* an SRQ's, of whatever QP */
    }
    assert_false(cq_ring_holds(cq, 0x100, 0, COUNT));
    assert_false(cq_ring_holds(cq, 0x102, 0, 1));
    expect_empty(cq);
    assert_false(cq_ring_holds(cq, 0x100, 0, 2));
    assert_int_equal(ibv_destroy_cq(&cq->ibv), 0);
}

static void slots_that_wait_are_marked(void **state)
{
    struct hca_cq *cq = new_cq(64, NULL);
    struct hca_qp *qp = (struct hca_qp *)fabric_rc_qp(pd, &cq->ibv, 8);
    uint8_t slots[16] = { 0 };

    publish(cq, qp->ibv.qp_num, 0, 1);
    publish(cq, qp->ibv.qp_num + 1, 0, 2);
    publish(cq, qp->ibv.qp_num, 9, 3);
    publish(cq, qp->ibv.qp_num, 0, 7);
    publish(cq, qp->ibv.qp_num, 0, 8); /* beyond the queue, as in a corrupted segment */
    cq_mark_waiting(cq, qp, slots);
    for (int i = 0; i < 16; i++)
        assert_int_equal(slots[i], i == 1 || i == 7);
    expect_empty(cq);
    assert_int_equal(ibv_destroy_qp(&qp->ibv), 0);
    assert_int_equal(ibv_destroy_cq(&cq->ibv), 0);
}

static void post_and_send(struct ibv_qp *from, struct ibv_qp *to, uint64_t wr_id)
{
    struct ibv_sge sge = { (uintptr_t)memory, 8, mr->lkey };
    struct ibv_recv_wr *bad_recv, recv = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };
    struct ibv_send_wr *bad, wr = { .wr_id = wr_id,
                                    .sg_list = &sge,
                                    .num_sge = 1,
                                    .opcode = IBV_WR_SEND,
                                    .send_flags = IBV_SEND_SIGNALED };

    assert_int_equal(ibv_post_recv(to, &recv, &bad_recv), 0);
    assert_int_equal(ibv_post_send(from, &wr, &bad), 0);
}

/* A QP takes its completions along, of sends and of receives, and those of others stay in order. */
static void a_destroyed_qp_takes_its_completions_along(void **state)
{
    struct hca_cq *sends = new_cq(64, NULL), *receives = new_cq(64, NULL);
    struct ibv_qp *pairs[2][2];
    struct ibv_wc wc[16];

    for (int i = 0; i < 2; i++) {
        pairs[i][0] = fabric_rc_qp(pd, &sends->ibv, 8);
        pairs[i][1] = fabric_rc_qp(pd, &receives->ibv, 8);
        fabric_connect(pairs[i][0], pairs[i][1]);
    }
    for (uint64_t i = 0; i < 6; i++)
        post_and_send(pairs[i % 2][0], pairs[i % 2][1], i);
    assert_true(cq_any_waits());
    assert_int_equal(ibv_destroy_qp(pairs[0][0]), 0);
    assert_int_equal(ibv_destroy_qp(pairs[0][1]), 0);
    assert_int_equal(ibv_poll_cq(&sends->ibv, 16, wc), 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(wc[i].wr_id, 2 * i + 1);
    assert_int_equal(ibv_poll_cq(&receives->ibv, 16, wc), 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(wc[i].wr_id, 2 * i + 1);
        assert_int_equal(wc[i].qp_num, pairs[1][1]->qp_num);
    }
    assert_false(cq_any_waits());
    assert_int_equal(ibv_destroy_qp(pairs[1][0]), 0);
    assert_int_equal(ibv_destroy_qp(pairs[1][1]), 0);
    assert_int_equal(ibv_destroy_cq(&sends->ibv), 0);
    assert_int_equal(ibv_destroy_cq(&receives->ibv), 0);
}

static void a_poll_takes_no_more_than_asked_and_tells_when(void **state)
{
    struct hca_cq *queues[2] = { new_cq(64, NULL), new_cq(64, NULL) };
    struct ibv_qp *a = fabric_rc_qp(pd, &queues[0]->ibv, 8);
    struct ibv_qp *b = fabric_rc_qp(pd, &queues[1]->ibv, 8);
    uint64_t times[3], last = now_ns();

    queues[1]->shared->wants_timestamps = 1;
    fabric_connect(a, b);
    for (uint64_t i = 0; i < 5; i++)
        post_and_send(a, b, i);
    uint64_t sent = now_ns();
    for (int receives = 0; receives < 2; receives++) {
        for (uint64_t i = 0; i < 5;) {
            struct ibv_wc wc[3] = { [2] = { .wr_id = 77 } };
            int got = cq_poll(queues[receives], 2, wc, times);
            assert_int_equal(got, i < 4 ? 2 : 1);
            assert_int_equal(wc[2].wr_id, 77);
            for (int k = 0; k < got; k++, i++) {
                assert_int_equal(wc[k].wr_id, i);
                assert_int_equal(wc[k].opcode, receives ? IBV_WC_RECV : IBV_WC_SEND);
                assert_in_range(times[k], receives ? last : sent, receives ? sent : now_ns());
                last = receives ? times[k] : last;
            }
        }
        assert_int_equal(cq_poll(queues[receives], 2, NULL, NULL), 0);
    }
    assert_int_equal(ibv_destroy_qp(a) | ibv_destroy_qp(b), 0);
    assert_int_equal(ibv_destroy_cq(&queues[0]->ibv) | ibv_destroy_cq(&queues[1]->ibv), 0);
}

/* Sends and receives count together. */
static void a_queue_is_not_made_smaller_than_what_waits(void **state)
{
    struct hca_cq *cq = new_cq(64, NULL);
    struct ibv_qp *a = fabric_rc_qp(pd, &cq->ibv, 8), *b = fabric_rc_qp(pd, &cq->ibv, 8);
    struct ibv_wc wc[16];

    fabric_connect(a, b);
    for (uint64_t i = 0; i < 4; i++)
        post_and_send(a, b, i);
    assert_int_equal(ibv_resize_cq(&cq->ibv, 7), EINVAL);
    assert_int_equal(load_relaxed(&cq->shared->capacity), 64);
    assert_int_equal(ibv_resize_cq(&cq->ibv, 8), 0);
    assert_int_equal(load_relaxed(&cq->shared->capacity), 8);
    assert_int_equal(ibv_poll_cq(&cq->ibv, 16, wc), 8);
    assert_int_equal(ibv_resize_cq(&cq->ibv, 1), 0);
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
    assert_int_equal(ibv_destroy_cq(&cq->ibv), 0);
}

/* Many more send completions than the first array holds, in order, and the slots of their queue are
 * free when they have been polled. */
static void send_completions_stay_in_order(void **state)
{
    enum { DEPTH = 300 };
    struct hca_cq *cq = new_cq(1000, NULL), *far = new_cq(1000, NULL);
    struct ibv_qp *a = fabric_rc_qp(pd, &cq->ibv, DEPTH), *b = fabric_rc_qp(pd, &far->ibv, DEPTH);
    struct ibv_wc wc;

    fabric_connect(a, b);
    for (int round = 0; round < 3; round++) {
        for (uint64_t i = 0; i < DEPTH; i++)
            post_and_send(a, b, i);
        for (uint64_t i = 0; i < DEPTH; i++) {
            assert_int_equal(ibv_poll_cq(&cq->ibv, 1, &wc), 1);
            assert_int_equal(wc.wr_id, i);
            assert_int_equal(wc.qp_num, a->qp_num);
            assert_int_equal(ibv_poll_cq(&far->ibv, 1, &wc), 1);
            assert_int_equal(wc.wr_id, i);
        }
    }
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
    assert_int_equal(ibv_destroy_cq(&cq->ibv), 0);
    assert_int_equal(ibv_destroy_cq(&far->ibv), 0);
}

/* Sends alone fill it, or sends and receives together. */
static void send_completions_overrun_their_queue(void **state)
{
    for (int shared = 0; shared < 2; shared++) {
        struct hca_cq *cq = new_cq(4, NULL), *far = shared ? cq : new_cq(16, NULL);
        struct ibv_qp *a = fabric_rc_qp(pd, &cq->ibv, 8), *b = fabric_rc_qp(pd, &far->ibv, 8);
        struct ibv_async_event event;
        struct ibv_wc wc[16];
        fabric_connect(a, b);
        for (uint64_t i = 0; i < (shared ? 2 : 4); i++)
            post_and_send(a, b, i);
        assert_int_equal(load_relaxed(&cq->shared->overrun), 0);
        if (shared) { /* a completion without a receive: for the fifth there is no place */
            struct ibv_sge sge = { (uintptr_t)memory, 0, mr->lkey };
            struct ibv_send_wr *bad, wr = { .sg_list = &sge,
                                            .num_sge = 1,
                                            .opcode = IBV_WR_RDMA_WRITE,
                                            .send_flags = IBV_SEND_SIGNALED };
            assert_int_equal(ibv_post_send(a, &wr, &bad), 0);
        } else {
            post_and_send(a, b, 4);
        }
        assert_int_equal(load_relaxed(&cq->shared->overrun), 1);
        assert_int_equal(ibv_get_async_event(context, &event), 0);
        assert_int_equal(event.event_type, IBV_EVENT_CQ_ERR);
        assert_ptr_equal(event.element.cq, &cq->ibv);
        ibv_ack_async_event(&event);
        assert_int_equal(ibv_poll_cq(&cq->ibv, 16, wc), 4);
        assert_int_equal(ibv_destroy_qp(a), 0);
        assert_int_equal(ibv_destroy_qp(b), 0);
        assert_int_equal(ibv_destroy_cq(&cq->ibv), 0);
        if (!shared)
            assert_int_equal(ibv_destroy_cq(&far->ibv), 0);
    }
}

static void a_ticket_of_the_dead_is_skipped(void **state)
{
    struct hca_cq *cq = new_cq(64, NULL);
    uint64_t ticket;

    assert_false(cq_skip_if_stuck(cq));
    publish(cq, 1, 0, 0);
    assert_false(cq_skip_if_stuck(cq));
    expect_empty(cq);
    assert_non_null(reserve(cq, &ticket));
    publish(cq, 1, 0, 1);
    store_relaxed(&cq->shared->overrun, 1); /* then a ticket may have no place */
    assert_true(cq_skip_if_stuck(cq));
    assert_int_equal(load_relaxed(&cq->head), ticket);
    assert_int_equal(load_relaxed(&cq->next_entry->mark), 0);
    store_relaxed(&cq->shared->overrun, 0);
    assert_true(cq_skip_if_stuck(cq));
    assert_false(cq_skip_if_stuck(cq));
    expect_empty(cq);
    assert_int_equal(load_relaxed(&cq->head), ticket + 2);
    assert_int_equal(ibv_destroy_cq(&cq->ibv), 0);
}

/* Polling alone gets there, too, however few of its rounds look. */
static void polling_skips_a_ticket_of_the_dead(void **state)
{
    struct hca_cq *cq = new_cq(64, NULL);
    uint64_t ticket;
    struct ibv_wc wc;

    assert_non_null(reserve(cq, &ticket));
    for (int i = 0; i < 100000 && load_relaxed(&cq->head) == ticket; i++)
        assert_int_equal(ibv_poll_cq(&cq->ibv, 1, &wc), 0);
    assert_int_equal(load_relaxed(&cq->head), ticket + 1);
    assert_int_equal(ibv_destroy_cq(&cq->ibv), 0);
}

/* So that a program that polls rarely is served as soon as one that polls often. */
static void the_first_empty_poll_looks_for_work(void **state)
{
    struct hca_cq *near = new_cq(4, NULL), *far = new_cq(4, NULL);
    struct ibv_qp *a = fabric_rc_qp(pd, &near->ibv, 4), *b = fabric_rc_qp(pd, &far->ibv, 4);
    struct ibv_sge sge = { (uintptr_t)memory, 8, mr->lkey };
    struct ibv_recv_wr *bad, recv = { .wr_id = 5, .sg_list = &sge, .num_sge = 1 };
    struct ibv_wc wc;

    if (agent_is_running()) /* it looks, too */
        skip();
    fabric_connect(a, b);
    assert_int_equal(ibv_post_recv(b, &recv, &bad), 0);
    qp_set_error(((struct hca_qp *)b)->shared);
    assert_int_equal(ibv_poll_cq(&far->ibv, 1, &wc), 1);
    assert_int_equal(wc.wr_id, 5);
    assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(ibv_destroy_qp(a) | ibv_destroy_qp(b), 0);
    assert_int_equal(ibv_destroy_cq(&near->ibv) | ibv_destroy_cq(&far->ibv), 0);
}

static bool is_overwritten(struct hca_cq *cq)
{
    uint64_t tail;
    bool idle;

    return cq_is_overwritten(cq, &tail, &idle);
}

#define EXPECT_NOTICED(field, change)     \
    do {                                  \
        field += (change);                \
        assert_true(is_overwritten(cq));  \
        field -= (change);                \
        assert_false(is_overwritten(cq)); \
    } while (0)

static void what_another_process_overwrites_is_noticed(void **state)
{
    struct hca_cq *cq = new_cq(64, NULL);
    uint64_t tail, ticket;
    bool idle;

    assert_false(cq_is_overwritten(cq, &tail, &idle));
    assert_true(idle);
    EXPECT_NOTICED(cq->shared->proc, 1);
    EXPECT_NOTICED(cq->shared->head, 1);
    EXPECT_NOTICED(cq->shared->ring, 64);
    EXPECT_NOTICED(cq->ring->size, 64);
    EXPECT_NOTICED(cq->ring->limit, 1);
    EXPECT_NOTICED(cq->shared->capacity, 1);
    EXPECT_NOTICED(cq->shared->tail, 2ull * HCA_MAX_CQE + 1);
    cq->shared->capacity++;
    cq_restore(cq);
    assert_false(is_overwritten(cq));
    publish(cq, 1, 0, 0);
    assert_false(cq_is_overwritten(cq, &tail, &idle));
    assert_false(idle);
    assert_int_equal(tail, 1);
    expect_empty(cq);
    assert_non_null(reserve(cq, &ticket));
    assert_true(is_overwritten(cq)); /* or a sender is about to publish */
    assert_true(cq_skip_if_stuck(cq));
    expect_empty(cq);
    assert_int_equal(ibv_destroy_cq(&cq->ibv), 0);
}

static void a_channel_is_woken(void **state)
{
    struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
    struct hca_cq *with = new_cq(4, channel), *without = new_cq(4, NULL);
    struct pollfd p = { .fd = channel->fd, .events = POLLIN };

    cq_wake(without);
    assert_int_equal(poll(&p, 1, 0), 0);
    cq_wake(with);
    assert_int_equal(poll(&p, 1, 0), 1);
    assert_int_equal(ibv_destroy_cq(&with->ibv), 0);
    assert_int_equal(ibv_destroy_cq(&without->ibv), 0);
    assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ring_holds_what_was_published),
        cmocka_unit_test(slots_that_wait_are_marked),
        cmocka_unit_test(a_destroyed_qp_takes_its_completions_along),
        cmocka_unit_test(a_poll_takes_no_more_than_asked_and_tells_when),
        cmocka_unit_test(a_queue_is_not_made_smaller_than_what_waits),
        cmocka_unit_test(send_completions_stay_in_order),
        cmocka_unit_test(send_completions_overrun_their_queue),
        cmocka_unit_test(a_ticket_of_the_dead_is_skipped),
        cmocka_unit_test(polling_skips_a_ticket_of_the_dead),
        cmocka_unit_test(the_first_empty_poll_looks_for_work),
        cmocka_unit_test(what_another_process_overwrites_is_noticed),
        cmocka_unit_test(a_channel_is_woken),
    };

    return cmocka_run_group_tests_name("cq", tests, join_fabric, NULL);
}
