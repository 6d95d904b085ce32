/* SPDX-License-Identifier: BSD-2-Clause */
/* Queues that are full, empty, drained or in the wrong state; timers; unreliable transports. */
#include "side.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

static const struct request small_send = { .opcode = IBV_WR_SEND, .len = 16 };

static void overrun_own_cq(bool remote)
{
    struct side_config config = side_usual;
    struct request request = { .opcode = IBV_WR_RDMA_WRITE, .len = 8 };
    struct pair pair;

    config.cq_depth = 4;
    config.send_depth = 1024;
    pair_open(&pair, remote, &config, &rig_patient);
    request.remote_addr = pair.at.buf;
    request.rkey = pair.at.rkey;
    int cqe = pair.a.send_cq->cqe;
    CHECK(cqe >= 4 && cqe < 1000, "a CQ of 4 has %d", cqe);
    for (int i = 0; i <= cqe; i++)
        CHECK_INT(pair_post(&pair, &request), 0);
    CHECK_INT(side_async(&pair.a, 2000), IBV_EVENT_CQ_ERR);
    pair_close(&pair);
}

static void overrun_far_cq(bool remote)
{
    struct side_config config = side_usual;
    struct pair pair;

    config.cq_depth = 4;
    config.recv_depth = 1024;
    pair_open(&pair, remote, &config, &rig_patient);
    CHECK(pair.at.cqe >= 4 && pair.at.cqe < 1000, "a CQ of 4 has %d", pair.at.cqe);
    for (int i = 0; i <= pair.at.cqe; i++)
        CHECK_INT(far_post_recv(&pair.b, i, 0, 64), 0);
    for (int i = 0; i <= pair.at.cqe; i++) {
        struct ibv_wc wc;
        CHECK_INT(pair_post(&pair, &small_send), 0);
        CHECK_INT(rig_poll(pair.a.send_cq, &wc, 2000), 1);
        if (i < pair.at.cqe)
            CHECK_STATUS(wc.status, IBV_WC_SUCCESS);
    }
    CHECK_INT(far_async(&pair.b, 2000), IBV_EVENT_CQ_ERR);
    pair_close(&pair);
}

static void rnr_resumes(bool remote)
{
    struct pair pair;
    struct request request = small_send;
    struct ibv_wc wc;
    uint8_t byte;

    pair_open(&pair, remote, &side_usual, &rig_patient);
    for (int i = 0; i < 3; i++) {
        pair.a.buf[i * 16] = 10 + i;
        request.wr_id = i;
        request.local_offset = i * 16;
        CHECK_INT(pair_post(&pair, &request), 0);
    }
    CHECK_INT(rig_poll(pair.a.send_cq, &wc, 60), 0);
    for (int i = 0; i < 3; i++)
        CHECK_INT(far_post_recv(&pair.b, 100 + i, i * 64, 64), 0);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(far_poll_recv(&pair.b, &wc, 3000), 1);
        CHECK_STATUS(wc.status, IBV_WC_SUCCESS);
        CHECK_INT(wc.wr_id, 100 + i);
        far_read(&pair.b, i * 64, &byte, 1);
        CHECK_INT(byte, 10 + i);
        CHECK_INT(rig_poll(pair.a.send_cq, &wc, 3000), 1);
        CHECK_STATUS(wc.status, IBV_WC_SUCCESS);
        CHECK_INT(wc.wr_id, i);
    }
    pair_close(&pair);
}

