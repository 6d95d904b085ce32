/* SPDX-License-Identifier: BSD-2-Clause */
#include "bed.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE_MS 5000
#define SILENCE_MS  100
#define PSN         100

static const struct rig_timing usual = {
    .timeout = 14,
    .retry_cnt = 7,
    .rnr_retry = 7,
    .min_rnr_timer = 12,
};

static const char *const side_names[] = { "requester", "responder" };

const char *state_name(enum ibv_qp_state state)
{
    static const char *const names[] = { "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR" };

    return (size_t)state < sizeof(names) / sizeof(*names) ? names[state] : "unknown";
}

const char *status_name(enum ibv_wc_status status)
{
    static const char *const names[] = {
        [IBV_WC_SUCCESS] = "success",
        [IBV_WC_LOC_LEN_ERR] = "LOC_LEN_ERR",
        [IBV_WC_LOC_QP_OP_ERR] = "LOC_QP_OP_ERR",
        [IBV_WC_LOC_PROT_ERR] = "LOC_PROT_ERR",
        [IBV_WC_WR_FLUSH_ERR] = "WR_FLUSH_ERR",
        [IBV_WC_MW_BIND_ERR] = "MW_BIND_ERR",
        [IBV_WC_LOC_ACCESS_ERR] = "LOC_ACCESS_ERR",
        [IBV_WC_REM_INV_REQ_ERR] = "REM_INV_REQ_ERR",
        [IBV_WC_REM_ACCESS_ERR] = "REM_ACCESS_ERR",
        [IBV_WC_REM_OP_ERR] = "REM_OP_ERR",
        [IBV_WC_RETRY_EXC_ERR] = "RETRY_EXC_ERR",
        [IBV_WC_RNR_RETRY_EXC_ERR] = "RNR_RETRY_EXC_ERR",
    };

    return (size_t)status < sizeof(names) / sizeof(*names) && names[status] ? names[status]
                                                                            : "another error";
}

static const char *event_name(enum ibv_event_type type)
{
    static const char *const names[] = {
        [IBV_EVENT_CQ_ERR] = "CQ_ERR",
        [IBV_EVENT_QP_FATAL] = "QP_FATAL",
        [IBV_EVENT_QP_REQ_ERR] = "QP_REQ_ERR",
        [IBV_EVENT_QP_ACCESS_ERR] = "QP_ACCESS_ERR",
        [IBV_EVENT_COMM_EST] = "COMM_EST",
        [IBV_EVENT_SQ_DRAINED] = "SQ_DRAINED",
        [IBV_EVENT_SRQ_ERR] = "SRQ_ERR",
        [IBV_EVENT_SRQ_LIMIT_REACHED] = "SRQ_LIMIT_REACHED",
        [IBV_EVENT_QP_LAST_WQE_REACHED] = "QP_LAST_WQE_REACHED",
    };

    return (size_t)type < sizeof(names) / sizeof(*names) && names[type] ? names[type]
                                                                        : "another event";
}

void outcome(struct bed *bed, const char *format, ...)
{
    size_t used = strlen(bed->text);
    va_list arguments;

    if (used)
        used += snprintf(bed->text + used, sizeof(bed->text) - used, ", ");
    va_start(arguments, format);
    vsnprintf(bed->text + used, sizeof(bed->text) - used, format, arguments);
    va_end(arguments);
}

void outcome_call(struct bed *bed, const char *what, int error)
{
    const char *name = error ? strerrorname_np(error) : NULL;
    const char *blank = *what ? " " : "";

    if (error)
        outcome(bed, "%s%srefused (%s)", what, blank, name ? name : "no errno value");
    else
        outcome(bed, "%s%saccepted", what, blank);
}

void outcome_state(struct bed *bed, enum side side)
{
    outcome(bed, "%s in %s", side_names[side], state_name(rig_qp_state(bed->qp[side])));
}

void outcome_completion(struct bed *bed, enum side side)
{
    struct ibv_wc wc;

    switch (rig_poll(bed->cq[side], &wc, PATIENCE_MS)) {
    case 1:
        outcome(bed, "%s %s", side_names[side], status_name(wc.status));
        break;
    case 0:
        outcome(bed, "%s nothing", side_names[side]);
        break;
    default:
        outcome(bed, "%s's CQ cannot be polled", side_names[side]);
    }
}

void outcome_nothing(struct bed *bed, enum side side)
{
    struct ibv_wc wc;

    if (rig_poll(bed->cq[side], &wc, SILENCE_MS) == 1)
        outcome(bed, "%s %s", side_names[side], status_name(wc.status));
    else
        outcome(bed, "%s nothing", side_names[side]);
}

