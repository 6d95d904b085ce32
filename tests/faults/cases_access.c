/* SPDX-License-Identifier: BSD-2-Clause */
/* Keys, bounds, protection domains, access flags, lengths. */
#include "side.h"

#include <errno.h>
#include <string.h>

static void expect_refused(bool remote, const struct side_config *config,
                           const struct request *request, enum ibv_wc_status expected)
{
    struct pair pair;
    uint8_t before[64], after[64];
    struct request aimed = *request;

    pair_open(&pair, remote, config, &rig_patient);
    far_fill(&pair.b, 0x77);
    memset(pair.a.buf, 0x11, 4096);
    memset(before, 0x77, sizeof(before));
    aimed.remote_addr += pair.at.buf;
    aimed.rkey = request->rkey == UINT32_MAX ? pair.at.other_rkey : pair.at.rkey ^ request->rkey;
    aimed.wr_id = 42;
    CHECK_STATUS(pair_do(&pair, &aimed), expected);
    CHECK_INT(rig_qp_state(pair.a.qp), IBV_QPS_ERR);
    CHECK_INT(far_state(&pair.b), IBV_QPS_ERR);
    CHECK_INT(far_async(&pair.b, 2000), IBV_EVENT_QP_ACCESS_ERR);
    far_read(&pair.b, 0, after, sizeof(after));
    CHECK(!memcmp(before, after, sizeof(before)), "a refused request changed the memory");
    pair_close(&pair);
}

static void wrong_rkey(bool remote)
{
    struct request request = { .opcode = IBV_WR_RDMA_WRITE, .len = 8, .rkey = 0x5a5a00 };

    expect_refused(remote, &side_usual, &request, IBV_WC_REM_ACCESS_ERR);
    request.opcode = IBV_WR_RDMA_READ;
    expect_refused(remote, &side_usual, &request, IBV_WC_REM_ACCESS_ERR);
    request.rkey = 1;
    expect_refused(remote, &side_usual, &request, IBV_WC_REM_ACCESS_ERR);
}

static void out_of_bounds(bool remote)
{
    const uint64_t offsets[] = { side_usual.bytes - 7, side_usual.bytes, -1ull, 1ull << 40,
                                 (1ull << 63) };

    for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
        struct request request = { .opcode = IBV_WR_RDMA_WRITE,
                                   .len = 8,
                                   .remote_addr = offsets[i] };
        expect_refused(remote, &side_usual, &request, IBV_WC_REM_ACCESS_ERR);
        request.opcode = IBV_WR_RDMA_READ;
        expect_refused(remote, &side_usual, &request, IBV_WC_REM_ACCESS_ERR);
    }
}

static void wrong_pd(bool remote)
{
    struct request request = { .opcode = IBV_WR_RDMA_WRITE, .len = 8, .rkey = UINT32_MAX };

    expect_refused(remote, &side_usual, &request, IBV_WC_REM_ACCESS_ERR);
}

struct right {
    enum ibv_wr_opcode opcode;
    int needed;
};

static const struct right rights[] = {
    { IBV_WR_RDMA_WRITE, IBV_ACCESS_REMOTE_WRITE },
    { IBV_WR_RDMA_READ, IBV_ACCESS_REMOTE_READ },
    { IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_ACCESS_REMOTE_ATOMIC },
    { IBV_WR_ATOMIC_CMP_AND_SWP, IBV_ACCESS_REMOTE_ATOMIC },
};

static void mr_without_right(bool remote)
{
    for (size_t i = 0; i < sizeof(rights) / sizeof(rights[0]); i++) {
        struct side_config config = side_usual;
        struct request request = { .opcode = rights[i].opcode, .len = 8, .compare_add = 1 };
        config.mr_access &= ~rights[i].needed;
        expect_refused(remote, &config, &request, IBV_WC_REM_ACCESS_ERR);
    }
}

/* The QP's access flags: by the specification an invalid request, not an access violation. */
static void qp_without_right(bool remote)
{
    for (size_t i = 0; i < sizeof(rights) / sizeof(rights[0]); i++) {
        struct side_config config = side_usual;
        struct request request = { .opcode = rights[i].opcode, .len = 8, .compare_add = 1 };
        struct pair pair;
        config.qp_access &= ~rights[i].needed;
        pair_open(&pair, remote, &config, &rig_patient);
        request.remote_addr = pair.at.buf;
        request.rkey = pair.at.rkey;
        enum ibv_wc_status status = pair_do(&pair, &request);
        CHECK(status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_REM_INV_REQ_ERR,
              "opcode %d without the right gave '%s'", rights[i].opcode, ibv_wc_status_str(status));
        CHECK_INT(rig_qp_state(pair.a.qp), IBV_QPS_ERR);
        pair_close(&pair);
    }
}

