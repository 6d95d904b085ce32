/* SPDX-License-Identifier: BSD-2-Clause */
/* What may be created, and what may be destroyed. */
#include "bed.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096

static void created(struct bed *bed, const void *object)
{
    outcome_call(bed, "", object ? 0 : errno);
}

static void try_qp(struct bed *bed, struct ibv_qp_init_attr *init)
{
    struct ibv_qp *qp = ibv_create_qp(bed->rig.pd, init);

    created(bed, qp);
    if (qp)
        ibv_destroy_qp(qp);
}

static void qp_too_deep(struct bed *bed)
{
    struct ibv_qp_init_attr init = bed_qp_init(bed, REQUESTER);

    init.cap.max_send_wr = bed->limits.max_qp_wr + 1;
    try_qp(bed, &init);
}

static void qp_too_wide(struct bed *bed)
{
    struct ibv_qp_init_attr init = bed_qp_init(bed, REQUESTER);

    init.cap.max_send_sge = bed->limits.max_sge + 1;
    try_qp(bed, &init);
}

static void qp_unknown_type(struct bed *bed)
{
    struct ibv_qp_init_attr init = bed_qp_init(bed, REQUESTER);

    init.qp_type = 77;
    try_qp(bed, &init);
}

static void qp_gets_what_it_asks(struct bed *bed)
{
    struct ibv_qp_init_attr init = bed_qp_init(bed, REQUESTER);
    struct ibv_qp *qp = ibv_create_qp(bed->rig.pd, &init);

    outcome(bed, "sends %s", init.cap.max_send_wr >= BED_DEPTH ? "enough" : "too few");
    outcome(bed, "receives %s", init.cap.max_recv_wr >= BED_DEPTH ? "enough" : "too few");
    outcome(bed, "inline %s", init.cap.max_inline_data >= BED_INLINE ? "enough" : "too few");
    outcome(bed, "%s", state_name(rig_qp_state(qp)));
    ibv_destroy_qp(qp);
}

static void try_cq(struct bed *bed, int entries, int vector)
{
    struct ibv_cq *cq = ibv_create_cq(bed->rig.ctx, entries, NULL, NULL, vector);

    created(bed, cq);
    if (cq)
        ibv_destroy_cq(cq);
}

static void cq_too_large(struct bed *bed)
{
    try_cq(bed, bed->limits.max_cqe + 1, 0);
}

static void cq_empty(struct bed *bed)
{
    try_cq(bed, 0, 0);
}

static void cq_negative(struct bed *bed)
{
    try_cq(bed, -1, 0);
}

static void cq_vector(struct bed *bed)
{
    try_cq(bed, 1, bed->rig.ctx->num_comp_vectors);
}

static void cq_shrinks(struct bed *bed)
{
    struct request request;
    struct ibv_wc wc;
    int error;

    for (int i = 0; i < 4; i++) {
        bed_request(bed, IBV_WR_RDMA_WRITE, &request);
        request.wr.send_flags = IBV_SEND_SIGNALED;
        bed_post(bed, &request);
    }
    /* The read completes after all earlier writes. */
    bed_request(bed, IBV_WR_RDMA_READ, &request);
    request.wr.send_flags = 0;
    bed_post(bed, &request);
    bed_request(bed, IBV_WR_SEND, &request);
    bed_receive(bed, 1, 8, bed->mr->lkey);
    bed_post(bed, &request);
    rig_poll(bed->cq[RESPONDER], &wc, 5000);
    error = ibv_resize_cq(bed->cq[REQUESTER], 2);
    outcome_call(bed, "", error);
}

static void try_srq(struct bed *bed, uint32_t max_wr, uint32_t max_sge)
{
    struct ibv_srq_init_attr init = { .attr = { .max_wr = max_wr, .max_sge = max_sge } };
    struct ibv_srq *srq = ibv_create_srq(bed->rig.pd, &init);

    created(bed, srq);
    if (srq)
        ibv_destroy_srq(srq);
}

static void srq_too_deep(struct bed *bed)
{
    try_srq(bed, bed->limits.max_srq_wr + 1, 1);
}

static void srq_too_wide(struct bed *bed)
{
    try_srq(bed, 1, bed->limits.max_srq_sge + 1);
}

static void try_mr(struct bed *bed, void *address, size_t length, int access)
{
    struct ibv_mr *mr = ibv_reg_mr(bed->rig.pd, address, length, access);

    created(bed, mr);
    if (mr)
        ibv_dereg_mr(mr);
}

static void mr_remote_only(struct bed *bed)
{
    try_mr(bed, bed->memory, PAGE, IBV_ACCESS_REMOTE_WRITE);
}