void outcome_event(struct bed *bed, bool expected)
{
    struct pollfd ready = { .fd = bed->rig.ctx->async_fd, .events = POLLIN };
    struct ibv_async_event event;

    if (poll(&ready, 1, expected ? PATIENCE_MS : SILENCE_MS) <= 0 ||
        ibv_get_async_event(bed->rig.ctx, &event)) {
        outcome(bed, "no event");
        return;
    }
    outcome(bed, "event %s", event_name(event.event_type));
    ibv_ack_async_event(&event);
}

static bool print_error(const char *what, int error)
{
    fprintf(stderr, "%s: %s\n", what, strerror(error));
    return false;
}

struct ibv_qp_init_attr bed_qp_init(struct bed *bed, enum side side)
{
    return (struct ibv_qp_init_attr){
        .send_cq = bed->cq[side],
        .recv_cq = bed->cq[side],
        .srq = side == RESPONDER ? bed->srq : NULL,
        .qp_type = bed->type,
        .cap = { .max_send_wr = BED_DEPTH,
                 .max_recv_wr = BED_DEPTH,
                 .max_send_sge = BED_SEGMENTS,
                 .max_recv_sge = BED_SEGMENTS,
                 .max_inline_data = BED_INLINE },
    };
}

static bool open_srq(struct bed *bed)
{
    struct ibv_srq_init_attr init = { .attr = { .max_wr = BED_DEPTH, .max_sge = BED_SEGMENTS } };

    bed->srq = ibv_create_srq(bed->rig.pd, &init);
    return bed->srq || print_error("ibv_create_srq", errno);
}

bool bed_open(struct bed *bed, enum ibv_qp_type type, bool with_srq)
{
    int error;

    memset(bed, 0, sizeof(*bed));
    bed->type = type;
    bed->timing = usual;
    error = rig_open(&bed->rig);
    if (error)
        return print_error("cannot open the device", error);
    error = ibv_query_device(bed->rig.ctx, &bed->limits);
    if (error)
        return print_error("ibv_query_device", error);
    bed->memory = aligned_alloc(BED_BYTES, BED_BYTES);
    bed->mr = bed->memory ? ibv_reg_mr(bed->rig.pd, bed->memory, BED_BYTES, RIG_ACCESS_ALL) : NULL;
    if (!bed->mr)
        return print_error("ibv_reg_mr", errno);
    memset(bed->memory, 0x5a, BED_BYTES);
    if (with_srq && !open_srq(bed))
        return false;
    for (enum side side = REQUESTER; side <= RESPONDER; side++) {
        struct ibv_qp_init_attr init;

        bed->cq[side] = ibv_create_cq(bed->rig.ctx, 4 * BED_DEPTH, NULL, NULL, 0);
        if (!bed->cq[side])
            return print_error("ibv_create_cq", errno);
        init = bed_qp_init(bed, side);
        bed->qp[side] = ibv_create_qp(bed->rig.pd, &init);
        if (!bed->qp[side])
            return print_error("ibv_create_qp", errno);
    }
    return true;
}

void bed_close(struct bed *bed)
{
    if (bed->ah)
        ibv_destroy_ah(bed->ah);
    for (enum side side = REQUESTER; side <= RESPONDER; side++) {
        if (bed->qp[side])
            ibv_destroy_qp(bed->qp[side]);
        if (bed->cq[side])
            ibv_destroy_cq(bed->cq[side]);
    }
    if (bed->srq)
        ibv_destroy_srq(bed->srq);
    if (bed->mr)
        ibv_dereg_mr(bed->mr);
    free(bed->memory);
    if (bed->rig.pd)
        rig_close(&bed->rig);
}

static int step_to_rtr(struct bed *bed, enum side side, struct ibv_qp_attr *attr)
{
    struct rig_addr remote;

    if (bed->type == IBV_QPT_UD)
        return 0;
    rig_addr_of(&bed->rig, bed->qp[!side], PSN, &remote);
    rig_fill_ah(&remote, &attr->ah_attr);
    attr->path_mtu = remote.mtu;
    attr->dest_qp_num = remote.qpn;
    attr->rq_psn = PSN;
    if (bed->type == IBV_QPT_UC)
        return IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    attr->max_dest_rd_atomic = 4;
    attr->min_rnr_timer = bed->timing.min_rnr_timer;
    return IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
}

static int step_to_rts(struct bed *bed, enum side side, struct ibv_qp_attr *attr)
{
    if (rig_qp_state(bed->qp[side]) == IBV_QPS_SQD)
        return 0;
    attr->sq_psn = PSN;
    if (bed->type != IBV_QPT_RC)
        return IBV_QP_SQ_PSN;
    attr->timeout = bed->timing.timeout;
    attr->retry_cnt = bed->timing.retry_cnt;
    attr->rnr_retry = bed->timing.rnr_retry;
    attr->max_rd_atomic = 4;
    return IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
           IBV_QP_MAX_QP_RD_ATOMIC;
}

