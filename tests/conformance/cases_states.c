/* SPDX-License-Identifier: BSD-2-Clause */
/* State transitions of the queue pair, and their attributes. */
#include "bed.h"

struct step {
    const char *name;
    enum ibv_qp_type type;
    enum ibv_qp_state from;
    enum ibv_qp_state to;
    int left_out; /* required attributes that are missing */
    int added;
    void (*spoil)(struct bed *bed, struct ibv_qp_attr *attr);
};

static void port_zero(struct bed *bed, struct ibv_qp_attr *attr)
{
    attr->port_num = 0;
}

static void port_too_large(struct bed *bed, struct ibv_qp_attr *attr)
{
    attr->port_num = bed->limits.phys_port_cnt + 1;
}

static void pkey_too_large(struct bed *bed, struct ibv_qp_attr *attr)
{
    attr->pkey_index = bed->limits.max_pkeys;
}

static void mtu_unknown(struct bed *bed, struct ibv_qp_attr *attr)
{
    attr->path_mtu = IBV_MTU_4096 + 1;
}

static void mtu_beyond_port(struct bed *bed, struct ibv_qp_attr *attr)
{
    attr->path_mtu = bed->rig.port.active_mtu + 1;
}

static void responder_resources(struct bed *bed, struct ibv_qp_attr *attr)
{
    attr->max_dest_rd_atomic = bed->limits.max_qp_rd_atom + 1;
}

static void initiator_depth(struct bed *bed, struct ibv_qp_attr *attr)
{
    attr->max_rd_atomic = bed->limits.max_qp_init_rd_atom + 1;
}

static void gid_too_large(struct bed *bed, struct ibv_qp_attr *attr)
{
    attr->ah_attr.is_global = 1;
    attr->ah_attr.grh.sgid_index = 254;
}

static void timeout_too_large(struct bed *bed, struct ibv_qp_attr *attr)
{
    attr->timeout = 32;
}

static void retries_too_large(struct bed *bed, struct ibv_qp_attr *attr)
{
    attr->retry_cnt = 8;
}

static void rnr_retries_too_large(struct bed *bed, struct ibv_qp_attr *attr)
{
    attr->rnr_retry = 8;
}

static void rnr_timer_too_large(struct bed *bed, struct ibv_qp_attr *attr)
{
    attr->min_rnr_timer = 32;
}

static void other_current_state(struct bed *bed, struct ibv_qp_attr *attr)
{
    attr->cur_qp_state = IBV_QPS_RESET;
}

#define STEP(text, service, start, end, ...)                                                   \
    {                                                                                          \
        .name = text, .type = IBV_QPT_##service, .from = IBV_QPS_##start, .to = IBV_QPS_##end, \
        __VA_ARGS__                                                                            \
    }

