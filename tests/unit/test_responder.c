/* SPDX-License-Identifier: BSD-2-Clause */
/* Which keys, accesses and words a responder allows, and what it keeps of a refusal. */

#include "fabric.h"

#include "hca/mr.h"
#include "hca/objects.h"
#include "hca/proc.h"
#include "hca/responder.h"

#include <fcntl.h>
#include <string.h>

enum { LENGTH = 256, ALL = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
                           IBV_ACCESS_REMOTE_ATOMIC };

static struct ibv_pd *pd, *other_pd;
static struct ibv_mr *mr, *shifted;
static char memory[LENGTH] __attribute__((aligned(64)));
static struct shared_qp qp; /* as a peer finds it in the segment */
static struct mem_ref ref;

static uint32_t id_of(struct ibv_pd *of)
{
    return ((struct hca_pd *)of)->id;
}

static int join_fabric(void **state)
{
    struct ibv_context *context = fabric_open();

    pd = ibv_alloc_pd(context);
    other_pd = ibv_alloc_pd(context);
    mr = ibv_reg_mr(pd, memory, LENGTH, IBV_ACCESS_LOCAL_WRITE | ALL);
    shifted = ibv_reg_mr_iova(pd, memory, LENGTH, 0x1004, IBV_ACCESS_LOCAL_WRITE | ALL);
    return !other_pd || !mr || !shifted;
}

static int begin(void **state)
{
    memset(&qp, 0, sizeof(qp));
    qp.type = IBV_QPT_RC;
    qp.qpn = 0x123;
    qp.proc = proc_self;
    qp.pd = id_of(pd);
    qp.access = ALL;
    return 0;
}

static enum responder_status check(uint32_t rkey, const char *at, uint64_t length, unsigned access)
{
    return responder_check(&qp, 0, rkey, (uintptr_t)at, length, access, &ref);
}

static void expect_refusal(uint64_t addr, uint64_t length, uint32_t rkey, unsigned access,
                           bool not_enabled)
{
    assert_int_equal(qp.refusal.addr, addr);
    assert_int_equal(qp.refusal.length, length);
    assert_int_equal(qp.refusal.rkey, rkey);
    assert_int_equal(qp.refusal.access, access);
    assert_int_equal(qp.refusal.not_enabled, not_enabled);
}

static void a_region_is_found_by_its_key(void **state)
{
    assert_int_equal(check(mr->rkey, memory + 5, LENGTH - 5, IBV_ACCESS_REMOTE_WRITE),
                     RESPONDER_OK);
    assert_int_equal(ref.addr, (uintptr_t)memory + 5);
    assert_int_equal(ref.proc, proc_self);
    assert_int_equal(check(mr->rkey, memory + 5, LENGTH - 4, IBV_ACCESS_REMOTE_WRITE),
                     RESPONDER_ACCESS_ERROR);
    expect_refusal((uintptr_t)memory + 5, LENGTH - 4, mr->rkey, IBV_ACCESS_REMOTE_WRITE, false);
    assert_int_equal(check(mr->rkey ^ 1, memory, 8, IBV_ACCESS_REMOTE_READ),
                     RESPONDER_ACCESS_ERROR);
    expect_refusal((uintptr_t)memory, 8, mr->rkey ^ 1, IBV_ACCESS_REMOTE_READ, false);
    assert_int_equal(check(77, NULL, 0, IBV_ACCESS_REMOTE_READ), RESPONDER_OK); /* of nothing */
}

static void a_queue_pair_enables_each_access(void **state)
{
    static const unsigned each[] = { IBV_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_WRITE,
                                     IBV_ACCESS_REMOTE_ATOMIC };

    for (unsigned i = 0; i < 3; i++) {
        qp.access = ALL & ~each[i];
        for (unsigned k = 0; k < 3; k++)
            assert_int_equal(check(mr->rkey, memory, 8, each[k]),
                             i == k ? RESPONDER_NOT_ENABLED : RESPONDER_OK);
        expect_refusal((uintptr_t)memory, 8, mr->rkey, each[i], true);
    }
}

static void a_key_belongs_to_a_domain_and_a_process(void **state)
{
    qp.pd = id_of(other_pd);
    assert_int_equal(check(mr->rkey, memory, 8, IBV_ACCESS_REMOTE_READ), RESPONDER_ACCESS_ERROR);
    qp.pd = id_of(pd);
    qp.proc = proc_self + 1;
    assert_int_equal(check(mr->rkey, memory, 8, IBV_ACCESS_REMOTE_READ), RESPONDER_ACCESS_ERROR);
    qp.proc = MAX_PROCS; /* a corrupted segment */
    assert_int_equal(check(mr->rkey, memory, 8, IBV_ACCESS_REMOTE_READ), RESPONDER_ACCESS_ERROR);
}

static enum responder_status check_word(uint32_t rkey, uint64_t addr)
{
    return responder_check_atomic(&qp, 0, rkey, addr, IBV_ACCESS_REMOTE_ATOMIC, &ref);
}

