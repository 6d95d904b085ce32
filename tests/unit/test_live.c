/* SPDX-License-Identifier: BSD-2-Clause */
/* What each operation of the live engine moves, and what its completions tell. */

#include "fabric.h"

#include "hca/addr.h"
#include "hca/epoch.h"
#include "hca/qp.h"
#include "hca/rq.h"
#include "hca/table.h"
#include "live/live.h"
#include "util/log.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { QKEY = 0x11111111, GRH = 40, SIZE = 1 << 16 };

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *near, *far;
static struct ibv_qp *a, *b;
static struct ibv_mr *mr;
static char *memory, *remote;

static int join_fabric(void **state)
{
    fabric_let_another_be_first();
    context = fabric_open();
    pd = ibv_alloc_pd(context);
    near = ibv_create_cq(context, 64, NULL, NULL, 0);
    far = ibv_create_cq(context, 64, NULL, NULL, 0);
    memory = calloc(2, SIZE);
    remote = memory + SIZE;
    mr = ibv_reg_mr(pd, memory, 2 * SIZE,
                    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
                        IBV_ACCESS_REMOTE_ATOMIC);
    return !mr;
}

static int leave_fabric(void **state)
{
    fabric_end_the_first();
    return 0;
}

static int connect_pair(void **state)
{
    for (int i = 0; i < 2 * SIZE; i++)
        memory[i] = (char)(i * 7 + i / 256);
    a = fabric_rc_qp(pd, near, 16);
    b = fabric_rc_qp(pd, far, 16);
    fabric_connect(a, b);
    return 0;
}

static int destroy_pair(void **state)
{
    struct ibv_async_event event;

    if (qp_state((struct hca_qp *)b) == IBV_QPS_ERR) {
        ibv_get_async_event(context, &event); /* each test that breaks a QP causes one event */
        ibv_ack_async_event(&event);
    }
    return ibv_destroy_qp(a) || ibv_destroy_qp(b);
}

static struct ibv_wc poll_one(struct ibv_cq *cq)
{
    struct ibv_wc wc;
    uint64_t limit = now_ns() + 10000000000ull;
    int got;

    memset(&wc, 0xff, sizeof(wc));
    while ((got = ibv_poll_cq(cq, 1, &wc)) == 0 && now_ns() < limit)
        ;
    assert_int_equal(got, 1);
    assert_int_equal(wc.vendor_err | wc.pkey_index | wc.dlid_path_bits, 0);
    return wc;
}

static void post(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad;

    wr->send_flags |= IBV_SEND_SIGNALED;
    assert_int_equal(ibv_post_send(qp, wr, &bad), 0);
}

static void post_recv(struct ibv_qp *qp, uint64_t wr_id, char *at, uint32_t length)
{
    struct ibv_sge sge = { (uintptr_t)at, length, mr->lkey };
    struct ibv_recv_wr *bad, wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };

    assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
}

/* An operation on the remote memory, with its local bytes in two pieces of 'first' and 'second'
 * bytes. */
static struct ibv_wc run(enum ibv_wr_opcode opcode, uint64_t to, uint32_t first, uint32_t second)
{
    struct ibv_sge sges[2] = { { (uintptr_t)memory, first, mr->lkey },
                               { (uintptr_t)memory + 4096, second, mr->lkey } };
    struct ibv_send_wr wr = {
        .sg_list = sges, .num_sge = 2, .opcode = opcode, .imm_data = htonl(0x1234)
    };

    wr.wr.rdma.remote_addr = to;
    wr.wr.rdma.rkey = mr->rkey;
    post(a, &wr);
    return poll_one(near);
}

static void expect_done(struct ibv_wc wc, enum ibv_wc_opcode opcode, uint32_t bytes)
{
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(wc.opcode, opcode);
    assert_int_equal(wc.byte_len, bytes);
    assert_int_equal(wc.qp_num, a->qp_num);
    assert_int_equal(wc.wc_flags | wc.imm_data | wc.src_qp | wc.slid | wc.sl, 0);
}