static int step_to_init(struct bed *bed, struct ibv_qp_attr *attr)
{
    attr->port_num = 1;
    if (bed->type == IBV_QPT_UD) {
        attr->qkey = RIG_QKEY;
        return IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;
    }
    attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    if (bed->type == IBV_QPT_RC)
        attr->qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    return IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
}

int bed_step(struct bed *bed, enum side side, enum ibv_qp_state to, struct ibv_qp_attr *attr)
{
    memset(attr, 0, sizeof(*attr));
    attr->qp_state = to;
    switch (to) {
    case IBV_QPS_INIT:
        return IBV_QP_STATE | step_to_init(bed, attr);
    case IBV_QPS_RTR:
        return IBV_QP_STATE | step_to_rtr(bed, side, attr);
    case IBV_QPS_RTS:
        return IBV_QP_STATE | step_to_rts(bed, side, attr);
    default:
        return IBV_QP_STATE;
    }
}

/* The transition to RTS may have failed before. */
static void wait_until_drained(struct ibv_qp *qp)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;

    for (int i = 0; i < PATIENCE_MS; i++) {
        if (ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) || !attr.sq_draining)
            return;
        usleep(1000);
    }
}

bool bed_walk(struct bed *bed, enum side side, enum ibv_qp_state to)
{
    enum ibv_qp_state state = rig_qp_state(bed->qp[side]);

    while (state != to) {
        enum ibv_qp_state next = to == IBV_QPS_ERR && state != IBV_QPS_RESET ? to : state + 1;
        struct ibv_qp_attr attr;
        int mask = bed_step(bed, side, next, &attr);
        int error = ibv_modify_qp(bed->qp[side], &attr, mask);

        if (error) {
            outcome(bed, "%s does not get from %s to %s", side_names[side], state_name(state),
                    state_name(next));
            return false;
        }
        state = next;
        if (state == IBV_QPS_SQD)
            wait_until_drained(bed->qp[side]);
    }
    return true;
}

bool bed_connect(struct bed *bed)
{
    struct rig_addr remote;
    struct ibv_ah_attr path;

    if (!bed_walk(bed, RESPONDER, IBV_QPS_RTS) || !bed_walk(bed, REQUESTER, IBV_QPS_RTS))
        return false;
    if (bed->type != IBV_QPT_UD)
        return true;
    rig_addr_of(&bed->rig, bed->qp[RESPONDER], PSN, &remote);
    rig_fill_ah(&remote, &path);
    bed->ah = ibv_create_ah(bed->rig.pd, &path);
    if (!bed->ah)
        outcome(bed, "there is no way to the responder");
    return bed->ah;
}

void bed_request(struct bed *bed, enum ibv_wr_opcode opcode, struct request *out)
{
    uint64_t target = (uintptr_t)bed->memory + HALF;

    *out = (struct request){
        .sge = { (uintptr_t)bed->memory, 8, bed->mr->lkey },
        .wr = { .wr_id = 1, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED },
    };
    if (bed->type == IBV_QPT_UD) {
        out->wr.wr.ud.ah = bed->ah;
        out->wr.wr.ud.remote_qpn = bed->qp[RESPONDER]->qp_num;
        out->wr.wr.ud.remote_qkey = RIG_QKEY;
    } else if (opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        out->wr.wr.atomic.remote_addr = target;
        out->wr.wr.atomic.rkey = bed->mr->rkey;
        out->wr.wr.atomic.compare_add = 1;
    } else {
        out->wr.wr.rdma.remote_addr = target;
        out->wr.wr.rdma.rkey = bed->mr->rkey;
    }
}

int bed_post(struct bed *bed, struct request *request)
{
    struct ibv_send_wr *bad;

    request->wr.sg_list = &request->sge;
    return ibv_post_send(bed->qp[REQUESTER], &request->wr, &bad);
}

int bed_receive(struct bed *bed, uint64_t wr_id, uint32_t length, uint32_t lkey)
{
    struct ibv_sge sge = { (uintptr_t)bed->memory + HALF, length, lkey };
    struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

    return bed->srq ? ibv_post_srq_recv(bed->srq, &wr, &bad)
                    : ibv_post_recv(bed->qp[RESPONDER], &wr, &bad);
}

void run_cases(const char *group, const struct bed_case *cases, size_t count, case_sink sink)
{
    for (size_t i = 0; i < count; i++) {
        struct bed bed;

        if (bed_open(&bed, cases[i].type, false) && bed_connect(&bed))
            cases[i].run(&bed);
        sink(group, cases[i].name, bed.text);
        bed_close(&bed);
    }
}
