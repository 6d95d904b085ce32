/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric.h"

#include "hca/qp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RC_INIT (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define UD_INIT (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY)
#define UC_RTR  (IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define RC_RTR  (UC_RTR | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RC_RTS                                                                                     \
    (IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |         \
     IBV_QP_MAX_QP_RD_ATOMIC)

static void the_usual_way_up_is_allowed(void **state)
{
    assert_int_equal(qp_check_transition(IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_INIT, RC_INIT), 0);
    assert_int_equal(qp_check_transition(IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR, RC_RTR), 0);
    assert_int_equal(qp_check_transition(IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS, RC_RTS), 0);
    assert_int_equal(qp_check_transition(IBV_QPT_UC, IBV_QPS_INIT, IBV_QPS_RTR, UC_RTR), 0);
    assert_int_equal(qp_check_transition(IBV_QPT_UD, IBV_QPS_RESET, IBV_QPS_INIT, UD_INIT), 0);
    assert_int_equal(qp_check_transition(IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_STATE), 0);
    assert_int_equal(qp_check_transition(IBV_QPT_UD, IBV_QPS_RTR, IBV_QPS_RTS,
                                         IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

static void every_required_attribute_is_required(void **state)
{
    const struct {
        enum ibv_qp_type type;
        enum ibv_qp_state from, to;
        int mask;
    } rows[] = {
        { IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_INIT, RC_INIT },
        { IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR, RC_RTR },
        { IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS, RC_RTS },
        { IBV_QPT_UC, IBV_QPS_INIT, IBV_QPS_RTR, UC_RTR },
        { IBV_QPT_UD, IBV_QPS_RESET, IBV_QPS_INIT, UD_INIT },
    };

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (int bit = 1; bit <= IBV_QP_DEST_QPN; bit <<= 1)
            if (rows[i].mask & bit & ~IBV_QP_STATE)
                assert_int_equal(qp_check_transition(rows[i].type, rows[i].from, rows[i].to,
                                                     rows[i].mask & ~bit), EINVAL);
}

static void attributes_of_other_transitions_are_refused(void **state)
{
    assert_int_equal(qp_check_transition(IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_INIT,
                                         RC_INIT | IBV_QP_QKEY), EINVAL);
    assert_int_equal(qp_check_transition(IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS,
                                         RC_RTS | IBV_QP_DEST_QPN), EINVAL);
    assert_int_equal(qp_check_transition(IBV_QPT_UD, IBV_QPS_RTS, IBV_QPS_RTS,
                                         IBV_QP_ACCESS_FLAGS), EINVAL);
}

static void steps_cannot_be_skipped(void **state)
{
    assert_int_equal(qp_check_transition(IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_RTR, RC_RTR), EINVAL);
    assert_int_equal(qp_check_transition(IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_RTS, RC_RTS), EINVAL);
    assert_int_equal(qp_check_transition(IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTS, RC_RTS), EINVAL);
    assert_int_equal(qp_check_transition(IBV_QPT_RC, IBV_QPS_ERR, IBV_QPS_RTS, RC_RTS), EINVAL);
}

/* As with the kernel, whose table has no way from RESET to ERR. */
static void reset_and_error_are_reachable(void **state)
{
    for (int from = IBV_QPS_RESET; from <= IBV_QPS_ERR; from++) {
        assert_int_equal(qp_check_transition(IBV_QPT_RC, from, IBV_QPS_RESET, IBV_QP_STATE), 0);
        assert_int_equal(qp_check_transition(IBV_QPT_RC, from, IBV_QPS_ERR, IBV_QP_STATE),
                         from == IBV_QPS_RESET ? EINVAL : 0);
    }
}

static void nonsense_is_refused(void **state)
{
    assert_int_equal(qp_check_transition(IBV_QPT_RC, 99, IBV_QPS_ERR, IBV_QP_STATE), EINVAL);
    assert_int_equal(qp_check_transition(IBV_QPT_RC, IBV_QPS_RTS, -1, IBV_QP_STATE), EINVAL);
    assert_int_equal(qp_check_transition(IBV_QPT_RAW_PACKET, IBV_QPS_RESET, IBV_QPS_INIT,
                                         RC_INIT), EINVAL);
}

/* One letter for each attribute, from IBV_QP_CUR_STATE to IBV_QP_DEST_QPN. */
static const char letters[] = "cnakpqvmtrReilwsdg-D";

/* Writes "FROM>TO REQUIRED+OPTIONAL" for each transition of the type. */
static void describe(enum ibv_qp_type type, FILE *out)
{
    for (int from = IBV_QPS_RESET; from <= IBV_QPS_ERR; from++)
        for (int to = IBV_QPS_RESET; to <= IBV_QPS_ERR; to++) {
            int required, allowed;
            if (!qp_transition(type, from, to, &required, &allowed))
                continue;
            fputs(to > IBV_QPS_RESET ? " " : from > IBV_QPS_RESET ? "\n" : "", out);
            fprintf(out, "%s>%s ", qp_state_name(from), qp_state_name(to));
            for (int i = 0; letters[i]; i++)
                if (required & IBV_QP_CUR_STATE << i)
                    fputc(letters[i], out);
            fputc('+', out);
            for (int i = 0; letters[i]; i++)
                if (allowed & ~required & IBV_QP_CUR_STATE << i)
                    fputc(letters[i], out);
        }
}

static void every_transition_is_as_specified(void **state)
{
    static const struct {
        enum ibv_qp_type type;
        const char *transitions;
    } rows[] = {
        { IBV_QPT_RC,
          "RESET>RESET +c RESET>INIT akp+c\n"
          "INIT>RESET +c INIT>INIT +cakp INIT>RTR vmewdD+caklg INIT>ERR +c\n"
          "RTR>RESET +c RTR>RTS trRis+calwg RTR>ERR +c\n"
          "RTS>RESET +c RTS>RTS +calwg RTS>SQD +cn RTS>ERR +c\n"
          "SQD>RESET +c SQD>RTS +calwg SQD>SQD +cakpvtrRilwdg SQD>ERR +c\n"
          "SQE>RESET +c SQE>RTS +c SQE>ERR +c\n"
          "ERR>RESET +c ERR>ERR +c" },
        { IBV_QPT_UC,
          "RESET>RESET +c RESET>INIT akp+c\n"
          "INIT>RESET +c INIT>INIT +cakp INIT>RTR vmeD+caklg INIT>ERR +c\n"
          "RTR>RESET +c RTR>RTS s+calg RTR>ERR +c\n"
          "RTS>RESET +c RTS>RTS +calg RTS>SQD +cn RTS>ERR +c\n"
          "SQD>RESET +c SQD>RTS +calg SQD>SQD +cakpvlg SQD>ERR +c\n"
          "SQE>RESET +c SQE>RTS +ca SQE>ERR +c\n"
          "ERR>RESET +c ERR>ERR +c" },
        { IBV_QPT_UD,
          "RESET>RESET +c RESET>INIT kpq+c\n"
          "INIT>RESET +c INIT>INIT +ckpq INIT>RTR +ckq INIT>ERR +c\n"
          "RTR>RESET +c RTR>RTS s+cq RTR>ERR +c\n"
          "RTS>RESET +c RTS>RTS +cq RTS>SQD +cn RTS>ERR +c\n"
          "SQD>RESET +c SQD>RTS +cq SQD>SQD +ckq SQD>ERR +c\n"
          "SQE>RESET +c SQE>RTS +cq SQE>ERR +c\n"
          "ERR>RESET +c ERR>ERR +c" },
        { IBV_QPT_XRC_SEND,
          "RESET>RESET +cwd RESET>INIT akp+cwd\n"
          "INIT>RESET +cwd INIT>INIT +cakpwd INIT>RTR vmeD+caklwdg INIT>ERR +cwd\n"
          "RTR>RESET +cwd RTR>RTS trRis+calwdg RTR>ERR +cwd\n"
          "RTS>RESET +cwd RTS>RTS +calwdg RTS>SQD +cnwd RTS>ERR +cwd\n"
          "SQD>RESET +cwd SQD>RTS +calwdg SQD>SQD +cakpvtrRilwdg SQD>ERR +cwd\n"
          "SQE>RESET +cwd SQE>RTS +cwd SQE>ERR +cwd\n"
          "ERR>RESET +cwd ERR>ERR +cwd" },
        { IBV_QPT_XRC_RECV,
          "RESET>RESET +crRi RESET>INIT akp+crRi\n"
          "INIT>RESET +crRi INIT>INIT +cakprRi INIT>RTR vmewdD+cakrRilg INIT>ERR +crRi\n"
          "RTR>RESET +crRi RTR>RTS ts+carRilwg RTR>ERR +crRi\n"
          "RTS>RESET +crRi RTS>RTS +carRilwg RTS>SQD +cnrRi RTS>ERR +crRi\n"
          "SQD>RESET +crRi SQD>RTS +carRilwg SQD>SQD +cakpvtrRilwdg SQD>ERR +crRi\n"
          "SQE>RESET +crRi SQE>RTS +crRi SQE>ERR +crRi\n"
          "ERR>RESET +crRi ERR>ERR +crRi" },
    };

    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *text;
        size_t size;
        FILE *out = open_memstream(&text, &size);
        describe(rows[i].type, out);
        fclose(out);
        assert_string_equal(text, rows[i].transitions);
        free(text);
    }
    assert_string_equal(qp_state_name(IBV_QPS_SQE), "SQE");
    assert_string_equal(qp_state_name(IBV_QPS_ERR + 1), "no state");
}

/* The way up from RESET to RTS; each step can be tried with other values. */
static struct ibv_qp_attr good = {
    .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_READ, .path_mtu = IBV_MTU_512,
    .dest_qp_num = 0x123456, .rq_psn = 0x234567, .max_dest_rd_atomic = 3, .min_rnr_timer = 4,
    .ah_attr = { .port_num = 1, .sl = 5 }, .timeout = 6, .retry_cnt = 2, .rnr_retry = 1,
    .max_rd_atomic = 8, .sq_psn = 0x345678,
};
static const int steps[] = { RC_INIT, RC_RTR, RC_RTS };

/* Takes a new QP up to the step before, and returns how that step ends with these values. */
static int step_with(int step, struct ibv_qp_attr attr)
{
    struct ibv_context *context = fabric_open();
    struct ibv_pd *pd = ibv_alloc_pd(context);
    struct ibv_cq *cq = ibv_create_cq(context, 1, NULL, NULL, 0);
    struct ibv_qp *qp = fabric_rc_qp(pd, cq, 1);
    struct ibv_qp_attr before = good;
    int err = 0;

    for (int i = 0; i < step; i++) {
        before.qp_state = IBV_QPS_INIT + i;
        assert_int_equal(ibv_modify_qp(qp, &before, steps[i]), 0);
    }
    attr.qp_state = IBV_QPS_INIT + step;
    err = ibv_modify_qp(qp, &attr, steps[step]);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_cq(cq), 0);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    return err;
}

static void values_end_at_their_limits(void **state)
{
    struct ibv_qp_attr attr;

#define ENDS_AT(step, field, limit)                                                                \
    attr = good;                                                                                   \
    attr.field = limit;                                                                            \
    assert_int_equal(step_with(step, attr), 0);                                                    \
    attr.field = (limit) + 1;                                                                      \
    assert_int_equal(step_with(step, attr), EINVAL)
#define BEGINS_AT(step, field, limit)                                                              \
    attr = good;                                                                                   \
    attr.field = limit;                                                                            \
    assert_int_equal(step_with(step, attr), 0);                                                    \
    attr.field = (limit) - 1;                                                                      \
    assert_int_equal(step_with(step, attr), EINVAL)
    BEGINS_AT(0, port_num, 1);
    ENDS_AT(0, port_num, 1);
    ENDS_AT(0, pkey_index, 0);
    BEGINS_AT(1, path_mtu, IBV_MTU_256);
    ENDS_AT(1, path_mtu, IBV_MTU_4096);
    ENDS_AT(1, dest_qp_num, 0xffffff);
    ENDS_AT(1, min_rnr_timer, 31);
    ENDS_AT(1, max_dest_rd_atomic, 128);
    BEGINS_AT(1, ah_attr.port_num, 1);
    ENDS_AT(1, ah_attr.port_num, 1);
    ENDS_AT(1, ah_attr.sl, 15);
    ENDS_AT(2, timeout, 31);
    ENDS_AT(2, retry_cnt, 7);
    ENDS_AT(2, rnr_retry, 7);
    ENDS_AT(2, max_rd_atomic, 128);
    attr = good;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.grh.sgid_index = HCA_GIDS - 1;
    assert_int_equal(step_with(1, attr), 0);
    attr.ah_attr.grh.sgid_index = HCA_GIDS;
    assert_int_equal(step_with(1, attr), EINVAL);
#undef ENDS_AT
#undef BEGINS_AT
}

static void a_query_returns_what_was_set(void **state)
{
    struct ibv_context *context = fabric_open();
    struct ibv_pd *pd = ibv_alloc_pd(context);
    struct ibv_cq *cq = ibv_create_cq(context, 1, NULL, NULL, 0);
    struct ibv_qp *qp = fabric_rc_qp(pd, cq, 1);
    struct ibv_qp_attr set = good, got;
    struct ibv_qp_init_attr init;

    for (int i = 0; i < 3; i++) {
        set.qp_state = IBV_QPS_INIT + i;
        assert_int_equal(ibv_modify_qp(qp, &set, steps[i]), 0);
    }
    set = (struct ibv_qp_attr){ .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };
    assert_int_equal(ibv_modify_qp(qp, &set, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
    set = (struct ibv_qp_attr){ .alt_ah_attr = { .dlid = 7, .port_num = 1 }, .alt_pkey_index = 0,
                                .alt_port_num = 1, .alt_timeout = 9,
                                .path_mig_state = IBV_MIG_REARM };
    assert_int_equal(ibv_modify_qp(qp, &set, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE), 0);
    assert_int_equal(ibv_query_qp(qp, &got, 2 * IBV_QP_DEST_QPN - 1, &init), 0);
#define SAME(field, wanted) assert_int_equal(got.field, wanted)
    SAME(qp_state, IBV_QPS_SQD);
    SAME(en_sqd_async_notify, 1);
    SAME(qp_access_flags, good.qp_access_flags);
    SAME(pkey_index, 0);
    SAME(port_num, 1);
    SAME(ah_attr.dlid, good.ah_attr.dlid);
    SAME(ah_attr.sl, 5);
    SAME(path_mtu, good.path_mtu);
    SAME(timeout, 6);
    SAME(retry_cnt, 2);
    SAME(rnr_retry, 1);
    SAME(rq_psn, good.rq_psn);
    SAME(sq_psn, good.sq_psn);
    SAME(max_rd_atomic, 8);
    SAME(max_dest_rd_atomic, 3);
    SAME(min_rnr_timer, 4);
    SAME(dest_qp_num, good.dest_qp_num);
    SAME(alt_ah_attr.dlid, 7);
    SAME(alt_port_num, 1);
    SAME(alt_timeout, 9);
    SAME(path_mig_state, IBV_MIG_REARM);
#undef SAME
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_cq(cq), 0);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
}

static void expect_flushed(struct ibv_cq *cq, struct ibv_qp *qp, uint64_t wr_id)
{
    struct ibv_wc wc = { 0 };

    assert_int_equal(ibv_poll_cq(cq, 1, &wc), 1);
    assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
    assert_int_equal(wc.wr_id, wr_id);
    assert_int_equal(wc.qp_num, qp->qp_num);
}

static void an_error_flushes_what_is_posted(void **state)
{
    struct ibv_context *context = fabric_open();
    struct ibv_pd *pd = ibv_alloc_pd(context);
    struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
    struct ibv_qp *qp = fabric_rc_qp(pd, cq, 4);
    struct ibv_qp_attr attr = good;
    struct ibv_recv_wr receive = { 0 }, *bad_receive;
    struct ibv_send_wr send = { .opcode = IBV_WR_SEND, .wr_id = 5 }, *bad_send;
    struct ibv_wc wc;

    attr.qp_state = IBV_QPS_INIT;
    assert_int_equal(ibv_modify_qp(qp, &attr, RC_INIT), 0);
    for (receive.wr_id = 1; receive.wr_id <= 3; receive.wr_id++)
        assert_int_equal(ibv_post_recv(qp, &receive, &bad_receive), 0);
    attr.qp_state = IBV_QPS_ERR;
    assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
    for (uint64_t id = 1; id <= 3; id++)
        expect_flushed(cq, qp, id);
    receive.wr_id = 4;
    assert_int_equal(ibv_post_recv(qp, &receive, &bad_receive), 0);
    expect_flushed(cq, qp, 4);
    assert_int_equal(ibv_post_send(qp, &send, &bad_send), 0);
    expect_flushed(cq, qp, 5);
    assert_int_equal(ibv_poll_cq(cq, 1, &wc), 0);
    attr.qp_state = IBV_QPS_RESET;
    assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_cq(cq), 0);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
}

static int find_port(void **state)
{
    struct ibv_port_attr port;

    if (ibv_query_port(fabric_open(), 1, &port))
        return -1;
    good.ah_attr.dlid = port.lid;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_usual_way_up_is_allowed),
        cmocka_unit_test(every_required_attribute_is_required),
        cmocka_unit_test(attributes_of_other_transitions_are_refused),
        cmocka_unit_test(steps_cannot_be_skipped),
        cmocka_unit_test(reset_and_error_are_reachable),
        cmocka_unit_test(nonsense_is_refused),
        cmocka_unit_test(every_transition_is_as_specified),
        cmocka_unit_test(values_end_at_their_limits),
        cmocka_unit_test(a_query_returns_what_was_set),
        cmocka_unit_test(an_error_flushes_what_is_posted),
    };

    return cmocka_run_group_tests_name("qp_state", tests, find_port, NULL);
}