static void a_write_gathers_and_a_read_scatters(void **state)
{
    char kept[16];

    memcpy(kept, remote + 300, sizeof(kept));
    expect_done(run(IBV_WR_RDMA_WRITE, (uintptr_t)remote, 100, 200), IBV_WC_RDMA_WRITE, 300);
    assert_memory_equal(remote, memory, 100);
    assert_memory_equal(remote + 100, memory + 4096, 200);
    assert_memory_equal(remote + 300, kept, sizeof(kept));
    memset(memory, 0, 8192);
    expect_done(run(IBV_WR_RDMA_READ, (uintptr_t)remote + 50, 30, 7), IBV_WC_RDMA_READ, 37);
    assert_memory_equal(memory, remote + 50, 30);
    assert_int_equal(memory[30], 0);
    assert_memory_equal(memory + 4096, remote + 80, 7);
    assert_int_equal(memory[4096 + 7], 0);
    expect_done(run(IBV_WR_RDMA_WRITE, 0, 0, 0), IBV_WC_RDMA_WRITE, 0); /* no bytes, no address */
    expect_done(run(IBV_WR_RDMA_READ, 0, 0, 0), IBV_WC_RDMA_READ, 0);
}

static void a_long_write_arrives_whole(void **state)
{
    for (uint32_t length = 3000; length < 4096; length += 500) {
        memset(remote, 0, 10000);
        expect_done(run(IBV_WR_RDMA_WRITE, (uintptr_t)remote, length, length), IBV_WC_RDMA_WRITE,
                    2 * length);
        assert_memory_equal(remote, memory, length);
        assert_memory_equal(remote + length, memory + 4096, length);
        assert_int_equal(remote[2 * length], 0);
    }
}

static struct ibv_wc atomic(enum ibv_wr_opcode opcode, uint64_t compare_add, uint64_t swap,
                            uint32_t first, uint32_t second)
{
    struct ibv_sge sges[2] = { { (uintptr_t)memory, first, mr->lkey },
                               { (uintptr_t)memory + 4096, second, mr->lkey } };
    struct ibv_send_wr wr = { .sg_list = sges, .num_sge = 2, .opcode = opcode };

    wr.wr.atomic.remote_addr = (uintptr_t)remote;
    wr.wr.atomic.rkey = mr->rkey;
    wr.wr.atomic.compare_add = compare_add;
    wr.wr.atomic.swap = swap;
    post(a, &wr);
    return poll_one(near);
}

static void expect_before(uint64_t wanted, uint32_t first)
{
    uint64_t before;

    memcpy(&before, memory, first);
    memcpy((char *)&before + first, memory + 4096, 8 - first);
    assert_int_equal(before, wanted);
}

static void atomics_return_what_was_there(void **state)
{
    uint64_t *word = (uint64_t *)remote;

    *word = 0x1122334455667788;
    expect_done(atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 5, 0, 3, 5), IBV_WC_FETCH_ADD, 8);
    expect_before(0x1122334455667788, 3);
    assert_int_equal(*word, 0x112233445566778d);
    expect_done(atomic(IBV_WR_ATOMIC_CMP_AND_SWP, 1, 2, 4, 4), IBV_WC_COMP_SWAP, 8);
    expect_before(0x112233445566778d, 4);
    assert_int_equal(*word, 0x112233445566778d);
    expect_done(atomic(IBV_WR_ATOMIC_CMP_AND_SWP, 0x112233445566778d, 2, 8, 0), IBV_WC_COMP_SWAP,
                8);
    expect_before(0x112233445566778d, 8);
    assert_int_equal(*word, 2);
}

static void an_atomic_has_eight_bytes(void **state)
{
    assert_int_equal(atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 4, 3).status, IBV_WC_LOC_LEN_ERR);
}

static void an_atomic_write_has_eight_bytes(void **state)
{
    struct ibv_sge sge = { (uintptr_t)memory, 7, mr->lkey };
    struct ibv_send_wr *bad, wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_ATOMIC_WRITE };

    expect_done(run(IBV_WR_ATOMIC_WRITE, (uintptr_t)remote, 3, 5), IBV_WC_ATOMIC_WRITE, 8);
    assert_memory_equal(remote, memory, 3);
    assert_memory_equal(remote + 3, memory + 4096, 5);
    assert_int_equal(ibv_post_send(a, &wr, &bad), EINVAL);
}

