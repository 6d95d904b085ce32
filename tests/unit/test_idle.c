/* SPDX-License-Identifier: BSD-2-Clause */
/* The warning that a program has connected queue pairs and sent nothing over them. */

#include "fabric.h"

#include "hca/idle.h"
#include "hca/segment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static char memory[64];

static int join_fabric(void **state)
{
    unsetenv("VERBENA_WARN_IDLE"); /* as it would warn at the end of this program */
    pd = ibv_alloc_pd(fabric_open());
    cq = ibv_create_cq(pd->context, 64, NULL, NULL, 0);
    mr = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE);
    return !mr;
}

static void post_recv(struct ibv_qp *qp)
{
    struct ibv_sge sge = { (uintptr_t)memory, sizeof(memory), mr->lkey };
    struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };

    assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
}

/* The number that a first warning of the fabric names; 0: there is none. */
static int warned_of(const char *wanted)
{
    static const char before[] = "connected queue pairs (";

    if (wanted)
        setenv("VERBENA_WARN_IDLE", wanted, 1);
    fabric_log_begin();
    idle_warn();
    const char *number = strstr(fabric_log_end(), before);
    unsetenv("VERBENA_WARN_IDLE");
    return number ? atoi(number + strlen(before)) : 0;
}

static int count_idle(void)
{
    int count = warned_of("1");

    assert_int_equal(warned_of("1"), 0); /* once is enough */
    store_relaxed(&seg->idle_told, 0);
    return count;
}

static void connected_pairs_that_sent_nothing_count(void **state)
{
    struct ibv_srq_init_attr srq_init = { .attr = { .max_wr = 4, .max_sge = 1 } };
    struct ibv_srq *srq = ibv_create_srq(pd, &srq_init);
    struct ibv_qp_init_attr init = { .send_cq = cq,
                                     .recv_cq = cq,
                                     .srq = srq,
                                     .qp_type = IBV_QPT_RC,
                                     .cap = { .max_send_wr = 1, .max_send_sge = 1 } };
    struct ibv_sge sge = { (uintptr_t)memory, sizeof(memory), mr->lkey };
    struct ibv_recv_wr *bad_recv, recv = { .sg_list = &sge, .num_sge = 1 };
    struct ibv_qp_attr to_init = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

    assert_int_equal(count_idle(), 0);
    struct ibv_qp *a = fabric_rc_qp(pd, cq, 4), *b = fabric_rc_qp(pd, cq, 4);
    fabric_connect(a, b);
    assert_int_equal(count_idle(), 0); /* without receives nobody waits for anything */
    post_recv(b);
    assert_int_equal(count_idle(), 1);
    post_recv(a);
    assert_int_equal(count_idle(), 2);
    assert_int_equal(warned_of(NULL), 0);
    assert_int_equal(warned_of(""), 0);
    struct ibv_qp *unconnected = fabric_rc_qp(pd, cq, 4);
    assert_int_equal(
        ibv_modify_qp(unconnected, &to_init,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
        0);
    post_recv(unconnected);
    assert_int_equal(count_idle(), 2);
    assert_int_equal(ibv_destroy_qp(unconnected), 0);
    assert_int_equal(ibv_destroy_qp(b), 0); /* those that have gone count, too */
    assert_int_equal(count_idle(), 2);
    b = ibv_create_qp(pd, &init);
    struct ibv_qp *c = ibv_create_qp(pd, &init);
    fabric_connect(b, c);
    assert_int_equal(count_idle(), 2);
    assert_int_equal(ibv_post_srq_recv(srq, &recv, &bad_recv), 0);
    assert_int_equal(count_idle(), 4);
    assert_int_equal(ibv_destroy_qp(a) | ibv_destroy_qp(b) | ibv_destroy_qp(c), 0);
    assert_int_equal(count_idle(), 4);
    assert_int_equal(ibv_destroy_srq(srq), 0);
}

/* One message, of any process, and the adapter was not idle. */
static void one_message_is_enough(void **state)
{
    struct ibv_qp *a = fabric_rc_qp(pd, cq, 4), *b = fabric_rc_qp(pd, cq, 4);
    struct ibv_sge sge = { (uintptr_t)memory, 8, mr->lkey };
    struct ibv_send_wr *bad, wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND };

    fabric_connect(a, b);
    post_recv(b);
    post_recv(a);
    assert_true(count_idle() >= 2);
    assert_int_equal(ibv_post_send(a, &wr, &bad), 0);
    assert_int_equal(load_relaxed(&seg->connected_sends), 1);
    assert_int_equal(count_idle(), 0);
    assert_int_equal(ibv_destroy_qp(a) | ibv_destroy_qp(b), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connected_pairs_that_sent_nothing_count),
        cmocka_unit_test(one_message_is_enough),
    };

    return cmocka_run_group_tests_name("idle", tests, join_fabric, NULL);
}
