/* SPDX-License-Identifier: BSD-2-Clause */
/* Unreliable services: losses are silent. */
#include "bed.h"

#include <string.h>

#define GRH_BYTES 40

static void account(struct bed *bed, struct request *request)
{
    int error = bed_post(bed, request);

    if (error) {
        outcome_call(bed, "", error);
        return;
    }
    outcome_completion(bed, REQUESTER);
    outcome_nothing(bed, RESPONDER);
    outcome_state(bed, RESPONDER);
}

static void datagram(struct bed *bed)
{
    struct request request;
    struct ibv_wc wc;

    bed_receive(bed, 1, 8 + GRH_BYTES, bed->mr->lkey);
    bed_request(bed, IBV_WR_SEND_WITH_IMM, &request);
    request.wr.imm_data = 0x01020304;
    bed_post(bed, &request);
    outcome_completion(bed, REQUESTER);
    if (rig_poll(bed->cq[RESPONDER], &wc, 5000) != 1)
        return;
    outcome(bed, "%u bytes", wc.byte_len);
    outcome(bed, "source %s", wc.src_qp == bed->qp[REQUESTER]->qp_num ? "known" : "unknown");
    outcome(bed, "immediate %s",
            wc.wc_flags & IBV_WC_WITH_IMM && wc.imm_data == 0x01020304 ? "right" : "wrong");
}

static void wrong_qkey(struct bed *bed)
{
    struct request request;

    bed_receive(bed, 1, 8 + GRH_BYTES, bed->mr->lkey);
    bed_request(bed, IBV_WR_SEND, &request);
    request.wr.wr.ud.remote_qkey ^= 1;
    account(bed, &request);
}

static void no_receive(struct bed *bed)
{
    struct request request;

    bed_request(bed, IBV_WR_SEND, &request);
    account(bed, &request);
}

static void unknown_target(struct bed *bed)
{
    struct request request;

    bed_request(bed, IBV_WR_SEND, &request);
    request.wr.wr.ud.remote_qpn = 0xfffff0;
    account(bed, &request);
}

static void longer_than_mtu(struct bed *bed)
{
    struct request request;
    int error;

    bed_receive(bed, 1, HALF, bed->mr->lkey);
    bed_request(bed, IBV_WR_SEND, &request);
    request.sge.length = (128u << bed->rig.port.active_mtu) + 1;
    error = bed_post(bed, &request);
    outcome_call(bed, "", error);
    if (!error) {
        outcome_completion(bed, REQUESTER);
        outcome_nothing(bed, RESPONDER);
    }
}

static void short_receive(struct bed *bed)
{
    struct request request;

    bed_receive(bed, 1, 8 + GRH_BYTES - 1, bed->mr->lkey);
    bed_request(bed, IBV_WR_SEND, &request);
    account(bed, &request);
}

static void write_unknown_key(struct bed *bed)
{
    struct request request;

    bed_request(bed, IBV_WR_RDMA_WRITE, &request);
    request.wr.wr.rdma.rkey ^= 0x5a5a00;
    account(bed, &request);
}

static void write_arrives(struct bed *bed)
{
    struct request request;

    memset(bed->memory, 0x77, 8);
    bed_receive(bed, 1, 8, bed->mr->lkey);
    bed_request(bed, IBV_WR_RDMA_WRITE_WITH_IMM, &request);
    bed_post(bed, &request);
    outcome_completion(bed, REQUESTER);
    outcome_completion(bed, RESPONDER);
    outcome(bed, bed->memory[HALF] == 0x77 ? "the data is there" : "the data is not there");
}

static void short_receive_connected(struct bed *bed)
{
    struct request request;

    bed_receive(bed, 1, 4, bed->mr->lkey);
    bed_request(bed, IBV_WR_SEND, &request);
    account(bed, &request);
}

void run_datagrams(case_sink sink)
{
    static const struct bed_case cases[] = {
        { "UD: a send with immediate", IBV_QPT_UD, datagram },
        { "UD: a send with another Q_Key", IBV_QPT_UD, wrong_qkey },
        { "UD: a send, no receive", IBV_QPT_UD, no_receive },
        { "UD: a send to nobody", IBV_QPT_UD, unknown_target },
        { "UD: a send longer than the MTU", IBV_QPT_UD, longer_than_mtu },
        { "UD: a receive one byte too short", IBV_QPT_UD, short_receive },
        { "UC: a write with immediate", IBV_QPT_UC, write_arrives },
        { "UC: a send, no receive", IBV_QPT_UC, no_receive },
        { "UC: a write with an unknown key", IBV_QPT_UC, write_unknown_key },
        { "UC: a receive that is too short", IBV_QPT_UC, short_receive_connected },
    };

    run_cases("unreliable", cases, sizeof(cases) / sizeof(*cases), sink);
}