static void a_write_with_immediate_takes_a_receive(void **state)
{
    post_recv(b, 77, remote + 5000, 10);
    expect_done(run(IBV_WR_RDMA_WRITE_WITH_IMM, (uintptr_t)remote, 20, 30), IBV_WC_RDMA_WRITE, 50);
    struct ibv_wc wc = poll_one(far);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    assert_int_equal(wc.wr_id, 77);
    assert_int_equal(wc.byte_len, 50);
    assert_int_equal(wc.wc_flags, IBV_WC_WITH_IMM);
    assert_int_equal(ntohl(wc.imm_data), 0x1234);
    assert_int_equal(wc.qp_num, b->qp_num);
    assert_memory_equal(remote, memory, 20);
    assert_memory_equal(remote + 20, memory + 4096, 30);
}

static void sends_of_all_lengths_arrive(void **state)
{
    static const uint32_t lengths[] = { 0, 1, 80, 81, 1024, 4000 };

    for (unsigned i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
        struct ibv_sge pieces[2] = { { (uintptr_t)remote, 50, mr->lkey },
                                     { (uintptr_t)remote + 100, 9000, mr->lkey } };
        struct ibv_recv_wr *bad, recv = { .wr_id = i, .sg_list = pieces, .num_sge = 2 };
        uint32_t length = 2 * lengths[i];
        memset(remote, 0, 10000);
        assert_int_equal(ibv_post_recv(b, &recv, &bad), 0);
        expect_done(run(IBV_WR_SEND_WITH_IMM, 0, lengths[i], lengths[i]), IBV_WC_SEND, length);
        struct ibv_wc wc = poll_one(far);
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
        assert_int_equal(wc.opcode, IBV_WC_RECV);
        assert_int_equal(wc.wr_id, i);
        assert_int_equal(wc.byte_len, length);
        assert_int_equal(wc.src_qp, a->qp_num);
        assert_int_equal(wc.slid, addr_lid(0, 0, 1));
        for (uint32_t at = 0; at < length; at++)
            assert_int_equal(remote[at < 50 ? at : at + 50],
                             at < lengths[i] ? memory[at] : memory[4096 + at - lengths[i]]);
        assert_int_equal(remote[length < 50 ? length : length + 50], 0);
    }
}

/* ---- what is refused ---- */

static void expect_event(enum ibv_event_type type)
{
    struct ibv_async_event event;

    assert_int_equal(ibv_get_async_event(context, &event), 0);
    assert_int_equal(event.event_type, type);
    assert_ptr_equal(event.element.qp, b);
    ibv_ack_async_event(&event);
}

static void a_wrong_remote_key_breaks_both(void **state)
{
    assert_int_equal(run(IBV_WR_RDMA_WRITE, (uintptr_t)memory - 1, 8, 0).status,
                     IBV_WC_REM_ACCESS_ERR);
    assert_int_equal(qp_state((struct hca_qp *)a), IBV_QPS_ERR);
    assert_int_equal(qp_state((struct hca_qp *)b), IBV_QPS_ERR);
}

static void an_operation_that_is_not_enabled_breaks_both(void **state)
{
    struct ibv_qp_attr none = { .qp_access_flags = 0 };

    assert_int_equal(ibv_modify_qp(b, &none, IBV_QP_ACCESS_FLAGS), 0);
    assert_int_equal(run(IBV_WR_RDMA_READ, (uintptr_t)remote, 8, 0).status, IBV_WC_REM_INV_REQ_ERR);
    assert_int_equal(qp_state((struct hca_qp *)b), IBV_QPS_ERR);
}

static void an_atomic_is_aligned(void **state)
{
    remote++;
    struct ibv_wc wc = atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 8, 0);
    remote--;
    assert_int_equal(wc.status, IBV_WC_REM_INV_REQ_ERR);
    expect_event(IBV_EVENT_QP_REQ_ERR);
    assert_int_equal(ibv_destroy_qp(a) | ibv_destroy_qp(b), 0);
    connect_pair(NULL);
}

static void a_wrong_local_key_breaks_the_sender_alone(void **state)
{
    struct ibv_sge sge = { (uintptr_t)memory, 8, mr->lkey + 1 };
    struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE };

    wr.wr.rdma.remote_addr = (uintptr_t)remote;
    wr.wr.rdma.rkey = mr->rkey;
    post(a, &wr);
    assert_int_equal(poll_one(near).status, IBV_WC_LOC_PROT_ERR);
    assert_int_equal(qp_state((struct hca_qp *)b), IBV_QPS_RTS);
}

