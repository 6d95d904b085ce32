/* SPDX-License-Identifier: BSD-2-Clause */
/* What another process overwrites in the segment is noticed after three looks, a second apart. */

#include "fabric.h"

#include "dma/agent.h"
#include "hca/cq.h"
#include "hca/epoch.h"
#include "hca/proc.h"
#include "hca/qp.h"

#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { DEPTH = 16, RECEIVES = 3 };

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static char memory[64];
static struct ibv_cq *near, *far;
static struct ibv_qp *a;
static struct hca_qp *b;

/* ---- a clock that stands ---- */

static time_t seconds = 1000000;

int clock_gettime(clockid_t clock, struct timespec *now)
{
    if (clock != CLOCK_MONOTONIC && clock != CLOCK_MONOTONIC_COARSE)
        return syscall(SYS_clock_gettime, clock, now);
    *now = (struct timespec){ .tv_sec = seconds };
    return 0;
}

static void look(void)
{
    seconds++;
    qp_look_for_damage();
}

/* ---- a pair that waits for messages ---- */

static int join_fabric(void **state)
{
    context = fabric_open();
    pd = ibv_alloc_pd(context);
    mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
    return !mr;
}

static void post_recv(uint64_t wr_id)
{
    struct ibv_sge sge = { (uintptr_t)memory, 8, mr->lkey };
    struct ibv_recv_wr *bad, wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };

    assert_int_equal(ibv_post_recv(&b->ibv, &wr, &bad), 0);
}

static int connect_pair(void **state)
{
    near = ibv_create_cq(context, 64, NULL, NULL, 0);
    far = ibv_create_cq(context, 64, NULL, NULL, 0);
    a = fabric_rc_qp(pd, near, DEPTH);
    b = (struct hca_qp *)fabric_rc_qp(pd, far, DEPTH);
    fabric_connect(a, &b->ibv);
    for (uint64_t i = 0; i < RECEIVES; i++)
        post_recv(i);
    return 0;
}

static int destroy_pair(void **state)
{
    return ibv_destroy_qp(a) || ibv_destroy_qp(&b->ibv) || ibv_destroy_cq(near) ||
           ibv_destroy_cq(far);
}

static void expect_message(void)
{
    struct ibv_sge sge = { (uintptr_t)memory, 8, mr->lkey };
    struct ibv_send_wr *bad, wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND };
    struct ibv_wc wc;

    assert_int_equal(ibv_post_send(a, &wr, &bad), 0);
    assert_int_equal(ibv_poll_cq(far, 1, &wc), 1);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
}

static void expect_error_at_the_third_look(void)
{
    struct ibv_async_event event;
    struct ibv_wc wc[RECEIVES + 1];

    for (int i = 1; i < 3; i++) {
        look();
        assert_int_equal(b->odd_looks, i);
        assert_false(b->flushed);
    }
    fabric_log_begin();
    look();
    const char *text = fabric_log_end();
    if (!strstr(text, "another process has overwritten QP 0x"))
        fail_msg("'%s'", text);
    assert_int_equal(qp_state(b), IBV_QPS_ERR);
    assert_true(b->flushed);
    assert_int_equal(ibv_poll_cq(far, RECEIVES + 1, wc), RECEIVES);
    for (uint64_t i = 0; i < RECEIVES; i++) {
        assert_int_equal(wc[i].wr_id, i);
        assert_int_equal(wc[i].status, IBV_WC_WR_FLUSH_ERR);
        assert_int_equal(wc[i].opcode, IBV_WC_RECV);
        assert_int_equal(wc[i].qp_num, b->ibv.qp_num);
    }
    assert_int_equal(ibv_get_async_event(context, &event), 0);
    assert_int_equal(event.event_type, IBV_EVENT_QP_FATAL);
    assert_ptr_equal(event.element.qp, &b->ibv);
    ibv_ack_async_event(&event);
    for (int i = 0; i < 4; i++) /* that is the end of it */
        look();
    assert_int_equal(b->odd_looks, 0);
}

#define EXPECT_NOTICED(field, change)            \
    do {                                         \
        connect_pair(NULL);                      \
        field += (change);                       \
        expect_error_at_the_third_look();        \
        field -= (change);                       \
        assert_int_equal(destroy_pair(NULL), 0); \
    } while (0)

