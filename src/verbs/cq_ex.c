/* SPDX-License-Identifier: BSD-2-Clause */
/* The extended interface to a completion queue: one entry at a time, read field by field. */

#include "verbs/verbs.h"

#include "check/check.h"
#include "hca/cq.h"

static int take_one(struct hca_cq *cq)
{
    int n =
        unlikely(check_sanitizes)
            ? verbs_poll_checked(cq, 1, &cq->current, &cq->current_timestamp, "ibv_start_poll()")
            : verbs_poll(cq, 1, &cq->current, &cq->current_timestamp);

    if (n <= 0)
        return n < 0 ? -n : ENOENT;
    cq->ex.status = cq->current.status;
    cq->ex.wr_id = cq->current.wr_id;
    return 0;
}

static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
    return attr->comp_mask ? EINVAL : take_one((struct hca_cq *)ex);
}

static int next_poll(struct ibv_cq_ex *ex)
{
    return take_one((struct hca_cq *)ex);
}

static void end_poll(struct ibv_cq_ex *ex)
{
}

#define CURRENT(ex) (((struct hca_cq *)(ex))->current)

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ex)
{
    return CURRENT(ex).opcode;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *ex)
{
    return CURRENT(ex).vendor_err;
}

static uint32_t read_byte_len(struct ibv_cq_ex *ex)
{
    return CURRENT(ex).byte_len;
}

static __be32 read_imm_data(struct ibv_cq_ex *ex)
{
    return CURRENT(ex).imm_data;
}

static uint32_t read_qp_num(struct ibv_cq_ex *ex)
{
    return CURRENT(ex).qp_num;
}

static uint32_t read_src_qp(struct ibv_cq_ex *ex)
{
    return CURRENT(ex).src_qp;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *ex)
{
    return CURRENT(ex).wc_flags;
}

static uint32_t read_slid(struct ibv_cq_ex *ex)
{
    return CURRENT(ex).slid;
}

static uint8_t read_sl(struct ibv_cq_ex *ex)
{
    return CURRENT(ex).sl;
}

static uint8_t read_dlid_path_bits(struct ibv_cq_ex *ex)
{
    return CURRENT(ex).dlid_path_bits;
}

static uint64_t read_completion_ts(struct ibv_cq_ex *ex)
{
    return ((struct hca_cq *)ex)->current_timestamp;
}

/* Timestamps are taken from the monotonic clock; the wall clock differs from it by an offset. */
static uint64_t read_wallclock(struct ibv_cq_ex *ex)
{
    struct timespec wall;
    uint64_t monotonic = now_ns();

    clock_gettime(CLOCK_REALTIME, &wall);
    return read_completion_ts(ex) + (wall.tv_sec * 1000000000ull + wall.tv_nsec - monotonic);
}

void verbs_fill_cq_ex(struct hca_cq *cq, uint64_t wc_flags)
{
    struct ibv_cq_ex *ex = &cq->ex;

    ex->start_poll = start_poll;
    ex->next_poll = next_poll;
    ex->end_poll = end_poll;
    ex->read_opcode = read_opcode;
    ex->read_vendor_err = read_vendor_err;
    ex->read_wc_flags = read_wc_flags;
    if (wc_flags & IBV_WC_EX_WITH_BYTE_LEN)
        ex->read_byte_len = read_byte_len;
    if (wc_flags & IBV_WC_EX_WITH_IMM)
        ex->read_imm_data = read_imm_data;
    if (wc_flags & IBV_WC_EX_WITH_QP_NUM)
        ex->read_qp_num = read_qp_num;
    if (wc_flags & IBV_WC_EX_WITH_SRC_QP)
        ex->read_src_qp = read_src_qp;
    if (wc_flags & IBV_WC_EX_WITH_SLID)
        ex->read_slid = read_slid;
    if (wc_flags & IBV_WC_EX_WITH_SL)
        ex->read_sl = read_sl;
    if (wc_flags & IBV_WC_EX_WITH_DLID_PATH_BITS)
        ex->read_dlid_path_bits = read_dlid_path_bits;
    if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
        ex->read_completion_ts = read_completion_ts;
    if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
        ex->read_completion_wallclock_ns = read_wallclock;
}