static void misaligned_atomic(bool remote)
{
    struct pair pair;
    struct request request = { .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .len = 8, .compare_add = 1 };

    pair_open(&pair, remote, &side_usual, &rig_patient);
    request.remote_addr = pair.at.buf + 4;
    request.rkey = pair.at.rkey;
    enum ibv_wc_status status = pair_do(&pair, &request);
    CHECK(status == IBV_WC_REM_INV_REQ_ERR || status == IBV_WC_REM_ACCESS_ERR,
          "a misaligned atomic gave '%s'", ibv_wc_status_str(status));
    pair_close(&pair);
}

/* The remote address is aligned, but not the memory it refers to. */
static void atomic_on_misaligned_memory(bool remote)
{
    struct pair pair;
    struct request request = { .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .len = 8, .compare_add = 1 };

    pair_open(&pair, false, &side_usual, &rig_patient);
    struct side *b = &pair.b.local;
    struct ibv_mr *mr =
        ibv_reg_mr_iova(b->rig.pd, b->buf + 4, 4096, 1 << 20, RIG_ACCESS_ALL);
    CHECK(mr, "ibv_reg_mr_iova: %s", strerror(errno));
    request.remote_addr = 1 << 20;
    request.rkey = mr->rkey;
    CHECK_STATUS(pair_do(&pair, &request), IBV_WC_REM_INV_REQ_ERR);
    CHECK_INT(ibv_dereg_mr(mr), 0);
    pair_close(&pair);
}

static void local_key(bool remote)
{
    const struct request wrong[] = {
        { .opcode = IBV_WR_SEND, .len = 64, .lkey = 0x123456 },
        { .opcode = IBV_WR_SEND, .len = 64, .local_offset = side_usual.bytes - 32 },
        { .opcode = IBV_WR_RDMA_WRITE, .len = 64, .lkey = 0xffffffff },
        { .opcode = IBV_WR_RDMA_READ, .len = 64, .local_offset = side_usual.bytes },
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct pair pair;
        struct request request = wrong[i];
        struct ibv_wc wc;
        pair_open(&pair, remote, &side_usual, &rig_patient);
        CHECK_INT(far_post_recv(&pair.b, 1, 0, 4096), 0);
        request.remote_addr = pair.at.buf;
        request.rkey = pair.at.rkey;
        CHECK_STATUS(pair_do(&pair, &request), IBV_WC_LOC_PROT_ERR);
        CHECK_INT(rig_qp_state(pair.a.qp), IBV_QPS_ERR);
        CHECK(far_poll_recv(&pair.b, &wc, 20) == 0, "the far end noticed a local fault");
        pair_close(&pair);
    }
}

static void local_key_of_other_pd(bool remote)
{
    struct pair pair;
    struct request request = { .opcode = IBV_WR_SEND, .len = 64 };

    pair_open(&pair, remote, &side_usual, &rig_patient);
    CHECK_INT(far_post_recv(&pair.b, 1, 0, 4096), 0);
    request.lkey = pair.a.other_mr->lkey;
    CHECK_STATUS(pair_do(&pair, &request), IBV_WC_LOC_PROT_ERR);
    pair_close(&pair);
}

static void read_into_read_only(bool remote)
{
    struct side_config config = side_usual;
    struct request request = { .opcode = IBV_WR_RDMA_READ, .len = 64 };
    struct pair pair;

    config.mr_access = IBV_ACCESS_REMOTE_READ;
    pair_open(&pair, remote, &config, &rig_patient);
    request.remote_addr = pair.at.buf;
    request.rkey = pair.at.rkey;
    CHECK_STATUS(pair_do(&pair, &request), IBV_WC_LOC_PROT_ERR);
    pair_close(&pair);
}

static void receive_with_wrong_key(bool remote)
{
    struct pair pair;
    struct request request = { .opcode = IBV_WR_SEND, .len = 64 };
    struct ibv_wc wc;

    pair_open(&pair, remote, &side_usual, &rig_patient);
    CHECK_INT(far_post_recv_key(&pair.b, 9, 0, 4096, 0x123456), 0);
    CHECK_STATUS(pair_do(&pair, &request), IBV_WC_REM_OP_ERR);
    CHECK_INT(far_poll_recv(&pair.b, &wc, 2000), 1);
    CHECK_STATUS(wc.status, IBV_WC_LOC_PROT_ERR);
    CHECK_INT(wc.wr_id, 9);
    pair_close(&pair);
}

