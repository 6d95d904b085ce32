/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues, their events, and shared receive queues. */
#include "bed.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#define PATIENCE_MS 5000
#define SILENCE_MS  100

static bool channel_ready(struct ibv_comp_channel *channel, bool expected)
{
    struct pollfd ready = { .fd = channel->fd, .events = POLLIN };

    return poll(&ready, 1, expected ? PATIENCE_MS : SILENCE_MS) > 0;
}

static void take_event(struct bed *bed, struct ibv_comp_channel *channel, bool expected)
{
    struct ibv_cq *cq;
    void *context;

    if (!channel_ready(channel, expected)) {
        outcome(bed, "no event");
        return;
    }
    if (!ibv_get_cq_event(channel, &cq, &context)) {
        ibv_ack_cq_events(cq, 1);
        outcome(bed, "an event");
    }
}

/* Replaces the responder's CQ by one with a channel, and its queue pair. */
static struct ibv_comp_channel *with_channel(struct bed *bed)
{
    struct ibv_comp_channel *channel = ibv_create_comp_channel(bed->rig.ctx);
    struct ibv_qp_init_attr init;

    ibv_destroy_qp(bed->qp[RESPONDER]);
    ibv_destroy_cq(bed->cq[RESPONDER]);
    bed->cq[RESPONDER] = ibv_create_cq(bed->rig.ctx, 4 * BED_DEPTH, NULL, channel, 0);
    init = bed_qp_init(bed, RESPONDER);
    bed->qp[RESPONDER] = ibv_create_qp(bed->rig.pd, &init);
    return bed_connect(bed) ? channel : NULL;
}

static void without_channel(struct bed *bed, struct ibv_comp_channel *channel)
{
    ibv_destroy_qp(bed->qp[RESPONDER]);
    ibv_destroy_cq(bed->cq[RESPONDER]);
    ibv_destroy_comp_channel(channel);
    bed->qp[RESPONDER] = NULL;
    bed->cq[RESPONDER] = NULL;
}

static void send_one(struct bed *bed, int flags)
{
    struct request request;

    bed_receive(bed, 1, 8, bed->mr->lkey);
    bed_request(bed, IBV_WR_SEND, &request);
    request.wr.send_flags |= flags;
    bed_post(bed, &request);
    outcome_completion(bed, REQUESTER);
}

static void not_armed(struct bed *bed, struct ibv_comp_channel *channel)
{
    send_one(bed, 0);
    take_event(bed, channel, false);
}

static void armed(struct bed *bed, struct ibv_comp_channel *channel)
{
    ibv_req_notify_cq(bed->cq[RESPONDER], 0);
    send_one(bed, 0);
    take_event(bed, channel, true);
    send_one(bed, 0);
    take_event(bed, channel, false);
}

static void armed_late(struct bed *bed, struct ibv_comp_channel *channel)
{
    send_one(bed, 0);
    ibv_req_notify_cq(bed->cq[RESPONDER], 0);
    take_event(bed, channel, false);
}

static void armed_for_solicited(struct bed *bed, struct ibv_comp_channel *channel)
{
    ibv_req_notify_cq(bed->cq[RESPONDER], 1);
    send_one(bed, 0);
    take_event(bed, channel, false);
    send_one(bed, IBV_SEND_SOLICITED);
    take_event(bed, channel, true);
}

static void armed_for_solicited_error(struct bed *bed, struct ibv_comp_channel *channel)
{
    bed_receive(bed, 1, 8, bed->mr->lkey);
    ibv_req_notify_cq(bed->cq[RESPONDER], 1);
    rig_qp_error(bed->qp[RESPONDER]);
    take_event(bed, channel, true);
}