static void every_number_that_peers_could_change_counts(void **state)
{
    EXPECT_NOTICED(b->shared->qpn, 1);
    EXPECT_NOTICED(b->shared->proc, 1);
    EXPECT_NOTICED(b->shared->dest_qpn, 1);
    EXPECT_NOTICED(b->shared->recv_cq, 64);
    EXPECT_NOTICED(b->shared->rq, 64);
    EXPECT_NOTICED(b->rq.shared->depth, DEPTH);
    EXPECT_NOTICED(b->rq.shared->head, 1);
    EXPECT_NOTICED(b->shared->state, IBV_QPS_SQD - IBV_QPS_RTS);
    EXPECT_NOTICED(((struct hca_cq *)far)->shared->capacity, 1000);
}

static void what_is_whole_is_left_alone(void **state)
{
    for (int i = 0; i < 5; i++) {
        expect_message();
        look();
        assert_int_equal(b->odd_looks, 0);
        post_recv(i);
    }
    qp_set_error(b->shared); /* as peers may do */
    look();
    assert_int_equal(b->odd_looks, 0);
}

static void one_second_has_one_look(void **state)
{
    b->shared->dest_qpn++;
    look();
    for (int i = 0; i < 5; i++)
        qp_look_for_damage();
    assert_int_equal(b->odd_looks, 1);
    b->shared->dest_qpn--;
    look();
    assert_int_equal(b->odd_looks, 0);
}

/* Looks must agree: a message on its way is no damage. */
static void a_change_begins_the_count_anew(void **state)
{
    b->shared->dest_qpn++;
    look();
    look();
    assert_int_equal(b->odd_looks, 2);
    post_recv(RECEIVES);
    look();
    assert_int_equal(b->odd_looks, 1);
    assert_int_equal(qp_state(b), IBV_QPS_RTS);
    b->shared->dest_qpn--;
}

/* Its sender has died. */
static void a_ticket_that_is_never_published_is_skipped(void **state)
{
    struct hca_cq *cq = (struct hca_cq *)far;
    uint64_t ticket;
    struct ibv_wc wc;

    epoch_enter();
    assert_non_null(cq_reserve(cq->shared, &ticket));
    epoch_exit();
    for (int i = 0; i < 3; i++)
        look();
    assert_int_equal(qp_state(b), IBV_QPS_RTS);
    assert_int_equal(ibv_poll_cq(far, 1, &wc), 0);
    assert_int_equal(load_relaxed(&cq->head), ticket + 1);
    expect_message();
}

static void pairs_that_are_not_connected_are_not_looked_at(void **state)
{
    struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };

    assert_int_equal(ibv_modify_qp(&b->ibv, &reset, IBV_QP_STATE), 0);
    b->shared->dest_qpn++;
    look();
    assert_int_equal(b->odd_looks, 0);
    b->shared->dest_qpn--;
}

/* ---- lines of threads, for which grace periods wait ---- */

static void lines_that_nobody_has_are_released(void **state)
{
    struct thread_line *lines = proc_slot(proc_self)->threads;

    epoch_enter();
    epoch_exit();
    for (unsigned i = 0; i < MAX_THREAD_LINES - 2; i++)
        store_relaxed(&lines[i].used, 1);
    look();
    for (unsigned i = 0; i < MAX_THREAD_LINES - 2; i++)
        assert_int_equal(load_relaxed(&lines[i].used), &lines[i] == epoch_line);
}

static void a_line_that_is_never_left_is_repaired(void **state)
{
    epoch_enter();
    epoch_exit();
    uint32_t epoch = load_relaxed(&epoch_line->epoch);
    assert_int_equal(epoch % 2, 0);
    epoch_repair_own_line();
    assert_int_equal(load_relaxed(&epoch_line->epoch), epoch);
    store_relaxed(&epoch_line->epoch, 77);
    for (int i = 0; i < 2; i++) {
        epoch_repair_own_line();
        assert_int_equal(load_relaxed(&epoch_line->epoch), 77);
        seconds++;
    }
    epoch_repair_own_line();
    assert_int_equal(load_relaxed(&epoch_line->epoch), 78);
}

/* The service thread looks, too. */
static void it_runs_alone(void **state)
{
    assert_false(agent_is_running());
}

#define WITH_PAIR(test) cmocka_unit_test_setup_teardown(test, connect_pair, destroy_pair)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_runs_alone),
        cmocka_unit_test(every_number_that_peers_could_change_counts),
        WITH_PAIR(what_is_whole_is_left_alone),
        WITH_PAIR(one_second_has_one_look),
        WITH_PAIR(a_change_begins_the_count_anew),
        WITH_PAIR(a_ticket_that_is_never_published_is_skipped),
        WITH_PAIR(pairs_that_are_not_connected_are_not_looked_at),
        cmocka_unit_test(lines_that_nobody_has_are_released),
        cmocka_unit_test(a_line_that_is_never_left_is_repaired),
    };

    return cmocka_run_group_tests_name("damage", tests, join_fabric, NULL);
}