static void mr_atomic_only(struct bed *bed)
{
    try_mr(bed, bed->memory, PAGE, IBV_ACCESS_REMOTE_ATOMIC);
}

static void mr_unknown_right(struct bed *bed)
{
    try_mr(bed, bed->memory, PAGE, IBV_ACCESS_LOCAL_WRITE | 1 << 15);
}

static void mr_unmapped(struct bed *bed)
{
    void *hole = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    munmap(hole, PAGE);
    try_mr(bed, hole, PAGE, IBV_ACCESS_LOCAL_WRITE);
}

static void mr_read_only_memory(struct bed *bed)
{
    void *page = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    try_mr(bed, page, PAGE, IBV_ACCESS_LOCAL_WRITE);
    munmap(page, PAGE);
}

static void mr_empty(struct bed *bed)
{
    try_mr(bed, bed->memory, 0, IBV_ACCESS_LOCAL_WRITE);
}

static void mr_wraps(struct bed *bed)
{
    try_mr(bed, bed->memory, SIZE_MAX - PAGE, IBV_ACCESS_LOCAL_WRITE);
}

static void ah_wrong_port(struct bed *bed)
{
    struct rig_addr remote;
    struct ibv_ah_attr path;
    struct ibv_ah *ah;

    rig_addr_of(&bed->rig, bed->qp[RESPONDER], 0, &remote);
    rig_fill_ah(&remote, &path);
    path.port_num = bed->limits.phys_port_cnt + 1;
    ah = ibv_create_ah(bed->rig.pd, &path);
    created(bed, ah);
    if (ah)
        ibv_destroy_ah(ah);
}

static void attach_connected(struct bed *bed)
{
    union ibv_gid group = { .raw = { 0xff, 0x0e, [15] = 1 } };
    int error = ibv_attach_mcast(bed->qp[RESPONDER], &group, 0xc001);

    outcome_call(bed, "", error);
}

static void cq_busy(struct bed *bed)
{
    outcome_call(bed, "", ibv_destroy_cq(bed->cq[RESPONDER]));
}

static void pd_busy(struct bed *bed)
{
    outcome_call(bed, "", ibv_dealloc_pd(bed->rig.pd));
}

static void mr_busy(struct bed *bed)
{
    bed_receive(bed, 1, 8, bed->mr->lkey);
    outcome_call(bed, "", ibv_dereg_mr(bed->mr));
    bed->mr = NULL;
}

void run_limits(case_sink sink)
{
    static const struct bed_case cases[] = {
        { "a QP with deeper queues than the device's", IBV_QPT_RC, qp_too_deep },
        { "a QP with more segments than the device's", IBV_QPT_RC, qp_too_wide },
        { "a QP of an unknown type", IBV_QPT_RC, qp_unknown_type },
        { "a QP gets what it asks for", IBV_QPT_RC, qp_gets_what_it_asks },
        { "a CQ larger than the device's", IBV_QPT_RC, cq_too_large },
        { "a CQ of no entries", IBV_QPT_RC, cq_empty },
        { "a CQ of a negative number of entries", IBV_QPT_RC, cq_negative },
        { "a CQ with a vector the device has not", IBV_QPT_RC, cq_vector },
        { "a CQ made smaller than what is in it", IBV_QPT_RC, cq_shrinks },
        { "an SRQ deeper than the device's", IBV_QPT_RC, srq_too_deep },
        { "an SRQ with more segments than the device's", IBV_QPT_RC, srq_too_wide },
        { "a region: remote write without local write", IBV_QPT_RC, mr_remote_only },
        { "a region: atomics without local write", IBV_QPT_RC, mr_atomic_only },
        { "a region: a right that does not exist", IBV_QPT_RC, mr_unknown_right },
        { "a region of unmapped memory", IBV_QPT_RC, mr_unmapped },
        { "a region to be written, of read-only memory", IBV_QPT_RC, mr_read_only_memory },
        { "a region of no bytes", IBV_QPT_RC, mr_empty },
        { "a region that wraps around", IBV_QPT_RC, mr_wraps },
        { "an address handle with a port it has not", IBV_QPT_UD, ah_wrong_port },
        { "a multicast group joined by a connected QP", IBV_QPT_RC, attach_connected },
        { "a CQ destroyed while a QP uses it", IBV_QPT_RC, cq_busy },
        { "a PD deallocated while in use", IBV_QPT_RC, pd_busy },
        { "a region deregistered while a receive names it", IBV_QPT_RC, mr_busy },
    };

    run_cases("limits", cases, sizeof(cases) / sizeof(*cases), sink);
}