static void rnr_exhausted(bool remote)
{
    for (int retry = 0; retry <= 6; retry++) {
        struct rig_timing timing = rig_patient;
        struct request second = small_send;
        struct pair pair;
        struct ibv_wc wc;
        timing.rnr_retry = retry;
        timing.min_rnr_timer = 16; /* 2.56 ms */
        pair_open(&pair, remote, &side_usual, &timing);
        second.wr_id = 2;
        uint64_t start = rig_now_us();
        CHECK_INT(pair_post(&pair, &small_send), 0);
        CHECK_INT(pair_post(&pair, &second), 0);
        CHECK_INT(rig_poll(pair.a.send_cq, &wc, 3000), 1);
        uint64_t took = rig_now_us() - start;
        CHECK_STATUS(wc.status, IBV_WC_RNR_RETRY_EXC_ERR);
        CHECK(took >= retry * 2560u, "%d retries took only %llu us", retry,
              (unsigned long long)took);
        CHECK_INT(rig_poll(pair.a.send_cq, &wc, 1000), 1);
        CHECK_STATUS(wc.status, IBV_WC_WR_FLUSH_ERR);
        CHECK_INT(wc.wr_id, 2);
        CHECK_INT(rig_qp_state(pair.a.qp), IBV_QPS_ERR);
        pair_close(&pair);
    }
}

/* The error must also wake a program that waits on a completion channel. */
static void wait_for_event(struct pair *pair, int timeout_ms)
{
    struct pollfd fd = { .fd = pair->a.channel->fd, .events = POLLIN };
    struct ibv_cq *cq;
    void *context;

    CHECK(poll(&fd, 1, timeout_ms) == 1, "no completion event");
    CHECK_INT(ibv_get_cq_event(pair->a.channel, &cq, &context), 0);
    CHECK(cq == pair->a.send_cq, "the event is of another CQ");
    ibv_ack_cq_events(cq, 1);
}

static void rnr_exhausted_asleep(bool remote)
{
    struct rig_timing timing = rig_patient;
    struct side_config config = side_usual;
    struct pair pair;
    struct ibv_wc wc;

    timing.rnr_retry = 3;
    timing.min_rnr_timer = 20;
    config.with_channel = true;
    pair_open(&pair, remote, &config, &timing);
    CHECK_INT(ibv_req_notify_cq(pair.a.send_cq, 0), 0);
    CHECK_INT(pair_post(&pair, &small_send), 0);
    wait_for_event(&pair, 3000);
    CHECK_INT(rig_poll(pair.a.send_cq, &wc, 0), 1);
    CHECK_STATUS(wc.status, IBV_WC_RNR_RETRY_EXC_ERR);
    pair_close(&pair);
}

static void post_in_state(struct side *side, enum ibv_qp_state state, int send, int recv)
{
    struct ibv_sge sge = { .addr = (uintptr_t)side->buf, .length = 8, .lkey = side->mr->lkey };
    struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad = NULL;

    CHECK_INT(rig_qp_state(side->qp), state);
    CHECK_INT(ibv_post_send(side->qp, &wr, &bad), send);
    if (send)
        CHECK(bad == &wr, "bad_wr does not point to the request");
    CHECK_INT(side_post_recv(side, 1, 0, 64, side->mr->lkey), recv);
}

static void post_in_wrong_state(bool remote)
{
    struct side side;
    struct side_info info;
    struct ibv_wc wc;

    side_open(&side, &side_usual);
    side_info(&side, &info);
    post_in_state(&side, IBV_QPS_RESET, EINVAL, EINVAL);
    CHECK_INT(rig_qp_init(side.qp, 0), 0);
    post_in_state(&side, IBV_QPS_INIT, EINVAL, 0);
    CHECK_INT(rig_qp_rtr(side.qp, &info.addr, &rig_patient), 0);
    post_in_state(&side, IBV_QPS_RTR, EINVAL, 0);
    CHECK_INT(rig_qp_error(side.qp), 0);
    post_in_state(&side, IBV_QPS_ERR, 0, 0);
    CHECK_INT(rig_poll(side.send_cq, &wc, 1000), 1);
    CHECK_STATUS(wc.status, IBV_WC_WR_FLUSH_ERR);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(rig_poll(side.recv_cq, &wc, 1000), 1);
        CHECK_STATUS(wc.status, IBV_WC_WR_FLUSH_ERR);
    }
    side_close(&side);
}