static void small_receive_of(bool remote, uint32_t posted, uint32_t sent)
{
    struct pair pair;
    struct request request = { .opcode = IBV_WR_SEND, .len = sent };
    struct ibv_wc wc;
    uint8_t after[4];

    pair_open(&pair, remote, &side_usual, &rig_patient);
    far_fill(&pair.b, 0x77);
    CHECK_INT(far_post_recv(&pair.b, 5, 0, posted), 0);
    CHECK_STATUS(pair_do(&pair, &request), IBV_WC_REM_INV_REQ_ERR);
    CHECK_INT(far_poll_recv(&pair.b, &wc, 2000), 1);
    CHECK_STATUS(wc.status, IBV_WC_LOC_LEN_ERR);
    CHECK_INT(wc.wr_id, 5);
    CHECK_INT(rig_qp_state(pair.a.qp), IBV_QPS_ERR);
    CHECK_INT(far_state(&pair.b), IBV_QPS_ERR);
    far_read(&pair.b, posted, after, sizeof(after));
    CHECK(after[0] == 0x77 && after[3] == 0x77, "bytes were written beyond the receive");
    pair_close(&pair);
}

static void small_receive(bool remote)
{
    small_receive_of(remote, 16, 64);
    small_receive_of(remote, 63, 64);
    small_receive_of(remote, 4096, 5000);
    small_receive_of(remote, 65536, 400000);
}

/* A receive may be longer than its region if its messages are not. */
static void receive_past_region_of(bool remote, bool use_srq, uint32_t reach, uint32_t sent)
{
    struct side_config config = side_usual;
    struct pair pair;
    struct request request = { .opcode = IBV_WR_SEND, .len = sent };
    struct ibv_wc wc;
    uint8_t seen;

    config.use_srq = use_srq;
    pair_open(&pair, remote, &config, &rig_patient);
    memset(pair.a.buf, 0x5a, sent);
    uint64_t offset = config.bytes - reach;
    CHECK_INT(far_post_recv(&pair.b, 6, offset, 1 << 20), 0);
    CHECK_STATUS(pair_do(&pair, &request), sent > reach ? IBV_WC_REM_OP_ERR : IBV_WC_SUCCESS);
    CHECK_INT(far_poll_recv(&pair.b, &wc, 2000), 1);
    CHECK_STATUS(wc.status, sent > reach ? IBV_WC_LOC_PROT_ERR : IBV_WC_SUCCESS);
    CHECK_INT(wc.wr_id, 6);
    if (sent <= reach) {
        far_read(&pair.b, offset + sent - 1, &seen, 1);
        CHECK_INT(seen, 0x5a);
    }
    pair_close(&pair);
}

static void receive_past_region(bool remote)
{
    const uint32_t lengths[] = { 8, 80, 5000, 100000 };

    for (int i = 0; i < 4; i++)
        for (int use_srq = 0; use_srq < 2; use_srq++) {
            receive_past_region_of(remote, use_srq, lengths[i], lengths[i]);
            receive_past_region_of(remote, use_srq, lengths[i], lengths[i] + 1);
        }
}

static void deregistered(bool remote)
{
    struct pair pair;
    struct request request = { .opcode = IBV_WR_RDMA_WRITE, .len = 64 };

    pair_open(&pair, remote, &side_usual, &rig_patient);
    request.remote_addr = pair.at.buf;
    request.rkey = pair.at.rkey;
    CHECK_STATUS(pair_do(&pair, &request), IBV_WC_SUCCESS);
    CHECK_INT(far_dereg(&pair.b), 0);
    CHECK_STATUS(pair_do(&pair, &request), IBV_WC_REM_ACCESS_ERR);
    pair_close(&pair);
}

