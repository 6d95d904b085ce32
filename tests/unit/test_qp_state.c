/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric.h"

#include "hca/qp.h"

#include <errno.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_usual_way_up_is_allowed),
        cmocka_unit_test(every_required_attribute_is_required),
        cmocka_unit_test(attributes_of_other_transitions_are_refused),
        cmocka_unit_test(steps_cannot_be_skipped),
        cmocka_unit_test(reset_and_error_are_reachable),
        cmocka_unit_test(nonsense_is_refused),
    };

    return cmocka_run_group_tests_name("qp_state", tests, NULL, NULL);
}