static void run_channels(case_sink sink)
{
    static const struct {
        const char *name;
        void (*run)(struct bed *bed, struct ibv_comp_channel *channel);
    } rows[] = {
        { "a CQ that is not armed", not_armed },
        { "a CQ armed once, two completions", armed },
        { "a CQ armed after the completion", armed_late },
        { "a CQ armed for solicited ones, a plain one, a solicited one", armed_for_solicited },
        { "a CQ armed for solicited ones, a flushed one", armed_for_solicited_error },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct ibv_comp_channel *channel;
        struct bed bed;

        if (bed_open(&bed, IBV_QPT_RC, false)) {
            channel = with_channel(&bed);
            if (channel) {
                rows[i].run(&bed, channel);
                without_channel(&bed, channel);
            }
        }
        sink("completions", rows[i].name, bed.text);
        bed_close(&bed);
    }
}

static void unsignalled(struct bed *bed)
{
    struct request request;
    struct ibv_wc wc;

    for (int i = 1; i <= 4; i++) {
        bed_request(bed, IBV_WR_RDMA_WRITE, &request);
        request.wr.wr_id = i;
        request.wr.send_flags = i == 4 ? IBV_SEND_SIGNALED : 0;
        bed_post(bed, &request);
    }
    if (rig_poll(bed->cq[REQUESTER], &wc, PATIENCE_MS) == 1)
        outcome(bed, "number %llu completes", (unsigned long long)wc.wr_id);
    outcome_nothing(bed, REQUESTER);
}

static void fields(struct bed *bed)
{
    struct request request;
    struct ibv_wc wc;

    bed_receive(bed, 77, 64, bed->mr->lkey);
    bed_request(bed, IBV_WR_RDMA_WRITE_WITH_IMM, &request);
    request.wr.imm_data = 0x01020304;
    bed_post(bed, &request);
    if (rig_poll(bed->cq[RESPONDER], &wc, PATIENCE_MS) != 1)
        return;
    outcome(bed, "%s", wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM ? "RECV_RDMA_WITH_IMM" : "other");
    outcome(bed, "wr_id %llu", (unsigned long long)wc.wr_id);
    outcome(bed, "%u bytes", wc.byte_len);
    outcome(bed, "immediate %s",
            wc.wc_flags & IBV_WC_WITH_IMM && wc.imm_data == 0x01020304 ? "right" : "wrong");
    outcome(bed, "QP %s", wc.qp_num == bed->qp[RESPONDER]->qp_num ? "right" : "wrong");
}

/* More completions than the CQ holds: the event, and the state of the queue pair. */
static void overrun(struct bed *bed)
{
    struct ibv_cq *small = ibv_create_cq(bed->rig.ctx, 1, NULL, NULL, 0), *usual;
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;
    struct request request;
    int room = small ? small->cqe : 0;

    if (!small || room >= 4096) {
        outcome(bed, "the smallest CQ holds %d", room);
        return;
    }
    init = bed_qp_init(bed, REQUESTER);
    init.send_cq = init.recv_cq = small;
    init.cap.max_send_wr = room + BED_DEPTH;
    ibv_destroy_qp(bed->qp[REQUESTER]);
    bed->qp[REQUESTER] = ibv_create_qp(bed->rig.pd, &init);
    attr.qp_state = IBV_QPS_RESET;
    ibv_modify_qp(bed->qp[RESPONDER], &attr, IBV_QP_STATE);
    if (!bed_connect(bed))
        return;
    bed_request(bed, IBV_WR_RDMA_WRITE, &request);
    for (int i = 0; i < room + 2; i++)
        bed_post(bed, &request);
    outcome_event(bed, true);
    usual = bed->cq[REQUESTER];
    bed->cq[REQUESTER] = small;
    ibv_destroy_cq(usual);
}

static void shared_receive(struct bed *bed)
{
    struct request request;

    bed_receive(bed, 1, 8, bed->mr->lkey);
    bed_request(bed, IBV_WR_SEND, &request);
    bed_post(bed, &request);
    outcome_completion(bed, REQUESTER);
    outcome_completion(bed, RESPONDER);
}

static void shared_private_receive(struct bed *bed)
{
    struct ibv_sge sge = { (uintptr_t)bed->memory, 8, bed->mr->lkey };
    struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

    outcome_call(bed, "", ibv_post_recv(bed->qp[RESPONDER], &wr, &bad));
}