static void unmapped(bool remote, enum ibv_wr_opcode opcode)
{
    struct pair pair;
    struct request request = { .opcode = opcode, .len = 4096, .compare_add = 1 };

    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
        request.len = 8;
    if (opcode == IBV_WR_SEND)
        request.len = 65536; /* the receiver itself would copy a short one */
    pair_open(&pair, remote, &side_usual, &rig_patient);
    if (opcode == IBV_WR_SEND)
        CHECK_INT(far_post_recv(&pair.b, 1, 0, 65536), 0);
    CHECK_INT(far_unmap(&pair.b), 0);
    request.remote_addr = pair.at.buf;
    request.rkey = pair.at.rkey;
    enum ibv_wc_status status = pair_do(&pair, &request);
    if (opcode == IBV_WR_SEND) {
        struct ibv_wc wc;
        CHECK(status != NO_COMPLETION, "a send to unmapped memory never completed");
        CHECK_INT(far_poll_recv(&pair.b, &wc, 2000), 1);
        CHECK(wc.status != IBV_WC_SUCCESS, "a receive into unmapped memory succeeded");
    } else {
        CHECK(status == IBV_WC_REM_OP_ERR || status == IBV_WC_REM_ACCESS_ERR,
              "opcode %d on unmapped memory gave '%s'", opcode,
              status == NO_COMPLETION ? "nothing" : ibv_wc_status_str(status));
    }
    pair_close(&pair);
}

static void unmapped_target(bool remote)
{
    unmapped(remote, IBV_WR_RDMA_WRITE);
    unmapped(remote, IBV_WR_RDMA_READ);
    unmapped(remote, IBV_WR_ATOMIC_FETCH_AND_ADD);
    unmapped(remote, IBV_WR_SEND);
}

static void unmapped_source(bool remote)
{
    const uint32_t lengths[] = { 8, 4096, 65536 };

    for (int i = 0; i < 3; i++) {
        struct pair pair;
        struct request request = { .opcode = IBV_WR_RDMA_WRITE, .len = lengths[i] };
        pair_open(&pair, remote, &side_usual, &rig_patient);
        CHECK_INT(side_unmap(&pair.a), 0);
        request.remote_addr = pair.at.buf;
        request.rkey = pair.at.rkey;
        enum ibv_wc_status status = pair_do(&pair, &request);
        CHECK(status != IBV_WC_SUCCESS && status != NO_COMPLETION,
              "a write from unmapped memory gave '%s'",
              status == NO_COMPLETION ? "nothing" : "success");
        pair_close(&pair);
    }
}

static void window_rules(bool remote)
{
    struct side_config config = side_usual;
    struct pair pair;

    config.mr_access |= IBV_ACCESS_MW_BIND;
    pair_open(&pair, remote, &config, &rig_patient);
    struct ibv_mw *mw = ibv_alloc_mw(pair.a.rig.pd, IBV_MW_TYPE_1);
    CHECK(mw, "ibv_alloc_mw: %s", strerror(errno));
    struct ibv_mw_bind bind = {
        .wr_id = 3,
        .send_flags = IBV_SEND_SIGNALED,
        .bind_info = { .mr = pair.a.mr,
                       .addr = (uintptr_t)pair.a.buf,
                       .length = 4096,
                       .mw_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ },
    };
    struct ibv_wc wc;
    CHECK_INT(ibv_bind_mw(pair.a.qp, mw, &bind), 0);
    CHECK_INT(rig_poll(pair.a.send_cq, &wc, 2000), 1);
    CHECK_STATUS(wc.status, IBV_WC_SUCCESS);
    CHECK_INT(wc.opcode, IBV_WC_BIND_MW);
    CHECK_INT(ibv_dereg_mr(pair.a.mr), EBUSY);
    CHECK_INT(ibv_dealloc_mw(mw), 0);
    pair_close(&pair);
}

const struct fault_case access_cases[] = {
    { "wrong-rkey", wrong_rkey, BOTH_WAYS },
    { "out-of-bounds", out_of_bounds, BOTH_WAYS },
    { "wrong-pd", wrong_pd, BOTH_WAYS },
    { "mr-without-right", mr_without_right, BOTH_WAYS },
    { "qp-without-right", qp_without_right, BOTH_WAYS },
    { "misaligned-atomic", misaligned_atomic, BOTH_WAYS },
    { "atomic-on-misaligned-memory", atomic_on_misaligned_memory, LOCAL_ONLY },
    { "local-key", local_key, BOTH_WAYS },
    { "local-key-of-other-pd", local_key_of_other_pd, BOTH_WAYS },
    { "read-into-read-only", read_into_read_only, BOTH_WAYS },
    { "receive-with-wrong-key", receive_with_wrong_key, BOTH_WAYS },
    { "small-receive", small_receive, BOTH_WAYS },
    { "receive-past-region", receive_past_region, BOTH_WAYS },
    { "deregistered", deregistered, BOTH_WAYS },
    { "unmapped-target", unmapped_target, BOTH_WAYS },
    { "unmapped-source", unmapped_source, BOTH_WAYS },
    { "window-rules", window_rules, BOTH_WAYS },
    { 0 },
};