/* In the address that the peer names, and in memory. */
static void a_word_is_aligned(void **state)
{
    assert_int_equal(check_word(mr->rkey, (uintptr_t)memory + LENGTH - 8), RESPONDER_OK);
    assert_int_equal(ref.addr, (uintptr_t)memory + LENGTH - 8);
    assert_int_equal(check_word(mr->rkey, (uintptr_t)memory + LENGTH), RESPONDER_ACCESS_ERROR);
    for (unsigned i = 1; i < 8; i++)
        assert_int_equal(check_word(mr->rkey, (uintptr_t)memory + i), RESPONDER_MISALIGNED);
    expect_refusal((uintptr_t)memory + 7, 8, mr->rkey, IBV_ACCESS_REMOTE_ATOMIC, false);
    memset(&qp.refusal, 0, sizeof(qp.refusal));
    assert_int_equal(check_word(shifted->rkey, 0x1008), RESPONDER_MISALIGNED);
    expect_refusal(0x1008, 8, shifted->rkey, IBV_ACCESS_REMOTE_ATOMIC, false);
    qp.access = 0;
    assert_int_equal(check_word(mr->rkey, (uintptr_t)memory), RESPONDER_NOT_ENABLED);
}

/* An XRC target has no domain of its own: that of the SRQ counts, if both are in one XRC domain. */
static void an_xrc_target_uses_the_domain_of_the_srq(void **state)
{
    struct ibv_xrcd_init_attr domain = { .comp_mask = IBV_XRCD_INIT_ATTR_FD |
                                                      IBV_XRCD_INIT_ATTR_OFLAGS,
                                         .fd = -1,
                                         .oflags = O_CREAT };
    struct ibv_srq_init_attr_ex init = { .attr = { .max_wr = 4, .max_sge = 1 },
                                         .comp_mask = IBV_SRQ_INIT_ATTR_TYPE |
                                                      IBV_SRQ_INIT_ATTR_PD |
                                                      IBV_SRQ_INIT_ATTR_XRCD |
                                                      IBV_SRQ_INIT_ATTR_CQ,
                                         .srq_type = IBV_SRQT_XRC,
                                         .pd = pd };
    uint32_t number;

    init.cq = ibv_create_cq(pd->context, 4, NULL, NULL, 0);
    init.xrcd = ibv_open_xrcd(pd->context, &domain);
    struct ibv_srq *srq = ibv_create_srq_ex(pd->context, &init);
    assert_int_equal(ibv_get_srq_num(srq, &number), 0);
    qp.type = IBV_QPT_XRC_RECV;
    qp.pd = 0;
    qp.proc = proc_self + 1; /* the process that made the target QP may be another one */
    qp.xrcd = ((struct hca_xrcd *)init.xrcd)->id;
    assert_true(responder_translate(&qp, number, mr->rkey, (uintptr_t)memory, 8,
                                    IBV_ACCESS_REMOTE_READ, &ref));
    assert_false(responder_translate(&qp, number + 1, mr->rkey, (uintptr_t)memory, 8,
                                     IBV_ACCESS_REMOTE_READ, &ref));
    qp.xrcd++;
    assert_false(responder_translate(&qp, number, mr->rkey, (uintptr_t)memory, 8,
                                     IBV_ACCESS_REMOTE_READ, &ref));
    assert_int_equal(ibv_destroy_srq(srq) | ibv_destroy_cq(init.cq) | ibv_close_xrcd(init.xrcd),
                     0);
}

static void a_window_of_this_queue_pair_is_invalidated_once(void **state)
{
    uint32_t key;
    struct shared_mr *window = mr_create(id_of(pd), MW_TYPE_2, (uintptr_t)memory,
                                         (uintptr_t)memory, LENGTH, ALL, &key);

    window->bound_qpn = qp.qpn;
    mr_validate(window, key);
    assert_false(responder_invalidate(&qp, mr->rkey)); /* no window */
    assert_false(responder_invalidate(&qp, key ^ 1));
    qp.qpn++;
    assert_false(responder_invalidate(&qp, key));
    qp.qpn--;
    qp.pd++;
    assert_false(responder_invalidate(&qp, key));
    qp.pd--;
    qp.proc++;
    assert_false(responder_invalidate(&qp, key));
    qp.proc--;
    assert_true(responder_invalidate(&qp, key));
    assert_false(responder_invalidate(&qp, key));
    assert_int_equal(check(key, memory, 8, IBV_ACCESS_REMOTE_READ), RESPONDER_ACCESS_ERROR);
    assert_int_equal(mr_destroy(window), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_region_is_found_by_its_key, begin),
        cmocka_unit_test_setup(a_queue_pair_enables_each_access, begin),
        cmocka_unit_test_setup(a_key_belongs_to_a_domain_and_a_process, begin),
        cmocka_unit_test_setup(a_word_is_aligned, begin),
        cmocka_unit_test_setup(an_xrc_target_uses_the_domain_of_the_srq, begin),
        cmocka_unit_test_setup(a_window_of_this_queue_pair_is_invalidated_once, begin),
    };

    return cmocka_run_group_tests_name("responder", tests, join_fabric, NULL);
}