/* A flush takes the receives and sends that are left, in order; the first was taken by a sender that
 * died. */
static void an_error_flushes_what_is_posted(void **state)
{
    struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };

    for (uint64_t i = 0; i < 3; i++)
        post_recv(b, i, remote, 8);
    rq_advance(((struct hca_qp *)b)->rq.shared);
    assert_int_equal(ibv_modify_qp(b, &error, IBV_QP_STATE), 0);
    post_recv(b, 3, remote, 8);
    for (uint64_t i = 0; i < 4; i++) {
        struct ibv_wc wc = poll_one(far);
        assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
        assert_int_equal(wc.wr_id, i);
        assert_int_equal(wc.qp_num, b->qp_num);
    }
    assert_int_equal(ibv_destroy_qp(a) | ibv_destroy_qp(b), 0);
    connect_pair(NULL);
}

/* ---- datagrams ---- */

static struct ibv_qp *datagram_qp(void)
{
    return fabric_ud_qp(pd, near, far, QKEY);
}

static struct ibv_wc send_datagram(struct ibv_qp *qp, struct ibv_ah *ah, uint32_t qpn,
                                   uint32_t qkey, uint32_t length)
{
    struct ibv_sge sge = { (uintptr_t)memory, length, mr->lkey };
    struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND };

    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = qpn;
    wr.wr.ud.remote_qkey = qkey;
    post(qp, &wr);
    return poll_one(near);
}

static bool nothing_arrives(void)
{
    struct ibv_wc wc;

    for (int i = 0; i < 100; i++)
        if (ibv_poll_cq(far, 1, &wc))
            return false;
    return true;
}

static void a_datagram_names_its_sender(void **state)
{
    struct ibv_qp *from = datagram_qp(), *to = datagram_qp();
    struct ibv_ah_attr attr = { .dlid = addr_lid(0, 0, 1), .port_num = 1, .sl = 3 };
    union ibv_gid gid;

    addr_gid(0, 0, 1, &gid);
    for (int global = 0; global < 2; global++) {
        struct ibv_ah *ah = ibv_create_ah(pd, &attr);
        assert_non_null(ah);
        memset(remote, 0, 200);
        post_recv(to, 5, remote, 200);
        assert_int_equal(send_datagram(from, ah, to->qp_num, QKEY, 100).status, IBV_WC_SUCCESS);
        struct ibv_wc wc = poll_one(far);
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
        assert_int_equal(wc.byte_len, 100 + GRH);
        assert_int_equal(wc.src_qp, from->qp_num);
        assert_int_equal(wc.slid, addr_lid(0, 0, 1));
        assert_int_equal(wc.sl, 3);
        assert_int_equal(wc.wc_flags, global ? IBV_WC_GRH : 0);
        assert_memory_equal(remote + GRH, memory, 100);
        struct ibv_grh *grh = (struct ibv_grh *)remote;
        if (global) {
            assert_int_equal(be32toh(grh->version_tclass_flow), 6u << 28);
            assert_int_equal(be16toh(grh->paylen), 100);
            assert_int_equal(grh->next_hdr, 0x1b);
            assert_int_equal(grh->hop_limit, 1);
            assert_memory_equal(&grh->sgid, &gid, 16);
            assert_memory_equal(&grh->dgid, &gid, 16);
        }
        ibv_destroy_ah(ah);
        attr.is_global = 1;
        attr.grh.dgid = gid;
        attr.grh.hop_limit = 1;
    }
    assert_int_equal(ibv_destroy_qp(from) | ibv_destroy_qp(to), 0);
}

static const char *logged_drops(void)
{
    fabric_log_begin();
    wqe_report_drops();
    return fabric_log_end();
}

