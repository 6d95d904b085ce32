/* SPDX-License-Identifier: BSD-2-Clause */
/* Required and optional attributes of each state transition, by transport (InfiniBand Architecture
 * Specification, volume 1, section 11.2.5.2, table "QP State Transition Properties"). */

#include "hca/qp.h"

#include <errno.h>

enum { RC, UC, UD, XRC_INI, XRC_TGT, KINDS };

struct rule {
    bool valid;
    int required[KINDS];
    int optional[KINDS];
};

#define ALL(mask) { mask, mask, mask, mask, mask }

#define PKEY   IBV_QP_PKEY_INDEX
#define PORT   IBV_QP_PORT
#define ACCESS IBV_QP_ACCESS_FLAGS
#define QKEY   IBV_QP_QKEY
#define PATH   (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define RESP   (IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define REQ    (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)
#define SQPSN  IBV_QP_SQ_PSN
#define CUR    IBV_QP_CUR_STATE
#define ALT    (IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE)
#define RNR    IBV_QP_MIN_RNR_TIMER

#define CONNECTED_RUNNING (CUR | ACCESS | ALT)
#define RUNNING                                                                                    \
    {                                                                                              \
        CONNECTED_RUNNING | RNR, CONNECTED_RUNNING, CUR | QKEY, CONNECTED_RUNNING,                 \
            CONNECTED_RUNNING | RNR                                                                \
    }

static const struct rule rules[IBV_QPS_ERR + 1][IBV_QPS_ERR + 1] = {
    [IBV_QPS_RESET] = {
        [IBV_QPS_RESET] = { true },
        [IBV_QPS_INIT] = { true,
            .required = { PKEY | PORT | ACCESS, PKEY | PORT | ACCESS, PKEY | PORT | QKEY,
                          PKEY | PORT | ACCESS, PKEY | PORT | ACCESS } },
    },
    [IBV_QPS_INIT] = {
        [IBV_QPS_RESET] = { true },
        [IBV_QPS_INIT] = { true,
            .optional = { PKEY | PORT | ACCESS, PKEY | PORT | ACCESS, PKEY | PORT | QKEY,
                          PKEY | PORT | ACCESS, PKEY | PORT | ACCESS } },
        [IBV_QPS_RTR] = { true,
            .required = { PATH | RESP, PATH, 0, PATH, PATH | RESP },
            .optional = { ALT | ACCESS | PKEY, ALT | ACCESS | PKEY, PKEY | QKEY,
                          ALT | ACCESS | PKEY, ALT | ACCESS | PKEY } },
        [IBV_QPS_ERR] = { true },
    },
    [IBV_QPS_RTR] = {
        [IBV_QPS_RESET] = { true },
        [IBV_QPS_RTS] = { true,
            .required = { SQPSN | REQ, SQPSN, SQPSN, SQPSN | REQ, SQPSN | IBV_QP_TIMEOUT },
            .optional = RUNNING },
        [IBV_QPS_ERR] = { true },
    },
    [IBV_QPS_RTS] = {
        [IBV_QPS_RESET] = { true },
        [IBV_QPS_RTS] = { true, .optional = RUNNING },
        [IBV_QPS_SQD] = { true, .optional = ALL(IBV_QP_EN_SQD_ASYNC_NOTIFY) },
        [IBV_QPS_ERR] = { true },
    },
    [IBV_QPS_SQD] = {
        [IBV_QPS_RESET] = { true },
        [IBV_QPS_RTS] = { true, .optional = RUNNING },
        [IBV_QPS_SQD] = { true,
            .optional = { PORT | IBV_QP_AV | REQ | RESP | ALT | ACCESS | PKEY,
                          PORT | IBV_QP_AV | ALT | ACCESS | PKEY, PKEY | QKEY,
                          PORT | IBV_QP_AV | REQ | ALT | ACCESS | PKEY,
                          PORT | IBV_QP_AV | IBV_QP_TIMEOUT | RESP | ALT | ACCESS | PKEY } },
        [IBV_QPS_ERR] = { true },
    },
    [IBV_QPS_SQE] = {
        [IBV_QPS_RESET] = { true },
        [IBV_QPS_RTS] = { true,
            .optional = { 0, CUR | ACCESS, CUR | QKEY, 0, 0 } },
        [IBV_QPS_ERR] = { true },
    },
    [IBV_QPS_ERR] = {
        [IBV_QPS_RESET] = { true },
        [IBV_QPS_ERR] = { true },
    },
};

/* XRC initiator and target each lack some attributes of the other. Programs that treat both alike
 * may set them all, as with the kernel. */
static const int ignored[KINDS] = {
    [XRC_INI] = RESP,
    [XRC_TGT] = REQ & ~IBV_QP_TIMEOUT,
};

static int kind_of(enum ibv_qp_type type)
{
    switch (type) {
    case IBV_QPT_RC:
        return RC;
    case IBV_QPT_UC:
        return UC;
    case IBV_QPT_UD:
        return UD;
    case IBV_QPT_XRC_SEND:
        return XRC_INI;
    case IBV_QPT_XRC_RECV:
        return XRC_TGT;
    default:
        return -1;
    }
}

const char *qp_state_name(enum ibv_qp_state state)
{
    static const char *const names[] = { "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR" };

    return (unsigned)state <= IBV_QPS_ERR ? names[state] : "no state";
}

bool qp_transition(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to,
                   int *required, int *allowed)
{
    int kind = kind_of(type);

    if (kind < 0 || (unsigned)from > IBV_QPS_ERR || (unsigned)to > IBV_QPS_ERR)
        return false;
    const struct rule *rule = &rules[from][to];
    *required = rule->required[kind];
    *allowed = *required | rule->optional[kind] | ignored[kind] | IBV_QP_STATE | CUR;
    return rule->valid;
}

int qp_check_transition(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to,
                        int mask)
{
    int required, allowed;

    if (!qp_transition(type, from, to, &required, &allowed) || required & ~mask)
        return EINVAL;
    return mask & ~allowed ? EINVAL : 0;
}