/* clang-format off */
static const struct step steps[] = {
    STEP("RESET to INIT", RC, RESET, INIT),
    STEP("INIT to INIT", RC, INIT, INIT),
    STEP("INIT to RTR", RC, INIT, RTR),
    STEP("RTR to RTS", RC, RTR, RTS),
    STEP("RTS to RTS", RC, RTS, RTS,
         .left_out = IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC),
    STEP("RTS to SQD", RC, RTS, SQD),
    STEP("SQD to RTS", RC, SQD, RTS),
    STEP("RESET to ERR", RC, RESET, ERR),
    STEP("INIT to ERR", RC, INIT, ERR),
    STEP("RTS to ERR", RC, RTS, ERR),
    STEP("ERR to ERR", RC, ERR, ERR),
    STEP("ERR to RESET", RC, ERR, RESET),
    STEP("RTS to RESET", RC, RTS, RESET),
    STEP("RESET to RTR", RC, RESET, RTR),
    STEP("RESET to RTS", RC, RESET, RTS),
    STEP("RESET to SQD", RC, RESET, SQD),
    STEP("INIT to RTS", RC, INIT, RTS),
    STEP("RTR to INIT", RC, RTR, INIT),
    STEP("RTR to SQD", RC, RTR, SQD),
    STEP("RTS to INIT", RC, RTS, INIT),
    STEP("RTS to RTR", RC, RTS, RTR),
    STEP("RTS to SQE", RC, RTS, SQE),
    STEP("ERR to INIT", RC, ERR, INIT),
    STEP("ERR to RTS", RC, ERR, RTS),
    STEP("RESET to INIT without the port", RC, RESET, INIT, .left_out = IBV_QP_PORT),
    STEP("RESET to INIT without the P_Key index", RC, RESET, INIT, .left_out = IBV_QP_PKEY_INDEX),
    STEP("RESET to INIT without access flags", RC, RESET, INIT, .left_out = IBV_QP_ACCESS_FLAGS),
    STEP("RESET to INIT with a Q_Key on RC", RC, RESET, INIT, .added = IBV_QP_QKEY),
    STEP("RESET to INIT with port 0", RC, RESET, INIT, .spoil = port_zero),
    STEP("RESET to INIT with a port it has not", RC, RESET, INIT, .spoil = port_too_large),
    STEP("RESET to INIT with a P_Key index beyond the table", RC, RESET, INIT,
         .spoil = pkey_too_large),
    STEP("INIT to RTR without the path", RC, INIT, RTR, .left_out = IBV_QP_AV),
    STEP("INIT to RTR without the path MTU", RC, INIT, RTR, .left_out = IBV_QP_PATH_MTU),
    STEP("INIT to RTR without the peer's number", RC, INIT, RTR, .left_out = IBV_QP_DEST_QPN),
    STEP("INIT to RTR without the receive PSN", RC, INIT, RTR, .left_out = IBV_QP_RQ_PSN),
    STEP("INIT to RTR without responder resources", RC, INIT, RTR,
         .left_out = IBV_QP_MAX_DEST_RD_ATOMIC),
    STEP("INIT to RTR without the RNR timer", RC, INIT, RTR, .left_out = IBV_QP_MIN_RNR_TIMER),
    STEP("INIT to RTR with a timeout", RC, INIT, RTR, .added = IBV_QP_TIMEOUT),
    STEP("INIT to RTR with an MTU that does not exist", RC, INIT, RTR, .spoil = mtu_unknown),
    STEP("INIT to RTR with a path MTU beyond the port's", RC, INIT, RTR, .spoil = mtu_beyond_port),
    STEP("INIT to RTR with too many responder resources", RC, INIT, RTR,
         .spoil = responder_resources),
    STEP("INIT to RTR with a GID index beyond the table", RC, INIT, RTR, .spoil = gid_too_large),
    STEP("INIT to RTR with an RNR timer of 6 bits", RC, INIT, RTR, .spoil = rnr_timer_too_large),
    STEP("RTR to RTS without the send PSN", RC, RTR, RTS, .left_out = IBV_QP_SQ_PSN),
    STEP("RTR to RTS without the timeout", RC, RTR, RTS, .left_out = IBV_QP_TIMEOUT),
    STEP("RTR to RTS without the retry count", RC, RTR, RTS, .left_out = IBV_QP_RETRY_CNT),
    STEP("RTR to RTS without the RNR retry count", RC, RTR, RTS, .left_out = IBV_QP_RNR_RETRY),
    STEP("RTR to RTS without the initiator depth", RC, RTR, RTS,
         .left_out = IBV_QP_MAX_QP_RD_ATOMIC),
    STEP("RTR to RTS with too large an initiator depth", RC, RTR, RTS, .spoil = initiator_depth),
    STEP("RTR to RTS with a timeout of 6 bits", RC, RTR, RTS, .spoil = timeout_too_large),
    STEP("RTR to RTS with a retry count of 4 bits", RC, RTR, RTS, .spoil = retries_too_large),
    STEP("RTR to RTS with an RNR retry count of 4 bits", RC, RTR, RTS,
         .spoil = rnr_retries_too_large),
    STEP("RTR to RTS, the current state given wrongly", RC, RTR, RTS,
         .added = IBV_QP_CUR_STATE, .spoil = other_current_state),
    STEP("UC: RESET to INIT", UC, RESET, INIT),
    STEP("UC: INIT to RTR", UC, INIT, RTR),
    STEP("UC: INIT to RTR with responder resources", UC, INIT, RTR,
         .added = IBV_QP_MAX_DEST_RD_ATOMIC),
    STEP("UC: RTR to RTS", UC, RTR, RTS),
    STEP("UC: RTR to RTS with a timeout", UC, RTR, RTS, .added = IBV_QP_TIMEOUT),
    STEP("UD: RESET to INIT", UD, RESET, INIT),
    STEP("UD: RESET to INIT without the Q_Key", UD, RESET, INIT, .left_out = IBV_QP_QKEY),
    STEP("UD: INIT to RTR", UD, INIT, RTR),
    STEP("UD: INIT to RTR with a path MTU", UD, INIT, RTR, .added = IBV_QP_PATH_MTU),
    STEP("UD: RTR to RTS", UD, RTR, RTS),
    STEP("UD: RTR to RTS without the send PSN", UD, RTR, RTS, .left_out = IBV_QP_SQ_PSN),
};
/* clang-format on */

void run_states(case_sink sink)
{
    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
        const struct step *step = &steps[i];
        struct ibv_qp_attr attr;
        struct bed bed;
        int mask, error;

        if (bed_open(&bed, step->type, false) && bed_walk(&bed, REQUESTER, step->from)) {
            mask = bed_step(&bed, REQUESTER, step->to, &attr);
            if (step->spoil)
                step->spoil(&bed, &attr);
            error = ibv_modify_qp(bed.qp[REQUESTER], &attr, (mask & ~step->left_out) | step->added);
            outcome_call(&bed, "", error);
            outcome(&bed, "%s", state_name(rig_qp_state(bed.qp[REQUESTER])));
        }
        sink("states", step->name, bed.text);
        bed_close(&bed);
    }
}