static void refuse_modify(struct ibv_qp *qp, struct ibv_qp_attr attr, int mask)
{
    enum ibv_qp_state before = rig_qp_state(qp);
    int err = ibv_modify_qp(qp, &attr, mask);

    CHECK(err == EINVAL, "state %d to %d with mask %#x gave %d", before, attr.qp_state, mask, err);
    CHECK_INT(rig_qp_state(qp), before);
}

static void modify_in_wrong_state(bool remote)
{
    struct ibv_qp_attr attr = { .port_num = 1 };
    const int init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    struct side side;

    side_open(&side, &side_usual);
    attr.qp_state = IBV_QPS_RTR;
    refuse_modify(side.qp, attr,
                  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    attr.qp_state = IBV_QPS_RTS;
    refuse_modify(side.qp, attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
    attr.qp_state = IBV_QPS_SQD;
    refuse_modify(side.qp, attr, IBV_QP_STATE);
    attr.qp_state = IBV_QPS_INIT;
    refuse_modify(side.qp, attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS);
    refuse_modify(side.qp, attr, init | IBV_QP_SQ_PSN);
    attr.port_num = 77;
    refuse_modify(side.qp, attr, init);
    attr.port_num = 1;
    attr.pkey_index = 60000;
    refuse_modify(side.qp, attr, init);
    CHECK_INT(rig_qp_init(side.qp, 0), 0);
    attr.qp_state = IBV_QPS_RTS;
    refuse_modify(side.qp, attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
    attr.qp_state = IBV_QPS_RTR;
    refuse_modify(side.qp, attr, IBV_QP_STATE | IBV_QP_DEST_QPN);
    attr.qp_state = 1000;
    refuse_modify(side.qp, attr, IBV_QP_STATE);
    attr.cur_qp_state = IBV_QPS_RTS;
    attr.qp_state = IBV_QPS_INIT;
    refuse_modify(side.qp, attr, IBV_QP_STATE | IBV_QP_CUR_STATE);
    side_close(&side);
}

static void unknown_qpn(bool remote)
{
    struct rig_timing timing = { .timeout = 8, .retry_cnt = 3, .rnr_retry = 7, .min_rnr_timer = 1 };
    struct pair pair;
    struct rig_addr nowhere;
    struct ibv_wc wc;

    side_open(&pair.a, &side_usual);
    rig_addr_of(&pair.a.rig, pair.a.qp, 0, &nowhere);
    nowhere.qpn = 0xfffff0;
    CHECK_INT(rig_qp_connect(pair.a.qp, 0, &nowhere, 0, &timing), 0);
    uint64_t start = rig_now_us();
    CHECK_INT(pair_post(&pair, &small_send), 0);
    CHECK_INT(rig_poll(pair.a.send_cq, &wc, 5000), 1);
    uint64_t took = rig_now_us() - start;
    CHECK_STATUS(wc.status, IBV_WC_RETRY_EXC_ERR);
    CHECK(took >= 4 * 1048, "four tries of 1.05 ms took only %llu us", (unsigned long long)took);
    CHECK_INT(rig_qp_state(pair.a.qp), IBV_QPS_ERR);
    side_close(&pair.a);
}

static void far_not_ready(bool remote)
{
    struct rig_timing timing = {
        .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 1
    };
    struct pair pair;
    struct side_info mine;
    struct ibv_wc wc;

    far_open(&pair.b, remote, &side_usual);
    side_open(&pair.a, &side_usual);
    side_info(&pair.a, &mine);
    far_info(&pair.b, &pair.at);
    CHECK_INT(far_init(&pair.b), 0);
    CHECK_INT(far_post_recv(&pair.b, 1, 0, 64), 0);
    CHECK_INT(rig_qp_connect(pair.a.qp, 0, &pair.at.addr, 0, &timing), 0);
    CHECK_INT(pair_post(&pair, &small_send), 0);
    CHECK_INT(rig_poll(pair.a.send_cq, &wc, 60), 0);
    CHECK_INT(far_connect(&pair.b, &mine.addr, &timing), 0);
    CHECK_INT(rig_poll(pair.a.send_cq, &wc, 3000), 1);
    CHECK_STATUS(wc.status, IBV_WC_SUCCESS);
    CHECK_INT(far_poll_recv(&pair.b, &wc, 1000), 1);
    CHECK_STATUS(wc.status, IBV_WC_SUCCESS);
    pair_close(&pair);
}

static void expect_lost(struct pair *pair)
{
    struct request request = small_send;
    struct ibv_wc wc;

    request.wr_id = 1;
    CHECK_STATUS(pair_do(pair, &request), IBV_WC_RETRY_EXC_ERR);
    request.wr_id = 2;
    CHECK_INT(pair_post(pair, &request), 0);
    CHECK_INT(rig_poll(pair->a.send_cq, &wc, 1000), 1);
    CHECK_STATUS(wc.status, IBV_WC_WR_FLUSH_ERR);
}

static void far_in_error(bool remote)
{
    struct rig_timing timing = { .timeout = 8, .retry_cnt = 2, .rnr_retry = 7, .min_rnr_timer = 1 };
    struct pair pair;

    pair_open(&pair, remote, &side_usual, &timing);
    CHECK_INT(far_error(&pair.b), 0);
    expect_lost(&pair);
    pair_close(&pair);
    pair_open(&pair, remote, &side_usual, &timing);
    CHECK_INT(far_destroy_qp(&pair.b), 0);
    expect_lost(&pair);
    pair_close(&pair);
}

static void dead_peer(bool remote)
{
    const enum ibv_wr_opcode opcodes[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
                                           IBV_WR_ATOMIC_FETCH_AND_ADD };

    for (int i = 0; i < 4; i++) {
        struct pair pair;
        struct request request = { .opcode = opcodes[i], .len = 8, .wr_id = 3 };
        pair_open(&pair, true, &side_usual, &rig_patient);
        request.remote_addr = pair.at.buf;
        request.rkey = pair.at.rkey;
        CHECK_INT(far_post_recv(&pair.b, 1, 0, 64), 0);
        far_kill(&pair.b);
        enum ibv_wc_status status = pair_do(&pair, &request);
        /* A receive posted by the dead process may still take the message. */
        if (opcodes[i] == IBV_WR_SEND && status == IBV_WC_SUCCESS)
            status = pair_do(&pair, &request);
        CHECK_STATUS(status, IBV_WC_RETRY_EXC_ERR);
        CHECK_INT(rig_qp_state(pair.a.qp), IBV_QPS_ERR);
        pair_close(&pair);
    }
}

/* Many receives remain, and the sender sends slowly. */
static void dead_with_receives(bool remote)
{
    struct pair pair;
    enum ibv_wc_status status = IBV_WC_SUCCESS;
    uint64_t end;

    pair_open(&pair, true, &side_usual, &rig_patient);
    for (int i = 0; i < 16; i++)
        CHECK_INT(far_post_recv(&pair.b, i, 0, 64), 0);
    CHECK_STATUS(pair_do(&pair, &small_send), IBV_WC_SUCCESS);
    far_kill(&pair.b);
    end = rig_now_us() + 2000000;
    while (status == IBV_WC_SUCCESS && rig_now_us() < end) {
        struct ibv_wc wc;
        status = pair_do(&pair, &small_send);
        rig_poll(pair.a.send_cq, &wc, 400);
    }
    CHECK_STATUS(status, IBV_WC_RETRY_EXC_ERR);
    pair_close(&pair);
}

static void dead_while_waiting(bool remote)
{
    struct pair pair;
    struct ibv_wc wc;

    pair_open(&pair, true, &side_usual, &rig_patient);
    for (int i = 0; i < 3; i++)
        CHECK_INT(pair_post(&pair, &small_send), 0);
    CHECK_INT(rig_poll(pair.a.send_cq, &wc, 20), 0);
    far_kill(&pair.b);
    CHECK_INT(rig_poll(pair.a.send_cq, &wc, 3000), 1);
    CHECK_STATUS(wc.status, IBV_WC_RETRY_EXC_ERR);
    for (int i = 0; i < 2; i++) {
        CHECK_INT(rig_poll(pair.a.send_cq, &wc, 1000), 1);
        CHECK_STATUS(wc.status, IBV_WC_WR_FLUSH_ERR);
    }
    pair_close(&pair);
}

static void dead_while_asleep(bool remote)
{
    struct side_config config = side_usual;
    struct pair pair;
    struct ibv_wc wc;

    config.with_channel = true;
    pair_open(&pair, true, &config, &rig_patient);
    CHECK_INT(ibv_req_notify_cq(pair.a.send_cq, 0), 0);
    CHECK_INT(pair_post(&pair, &small_send), 0);
    far_kill(&pair.b);
    wait_for_event(&pair, 5000);
    CHECK_INT(rig_poll(pair.a.send_cq, &wc, 0), 1);
    CHECK_STATUS(wc.status, IBV_WC_RETRY_EXC_ERR);
    pair_close(&pair);
}

static void flush_in_order(bool remote)
{
    struct pair pair;
    struct request request = small_send;
    struct ibv_wc wc;

    pair_open(&pair, remote, &side_usual, &rig_patient);
    for (int i = 0; i < 4; i++) {
        request.wr_id = i;
        CHECK_INT(pair_post(&pair, &request), 0);
        CHECK_INT(side_post_recv(&pair.a, 10 + i, 0, 64, pair.a.mr->lkey), 0);
    }
    CHECK_INT(rig_qp_error(pair.a.qp), 0);
    for (int i = 4; i < 6; i++) {
        request.wr_id = i;
        CHECK_INT(pair_post(&pair, &request), 0);
        CHECK_INT(side_post_recv(&pair.a, 10 + i, 0, 64, pair.a.mr->lkey), 0);
    }
    for (int i = 0; i < 6; i++) {
        CHECK_INT(rig_poll(pair.a.send_cq, &wc, 1000), 1);
        CHECK_STATUS(wc.status, IBV_WC_WR_FLUSH_ERR);
        CHECK_INT(wc.wr_id, i);
        CHECK_INT(wc.qp_num, pair.a.qp->qp_num);
        CHECK_INT(rig_poll(pair.a.recv_cq, &wc, 1000), 1);
        CHECK_STATUS(wc.status, IBV_WC_WR_FLUSH_ERR);
        CHECK_INT(wc.wr_id, 10 + i);
        CHECK_INT(wc.qp_num, pair.a.qp->qp_num);
    }
    CHECK_INT(rig_poll(pair.a.send_cq, &wc, 10), 0);
    CHECK_INT(rig_poll(pair.a.recv_cq, &wc, 10), 0);
    pair_close(&pair);
}

/* Messages that arrived before the error keep their success. */
static void flush_after_success(bool remote)
{
    struct pair pair;
    struct ibv_wc wc;

    pair_open(&pair, remote, &side_usual, &rig_patient);
    for (int i = 0; i < 4; i++)
        CHECK_INT(far_post_recv(&pair.b, i, 0, 64), 0);
    for (int i = 0; i < 2; i++)
        CHECK_STATUS(pair_do(&pair, &small_send), IBV_WC_SUCCESS);
    CHECK_INT(far_error(&pair.b), 0);
    for (int i = 0; i < 4; i++) {
        CHECK_INT(far_poll_recv(&pair.b, &wc, 1000), 1);
        CHECK_INT(wc.wr_id, i);
        CHECK_STATUS(wc.status, i < 2 ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR);
    }
    pair_close(&pair);
}

static void send_queue_full(bool remote)
{
    struct pair pair;
    struct ibv_wc wc;
    uint32_t posted = 0;

    pair_open(&pair, remote, &side_usual, &rig_patient);
    while (posted < 100000 && !pair_post(&pair, &small_send))
        posted++;
    CHECK_INT(posted, pair.a.cap.max_send_wr);
    CHECK_INT(pair_post(&pair, &small_send), ENOMEM);
    CHECK_INT(far_post_recv(&pair.b, 1, 0, 64), 0);
    CHECK_INT(rig_poll(pair.a.send_cq, &wc, 3000), 1);
    CHECK_STATUS(wc.status, IBV_WC_SUCCESS);
    CHECK_INT(pair_post(&pair, &small_send), 0);
    CHECK_INT(pair_post(&pair, &small_send), ENOMEM);
    pair_close(&pair);
}

static void recv_queue_full(bool remote)
{
    struct side_config config = side_usual;
    struct side side;

    for (int srq = 0; srq < 2; srq++) {
        uint32_t posted = 0;
        config.use_srq = srq;
        side_open(&side, &config);
        CHECK_INT(rig_qp_init(side.qp, 0), 0);
        while (posted < 100000 && !side_post_recv(&side, posted, 0, 64, side.mr->lkey))
            posted++;
        CHECK(posted >= config.recv_depth && posted < 100000, "%u receives were taken", posted);
        if (!srq)
            CHECK_INT(posted, side.cap.max_recv_wr);
        CHECK_INT(side_post_recv(&side, 0, 0, 64, side.mr->lkey), ENOMEM);
        side_close(&side);
    }
}

static void send_queue_drained(bool remote)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };
    struct pair pair;
    struct ibv_wc wc;

    pair_open(&pair, remote, &side_usual, &rig_patient);
    CHECK_INT(far_post_recv(&pair.b, 1, 0, 64), 0);
    CHECK_INT(far_post_recv(&pair.b, 2, 0, 64), 0);
    CHECK_STATUS(pair_do(&pair, &small_send), IBV_WC_SUCCESS);
    int err = ibv_modify_qp(pair.a.qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY);
    CHECK(!err, "modify to SQD: %s", strerror(err));
    CHECK_INT(side_async(&pair.a, 2000), IBV_EVENT_SQ_DRAINED);
    CHECK_INT(rig_qp_state(pair.a.qp), IBV_QPS_SQD);
    CHECK_INT(pair_post(&pair, &small_send), 0);
    CHECK_INT(rig_poll(pair.a.send_cq, &wc, 50), 0);
    attr.qp_state = IBV_QPS_RTS;
    CHECK_INT(ibv_modify_qp(pair.a.qp, &attr, IBV_QP_STATE), 0);
    CHECK_INT(rig_poll(pair.a.send_cq, &wc, 2000), 1);
    CHECK_STATUS(wc.status, IBV_WC_SUCCESS);
    pair_close(&pair);
}

static void last_wqe_reached(bool remote)
{
    struct side_config config = side_usual;
    struct pair pair;

    config.use_srq = true;
    pair_open(&pair, remote, &config, &rig_patient);
    CHECK_INT(far_post_recv(&pair.b, 1, 0, 64), 0);
    CHECK_STATUS(pair_do(&pair, &small_send), IBV_WC_SUCCESS);
    CHECK_INT(far_error(&pair.b), 0);
    CHECK_INT(far_async(&pair.b, 2000), IBV_EVENT_QP_LAST_WQE_REACHED);
    pair_close(&pair);
}

static void srq_limit_reached(bool remote)
{
    struct side_config config = side_usual;
    struct pair pair;

    config.use_srq = true;
    pair_open(&pair, remote, &config, &rig_patient);
    for (int i = 0; i < 8; i++)
        CHECK_INT(far_post_recv(&pair.b, i, 0, 64), 0);
    CHECK_INT(far_set_srq_limit(&pair.b, 5), 0);
    for (int i = 0; i < 3; i++)
        CHECK_STATUS(pair_do(&pair, &small_send), IBV_WC_SUCCESS);
    CHECK_INT(far_async(&pair.b, 50), -1);
    CHECK_STATUS(pair_do(&pair, &small_send), IBV_WC_SUCCESS);
    CHECK_INT(far_async(&pair.b, 2000), IBV_EVENT_SRQ_LIMIT_REACHED);
    CHECK_STATUS(pair_do(&pair, &small_send), IBV_WC_SUCCESS);
    CHECK_INT(far_async(&pair.b, 50), -1);
    pair_close(&pair);
}

static void uc_drops(bool remote)
{
    struct side_config config = side_usual;
    struct request write = { .opcode = IBV_WR_RDMA_WRITE, .len = 8 };
    struct pair pair;
    struct ibv_wc wc;
    uint8_t byte;

    config.type = IBV_QPT_UC;
    pair_open(&pair, remote, &config, &rig_patient);
    far_fill(&pair.b, 0x77);
    pair.a.buf[0] = 1;
    CHECK_STATUS(pair_do(&pair, &small_send), IBV_WC_SUCCESS);
    CHECK_INT(far_poll_recv(&pair.b, &wc, 20), 0);
    CHECK_INT(far_post_recv(&pair.b, 7, 0, 64), 0);
    CHECK_INT(far_poll_recv(&pair.b, &wc, 50), 0);
    pair.a.buf[0] = 2;
    CHECK_STATUS(pair_do(&pair, &small_send), IBV_WC_SUCCESS);
    CHECK_INT(far_poll_recv(&pair.b, &wc, 1000), 1);
    CHECK_STATUS(wc.status, IBV_WC_SUCCESS);
    far_read(&pair.b, 0, &byte, 1);
    CHECK_INT(byte, 2);
    write.remote_addr = pair.at.buf + 100;
    write.rkey = pair.at.rkey ^ 0x100;
    CHECK_STATUS(pair_do(&pair, &write), IBV_WC_SUCCESS);
    far_read(&pair.b, 100, &byte, 1);
    CHECK_INT(byte, 0x77);
    pair_close(&pair);
}

static int send_datagram(struct pair *pair, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey,
                         uint32_t len)
{
    struct ibv_sge sge = { .addr = (uintptr_t)pair->a.buf,
                           .length = len,
                           .lkey = pair->a.mr->lkey };
    struct ibv_send_wr wr = { .sg_list = &sge,
                              .num_sge = 1,
                              .opcode = IBV_WR_SEND,
                              .send_flags = IBV_SEND_SIGNALED,
                              .wr.ud = { .ah = ah, .remote_qpn = qpn, .remote_qkey = qkey } };
    struct ibv_send_wr *bad;
    struct ibv_wc wc;

    if (ibv_post_send(pair->a.qp, &wr, &bad))
        return -1;
    CHECK_INT(rig_poll(pair->a.send_cq, &wc, 2000), 1);
    return wc.status;
}

static void ud_drops(bool remote)
{
    struct side_config config = side_usual;
    struct pair pair;
    struct ibv_ah_attr attr;
    struct ibv_wc wc;

    config.type = IBV_QPT_UD;
    pair_open(&pair, remote, &config, &rig_patient);
    rig_fill_ah(&pair.at.addr, &attr);
    struct ibv_ah *ah = ibv_create_ah(pair.a.rig.pd, &attr);
    CHECK(ah, "ibv_create_ah: %s", strerror(errno));
    uint32_t qpn = pair.at.addr.qpn;
    CHECK_INT(send_datagram(&pair, ah, qpn, RIG_QKEY, 16), IBV_WC_SUCCESS);
    CHECK_INT(far_post_recv(&pair.b, 3, 0, 128), 0);
    CHECK_INT(far_poll_recv(&pair.b, &wc, 30), 0);
    CHECK_INT(send_datagram(&pair, ah, qpn, RIG_QKEY + 1, 16), IBV_WC_SUCCESS);
    CHECK_INT(send_datagram(&pair, ah, 0xfffff0, RIG_QKEY, 16), IBV_WC_SUCCESS);
    CHECK_INT(far_poll_recv(&pair.b, &wc, 30), 0);
    CHECK(send_datagram(&pair, ah, qpn, RIG_QKEY, 5000) != IBV_WC_SUCCESS,
          "a datagram larger than the MTU was sent");
    CHECK_INT(far_poll_recv(&pair.b, &wc, 30), 0);
    CHECK_INT(ibv_destroy_ah(ah), 0);
    pair_close(&pair);
}

static void ud_delivers(bool remote)
{
    struct side_config config = side_usual;
    struct pair pair;
    struct ibv_ah_attr attr;
    struct ibv_wc wc;
    uint8_t byte;

    config.type = IBV_QPT_UD;
    pair_open(&pair, remote, &config, &rig_patient);
    rig_fill_ah(&pair.at.addr, &attr);
    struct ibv_ah *ah = ibv_create_ah(pair.a.rig.pd, &attr);
    CHECK(ah, "ibv_create_ah: %s", strerror(errno));
    CHECK_INT(far_post_recv(&pair.b, 3, 0, 128), 0);
    pair.a.buf[0] = 9;
    CHECK_INT(send_datagram(&pair, ah, pair.at.addr.qpn, RIG_QKEY, 16), IBV_WC_SUCCESS);
    CHECK_INT(far_poll_recv(&pair.b, &wc, 1000), 1);
    CHECK_STATUS(wc.status, IBV_WC_SUCCESS);
    CHECK_INT(wc.byte_len, 16 + 40);
    CHECK_INT(wc.src_qp, pair.a.qp->qp_num);
    CHECK_INT(wc.slid, pair.a.rig.port.lid);
    far_read(&pair.b, 40, &byte, 1);
    CHECK_INT(byte, 9);
    CHECK_INT(ibv_destroy_ah(ah), 0);
    pair_close(&pair);
}

const struct fault_case queue_cases[] = {
    { "overrun-own-cq", overrun_own_cq, BOTH_WAYS },
    { "overrun-far-cq", overrun_far_cq, BOTH_WAYS },
    { "rnr-resumes", rnr_resumes, BOTH_WAYS },
    { "rnr-exhausted", rnr_exhausted, BOTH_WAYS },
    { "rnr-exhausted-asleep", rnr_exhausted_asleep, BOTH_WAYS },
    { "post-in-wrong-state", post_in_wrong_state, LOCAL_ONLY },
    { "modify-in-wrong-state", modify_in_wrong_state, LOCAL_ONLY },
    { "unknown-qpn", unknown_qpn, LOCAL_ONLY },
    { "far-not-ready", far_not_ready, BOTH_WAYS },
    { "far-in-error", far_in_error, BOTH_WAYS },
    { "dead-peer", dead_peer, REMOTE_ONLY },
    { "dead-with-receives", dead_with_receives, REMOTE_ONLY },
    { "dead-while-waiting", dead_while_waiting, REMOTE_ONLY },
    { "dead-while-asleep", dead_while_asleep, REMOTE_ONLY },
    { "flush-in-order", flush_in_order, BOTH_WAYS },
    { "flush-after-success", flush_after_success, BOTH_WAYS },
    { "send-queue-full", send_queue_full, BOTH_WAYS },
    { "recv-queue-full", recv_queue_full, LOCAL_ONLY },
    { "send-queue-drained", send_queue_drained, BOTH_WAYS },
    { "last-wqe-reached", last_wqe_reached, BOTH_WAYS },
    { "srq-limit-reached", srq_limit_reached, BOTH_WAYS },
    { "uc-drops", uc_drops, BOTH_WAYS },
    { "ud-drops", ud_drops, BOTH_WAYS },
    { "ud-delivers", ud_delivers, BOTH_WAYS },
    { 0 },
};