static void shared_limit(struct bed *bed)
{
    struct ibv_srq_attr attr = { .srq_limit = 2 };
    struct request request;

    for (int i = 0; i < 3; i++)
        bed_receive(bed, i, 8, bed->mr->lkey);
    outcome_call(bed, "arm", ibv_modify_srq(bed->srq, &attr, IBV_SRQ_LIMIT));
    outcome_event(bed, false);
    for (int i = 0; i < 2; i++) {
        bed_request(bed, IBV_WR_SEND, &request);
        bed_post(bed, &request);
        outcome_completion(bed, RESPONDER);
    }
    outcome_event(bed, true);
    ibv_query_srq(bed->srq, &attr);
    outcome(bed, "limit is %u then", attr.srq_limit);
}

static void shared_limit_too_high(struct bed *bed)
{
    struct ibv_srq_attr attr;
    int error;

    ibv_query_srq(bed->srq, &attr);
    attr.srq_limit = attr.max_wr + 1;
    error = ibv_modify_srq(bed->srq, &attr, IBV_SRQ_LIMIT);
    outcome_call(bed, "", error);
}

static void shared_after_error(struct bed *bed)
{
    bed_receive(bed, 1, 8, bed->mr->lkey);
    rig_qp_error(bed->qp[RESPONDER]);
    outcome_event(bed, true);
    outcome_nothing(bed, RESPONDER);
}

static void shared_destroy_busy(struct bed *bed)
{
    int error = ibv_destroy_srq(bed->srq);

    outcome_call(bed, "", error);
    if (!error)
        bed->srq = NULL;
}

static void run_shared(case_sink sink)
{
    static const struct {
        const char *name;
        void (*run)(struct bed *bed);
    } rows[] = {
        { "SRQ: a send", shared_receive },
        { "SRQ: a receive posted to the queue pair", shared_private_receive },
        { "SRQ: a limit of 2, three receives, two sends", shared_limit },
        { "SRQ: a limit above its size", shared_limit_too_high },
        { "SRQ: a queue pair of it goes to ERR", shared_after_error },
        { "SRQ: destroyed while a queue pair uses it", shared_destroy_busy },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct bed bed;

        if (bed_open(&bed, IBV_QPT_RC, true) && bed_connect(&bed))
            rows[i].run(&bed);
        sink("completions", rows[i].name, bed.text);
        bed_close(&bed);
    }
}

/* Events of queue pairs. */
static void communication_established(struct bed *bed)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
    struct request request;

    ibv_modify_qp(bed->qp[RESPONDER], &attr, IBV_QP_STATE);
    bed_walk(bed, RESPONDER, IBV_QPS_RTR);
    bed_receive(bed, 1, 8, bed->mr->lkey);
    bed_request(bed, IBV_WR_SEND, &request);
    bed_post(bed, &request);
    outcome_completion(bed, RESPONDER);
    outcome_event(bed, false);
}

static void send_queue_drained(struct bed *bed)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };

    outcome_call(
        bed, "",
        ibv_modify_qp(bed->qp[REQUESTER], &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
    outcome_event(bed, true);
}

static void access_error_event(struct bed *bed)
{
    struct request request;

    bed_request(bed, IBV_WR_RDMA_WRITE, &request);
    request.wr.wr.rdma.rkey ^= 0x5a5a00;
    bed_post(bed, &request);
    outcome_completion(bed, REQUESTER);
    outcome_event(bed, false);
}

void run_completions(case_sink sink)
{
    static const struct bed_case cases[] = {
        { "four writes, the last signalled", IBV_QPT_RC, unsignalled },
        { "a write with immediate: what the receiver is told", IBV_QPT_RC, fields },
        { "more completions than the CQ holds", IBV_QPT_RC, overrun },
        { "a message in RTR: event at the receiver", IBV_QPT_RC, communication_established },
        { "RTS to SQD with notification", IBV_QPT_RC, send_queue_drained },
        { "a write with an unknown key: event at the responder", IBV_QPT_RC, access_error_event },
    };

    run_cases("completions", cases, sizeof(cases) / sizeof(*cases), sink);
    run_channels(sink);
    run_shared(sink);
}