static void a_datagram_that_nobody_takes_is_dropped_for_a_reason(void **state)
{
    struct ibv_qp *from = datagram_qp(), *to = datagram_qp();
    struct ibv_ah_attr attr = { .dlid = addr_lid(0, 0, 1), .port_num = 1 };
    struct ibv_ah *ah = ibv_create_ah(pd, &attr);

    assert_string_equal(logged_drops(), "");
    assert_int_equal(send_datagram(from, ah, to->qp_num, QKEY, 8).status, IBV_WC_SUCCESS);
    for (int i = 0; i < 2; i++)
        assert_int_equal(send_datagram(from, ah, to->qp_num, QKEY + 1, 8).status, IBV_WC_SUCCESS);
    for (int i = 0; i < 3; i++)
        assert_int_equal(send_datagram(from, ah, a->qp_num, QKEY, 8).status, IBV_WC_SUCCESS);
    post_recv(to, 1, remote, 47); /* one byte too short, which breaks the receiver */
    assert_int_equal(send_datagram(from, ah, to->qp_num, QKEY, 8).status, IBV_WC_SUCCESS);
    const char *drops = logged_drops();
    if (!strstr(drops, "datagrams dropped: 7 (3 no such QP, 2 wrong Q_Key, 0 port down, "
                       "1 no receive posted, 1 receive refused)"))
        fail_msg("%s", drops);
    ibv_destroy_ah(ah);
    assert_int_equal(ibv_destroy_qp(from) | ibv_destroy_qp(to), 0);
}

static void a_datagram_has_4096_bytes_at_most(void **state)
{
    struct ibv_qp *from = datagram_qp(), *to = datagram_qp();
    struct ibv_ah_attr attr = { .dlid = addr_lid(0, 0, 1), .port_num = 1 };
    struct ibv_ah *ah = ibv_create_ah(pd, &attr);

    post_recv(to, 1, remote, 5000);
    assert_int_equal(send_datagram(from, ah, to->qp_num, QKEY, 4096).status, IBV_WC_SUCCESS);
    assert_int_equal(poll_one(far).byte_len, 4096 + GRH);
    assert_int_equal(send_datagram(from, ah, to->qp_num, QKEY, 4097).status, IBV_WC_LOC_LEN_ERR);
    ibv_destroy_ah(ah);
    assert_int_equal(ibv_destroy_qp(from) | ibv_destroy_qp(to), 0);
}

static void a_group_gets_each_message_once(void **state)
{
    struct ibv_qp *members[3] = { datagram_qp(), datagram_qp(), datagram_qp() };
    union ibv_gid group = { .raw = { 0xff, 0x12, [15] = 1 } },
                  other = { .raw = { 0xff, 0x12, [15] = 2 } };
    struct ibv_ah_attr attr = {
        .dlid = 0xc001, .port_num = 1, .is_global = 1, .grh = { .dgid = group, .hop_limit = 1 }
    };
    struct ibv_ah *ah = ibv_create_ah(pd, &attr);
    uint32_t seen[2];

    assert_non_null(ah);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ibv_attach_mcast(members[i], i < 2 ? &group : &other, 0xc001 + (i == 2)),
                         0);
        post_recv(members[i], i, remote + 1000 * i, 1000);
    }
    assert_int_equal(send_datagram(members[0], ah, 0xffffff, QKEY, 10).status, IBV_WC_SUCCESS);
    for (int i = 0; i < 2; i++) /* the sender is a member, too */
        seen[i] = poll_one(far).qp_num;
    assert_int_not_equal(seen[0], seen[1]);
    for (int i = 0; i < 2; i++)
        assert_true(seen[i] == members[0]->qp_num || seen[i] == members[1]->qp_num);
    assert_true(nothing_arrives());
    ibv_destroy_ah(ah);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ibv_detach_mcast(members[i], i < 2 ? &group : &other, 0xc001 + (i == 2)),
                         0);
        assert_int_equal(ibv_destroy_qp(members[i]), 0);
    }
}

/* ---- a sender in another thread ---- */

struct sender {
    pthread_t thread;
    atomic_bool inside, has_left;
};

static void *deliver_slowly(void *arg)
{
    struct sender *sender = arg;

    epoch_enter();
    sender->inside = true;
    usleep(20000);
    sender->has_left = true;
    epoch_exit();
    return NULL;
}

static void start_sender(struct sender *sender)
{
    *sender = (struct sender){ 0 };
    assert_int_equal(pthread_create(&sender->thread, NULL, deliver_slowly, sender), 0);
    while (!sender->inside)
        sched_yield();
}

static void expect_waited(struct sender *sender, const char *what)
{
    bool waited = sender->has_left;

    pthread_join(sender->thread, NULL);
    if (!waited)
        fail_msg("%s did not wait", what);
}

