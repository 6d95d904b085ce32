/* SPDX-License-Identifier: BSD-2-Clause */
/* Port counters: what each operation adds, and what is left when its queue pair has gone. */

#include "fabric.h"

#include "hca/proc.h"
#include "verbena.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EVERY_PACKET = 8 + 12 + 4 }; /* LRH, BTH, ICRC */

static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_qp *a, *b;
static char *memory;
static unsigned mtu;

static struct verbena_port_counters counters(void)
{
    struct verbena_port_counters now;

    assert_int_equal(verbena_query_port_counters(pd->context, 1, &now), 0);
    return now;
}

static int connect_pair(void **state)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;

    pd = ibv_alloc_pd(fabric_open());
    memory = calloc(1, 1 << 20);
    mr = ibv_reg_mr(pd, memory, 1 << 20,
                    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
                        IBV_ACCESS_REMOTE_ATOMIC);
    cq = ibv_create_cq(pd->context, 16, NULL, NULL, 0);
    a = fabric_rc_qp(pd, cq, 16);
    b = fabric_rc_qp(pd, cq, 16);
    fabric_connect(a, b);
    ibv_query_qp(a, &attr, IBV_QP_PATH_MTU, &init);
    mtu = 128u << attr.path_mtu;
    return 0;
}

static void run(enum ibv_wr_opcode opcode, uint32_t length)
{
    struct ibv_sge sge = { (uintptr_t)memory, length, mr->lkey };
    struct ibv_send_wr *bad, wr = { .sg_list = &sge, .num_sge = 1, .opcode = opcode,
                                    .send_flags = IBV_SEND_SIGNALED };
    struct ibv_recv_wr *bad_recv, recv = { .sg_list = &sge, .num_sge = 1 };
    struct ibv_wc wc;

    wr.wr.rdma.remote_addr = (uintptr_t)memory + (1 << 19);
    wr.wr.rdma.rkey = mr->rkey;
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = wr.wr.rdma.remote_addr;
        wr.wr.atomic.rkey = mr->rkey;
    }
    if (opcode == IBV_WR_SEND)
        assert_int_equal(ibv_post_recv(b, &recv, &bad_recv), 0);
    assert_int_equal(ibv_post_send(a, &wr, &bad), 0);
    while (ibv_poll_cq(cq, 1, &wc))
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
}

/* Both ends are on one port: what one of them sends, the other receives. */
static void expect(const struct verbena_port_counters *before, uint64_t packets, uint64_t bytes)
{
    struct verbena_port_counters now = counters();

    assert_int_equal(now.xmit_packets - before->xmit_packets, packets);
    assert_int_equal(now.rcv_packets - before->rcv_packets, packets);
    assert_int_equal(now.xmit_bytes - before->xmit_bytes, bytes);
    assert_int_equal(now.rcv_bytes - before->rcv_bytes, bytes);
}

static void every_operation_counts(void **state)
{
    struct verbena_port_counters before = counters();

    run(IBV_WR_SEND, 2); /* the first on the general path, the next on the fast path */
    run(IBV_WR_SEND, 2);
    expect(&before, 2, 2 * (4 + EVERY_PACKET));
    before = counters();
    run(IBV_WR_RDMA_WRITE, 2 * mtu + 1);
    expect(&before, 3, 2 * mtu + 4 + 3 * EVERY_PACKET + 16);
    before = counters();
    run(IBV_WR_RDMA_READ, mtu);
    expect(&before, 2, mtu + 2 * EVERY_PACKET + 16 + 4);
    before = counters();
    run(IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
    expect(&before, 2, 2 * EVERY_PACKET + 28 + 12);
}

/* A datagram has a DETH, and a GRH if its address has one. */
static void datagrams_count(void **state)
{
    struct ibv_qp *qp = fabric_ud_qp(pd, cq, cq, 5);
    struct ibv_sge sge = { (uintptr_t)memory, 5, mr->lkey },
                   room = { (uintptr_t)memory, 100, mr->lkey };
    struct ibv_recv_wr *bad_recv, recv = { .sg_list = &room, .num_sge = 1 };
    struct ibv_port_attr port;
    struct ibv_wc wc;

    assert_int_equal(ibv_query_port(pd->context, 1, &port), 0);
    for (int global = 0; global < 2; global++) {
        struct ibv_ah_attr to = { .dlid = port.lid, .port_num = 1, .is_global = global };
        assert_int_equal(ibv_query_gid(pd->context, 1, 0, &to.grh.dgid), 0);
        struct ibv_send_wr *bad, wr = { .sg_list = &sge,
                                        .num_sge = 1,
                                        .opcode = IBV_WR_SEND_WITH_IMM,
                                        .send_flags = IBV_SEND_SIGNALED };
        wr.wr.ud.ah = ibv_create_ah(pd, &to);
        wr.wr.ud.remote_qpn = qp->qp_num;
        wr.wr.ud.remote_qkey = 5;
        struct verbena_port_counters before = counters();
        assert_int_equal(ibv_post_recv(qp, &recv, &bad_recv), 0);
        assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
        while (ibv_poll_cq(cq, 1, &wc))
            assert_int_equal(wc.status, IBV_WC_SUCCESS);
        expect(&before, 1, 8 + EVERY_PACKET + 8 + 4 + (global ? 40 : 0));
        ibv_destroy_ah(wr.wr.ud.ah);
    }
    assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void counts_outlive_their_qp(void **state)
{
    struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
    struct verbena_port_counters before = counters();

    assert_true(before.xmit_packets > 0);
    assert_int_equal(ibv_modify_qp(a, &reset, IBV_QP_STATE), 0);
    expect(&before, 0, 0);
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
    expect(&before, 0, 0);
}

static void counts_outlive_their_process(void **state)
{
    struct verbena_port_counters before = counters();
    pid_t child = fork();

    if (!child) {
        connect_pair(NULL);
        run(IBV_WR_SEND, 4);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    proc_reap_dead();
    expect(&before, 1, 4 + EVERY_PACKET);
}

static void a_port_that_does_not_exist(void **state)
{
    struct verbena_port_counters now;

    assert_int_equal(verbena_query_port_counters(pd->context, 200, &now), 22);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation_counts),
        cmocka_unit_test(datagrams_count),
        cmocka_unit_test(counts_outlive_their_qp),
        cmocka_unit_test(counts_outlive_their_process),
        cmocka_unit_test(a_port_that_does_not_exist),
    };

    return cmocka_run_group_tests(tests, connect_pair, NULL);
}