/* Before an object goes, those who may have found it have left. */
static void who_takes_an_object_away_waits_for_senders(void **state)
{
    struct ibv_srq_init_attr srq_init = { .attr = { .max_wr = 4, .max_sge = 1 } };
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
    struct ibv_srq *srq = ibv_create_srq(pd, &srq_init);
    struct shared_qp *shared = ((struct hca_qp *)a)->shared;
    uint32_t qpn = a->qp_num;
    struct sender sender;

    start_sender(&sender);
    assert_int_equal(ibv_destroy_srq(srq), 0);
    expect_waited(&sender, "ibv_destroy_srq");
    start_sender(&sender);
    assert_int_equal(ibv_modify_qp(b, &attr, IBV_QP_STATE), 0);
    expect_waited(&sender, "to error");
    attr.qp_state = IBV_QPS_RESET;
    start_sender(&sender);
    assert_int_equal(ibv_modify_qp(b, &attr, IBV_QP_STATE), 0);
    expect_waited(&sender, "to reset");
    epoch_enter();
    assert_ptr_equal(shared_qp_find(qpn), shared);
    epoch_exit();
    start_sender(&sender);
    assert_int_equal(ibv_destroy_qp(a), 0);
    expect_waited(&sender, "ibv_destroy_qp");
    assert_int_equal(load_relaxed(&shared->qpn), 0);
    assert_int_equal(load_relaxed(&shared->state), IBV_QPS_RESET);
    assert_int_equal(ibv_destroy_qp(b), 0);
    connect_pair(NULL);
}

/* While sends are pending, other threads resume them: then the lock is needed. */
static void posting_in_a_thread_domain_needs_no_lock(void **state)
{
    struct ibv_td_init_attr none = { 0 };
    struct ibv_td *td = ibv_alloc_td(context, &none);
    struct ibv_parent_domain_init_attr attr = { .pd = pd, .td = td };
    struct ibv_pd *domain = ibv_alloc_parent_domain(context, &attr);
    struct ibv_qp *c = fabric_rc_qp(domain, near, 16), *d = fabric_rc_qp(pd, far, 16);
    struct ibv_sge sge = { (uintptr_t)memory, 8, mr->lkey };
    struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND };

    fabric_connect(c, d);
    assert_true(((struct hca_qp *)c)->alone);
    assert_false(((struct hca_qp *)d)->alone);
    post(c, &wr); /* finds no receive */
    assert_false(((struct hca_qp *)c)->alone);
    post_recv(d, 1, remote, 8);
    assert_int_equal(poll_one(near).status, IBV_WC_SUCCESS);
    assert_int_equal(poll_one(far).status, IBV_WC_SUCCESS);
    assert_true(((struct hca_qp *)c)->alone);
    assert_int_equal(ibv_destroy_qp(c) | ibv_destroy_qp(d), 0);
    assert_int_equal(ibv_dealloc_pd(domain) | ibv_dealloc_td(td), 0);
}

#define WITH_PAIR(test) cmocka_unit_test_setup_teardown(test, connect_pair, destroy_pair)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_PAIR(a_write_gathers_and_a_read_scatters),
        WITH_PAIR(a_long_write_arrives_whole),
        WITH_PAIR(atomics_return_what_was_there),
        WITH_PAIR(an_atomic_has_eight_bytes),
        WITH_PAIR(an_atomic_write_has_eight_bytes),
        WITH_PAIR(a_write_with_immediate_takes_a_receive),
        WITH_PAIR(sends_of_all_lengths_arrive),
        WITH_PAIR(a_wrong_remote_key_breaks_both),
        WITH_PAIR(an_operation_that_is_not_enabled_breaks_both),
        WITH_PAIR(an_atomic_is_aligned),
        WITH_PAIR(a_wrong_local_key_breaks_the_sender_alone),
        WITH_PAIR(an_error_flushes_what_is_posted),
        WITH_PAIR(a_datagram_names_its_sender),
        WITH_PAIR(a_datagram_that_nobody_takes_is_dropped_for_a_reason),
        WITH_PAIR(a_datagram_has_4096_bytes_at_most),
        WITH_PAIR(a_group_gets_each_message_once),
        WITH_PAIR(who_takes_an_object_away_waits_for_senders),
        cmocka_unit_test(posting_in_a_thread_domain_needs_no_lock),
    };

    return cmocka_run_group_tests_name("live", tests, join_fabric, leave_fabric);
}
