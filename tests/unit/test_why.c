/* SPDX-License-Identifier: BSD-2-Clause */
/* Why a work request fails, in words: each cause has its own. */

#include "fabric.h"

#include "hca/addr.h"
#include "hca/mr.h"
#include "hca/proc.h"
#include "hca/qp.h"
#include "util/log.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PD = 7, LENGTH = 100 };

static char bytes[LENGTH], text[160];
static uint64_t start;

static int join_fabric(void **state)
{
    fabric_open();
    start = (uintptr_t)bytes;
    return 0;
}

static void expect(const char *format, ...)
{
    char wanted[sizeof(text)];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(wanted, sizeof(wanted), format, arguments);
    va_end(arguments);
    assert_string_equal(text, wanted);
}

static void a_local_key_is_refused_for_a_reason(void **state)
{
    uint32_t key;
    struct shared_mr *mr = mr_create(PD, MR_USER, start, start, LENGTH, 0, &key);

#define WHY(lkey, pd, at, length, write)                                                           \
    mr_why_local(lkey, pd, start + (at), length, write, text, sizeof(text))
    WHY(0, PD, 0, 1, false);
    expect("no region of this process has this lkey");
    WHY(key + 1, PD, 0, 1, false);
    expect("no region of this process has this lkey");
    WHY(key, PD + 1, 0, 1, false);
    expect("the region belongs to PD 7, the QP to PD 8");
    WHY(key, PD, 0, LENGTH + 3, false);
    expect("the region ends at 0x%llx, 3 bytes before the end of the access",
           (unsigned long long)start + LENGTH);
    WHY(key, PD, LENGTH - 1, 2, false);
    expect("the region ends at 0x%llx, 1 bytes before the end of the access",
           (unsigned long long)start + LENGTH);
    WHY(key, PD, LENGTH, 1, false);
    expect("the region is 0x%llx to 0x%llx", (unsigned long long)start,
           (unsigned long long)start + LENGTH);
    WHY(key, PD, -1, 1, false);
    expect("the region is 0x%llx to 0x%llx", (unsigned long long)start,
           (unsigned long long)start + LENGTH);
    WHY(key, PD, 0, LENGTH, true);
    expect("the access needs LOCAL_WRITE, the region allows local reading only");
    WHY(key, PD, 0, LENGTH, false);
    expect("the key has become valid since");
    mr->kind = MW_TYPE_1;
    WHY(key, PD, 0, 1, false);
    expect("the key is that of a memory window, which has no lkey");
    mr->kind = MR_USER;
    mr_destroy(mr);
    WHY(key, PD, 0, 1, false);
    expect("no region of this process has this lkey");
#undef WHY
}

static void a_remote_key_is_refused_for_a_reason(void **state)
{
    unsigned rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
    uint32_t key;
    struct shared_mr *mr = mr_create(PD, MR_USER, start, start, LENGTH, rights, &key);

#define WHY(rkey, proc, qpn, access)                                                               \
    mr_why_remote(rkey, proc, PD, qpn, start, LENGTH, access, text, sizeof(text))
    WHY(key + 1, proc_self, 5, IBV_ACCESS_REMOTE_READ);
    expect("no region of the responder has this rkey");
    WHY(key, proc_self + 1, 5, IBV_ACCESS_REMOTE_READ);
    expect("the key belongs to process %d, the QP to process %d", (int)getpid(),
           proc_slot(proc_self + 1)->pid);
    WHY(key, proc_self, 5, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND);
    expect("the access needs REMOTE_READ, MW_BIND, the region allows LOCAL_WRITE, REMOTE_WRITE, "
           "REMOTE_ATOMIC");
    WHY(key, proc_self, 5, IBV_ACCESS_REMOTE_WRITE);
    expect("the key has become valid since");
    mr_published(mr)->kind = MW_TYPE_2;
    mr_published(mr)->bound_qpn = 6;
    WHY(key, proc_self, 5, IBV_ACCESS_REMOTE_WRITE);
    expect("the memory window is bound to QP 0x6");
    WHY(key, proc_self, 6, IBV_ACCESS_REMOTE_WRITE);
    expect("the key has become valid since");
    mr_published(mr)->kind = MR_USER;
    mr_destroy(mr);
#undef WHY
}

static void silence_has_a_reason(void **state)
{
    struct ibv_context *context = fabric_open();
    struct ibv_pd *pd = ibv_alloc_pd(context);
    struct ibv_cq *cq = ibv_create_cq(context, 4, NULL, NULL, 0);
    struct ibv_qp *a = fabric_rc_qp(pd, cq, 1), *b = fabric_rc_qp(pd, cq, 1);
    struct hca_qp *qp = (struct hca_qp *)a, *peer = (struct hca_qp *)b;
    uint16_t lid;

    fabric_connect(a, b);
    lid = qp->dest_lid;
#define SILENCE() qp_explain_silence(qp, text, sizeof(text))
    SILENCE();
    expect("QP 0x%x did not answer, its state is %u", b->qp_num, IBV_QPS_RTS);
    store_relaxed(&peer->shared->dest_qpn, 0x77);
    SILENCE();
    expect("QP 0x%x is connected to QP 0x77", b->qp_num);
    store_relaxed(&peer->shared->dest_qpn, a->qp_num);
    qp->attr.dest_qp_num = b->qp_num ^ 1u << 23;
    SILENCE();
    expect("no QP 0x%x at LID 0x%x", b->qp_num ^ 1u << 23, lid);
    qp->attr.dest_qp_num = b->qp_num;
    qp->dest_lid = lid + 1;
    SILENCE();
    expect("no QP 0x%x at LID 0x%x", b->qp_num, lid + 1);
    qp->dest_lid = 0;
    SILENCE();
    expect("LID 0x%x is no port of fabric 'unit-%d'", lid, (int)getpid());
    qp->dest_lid = lid;
    SILENCE();
    expect("QP 0x%x did not answer, its state is %u", b->qp_num, IBV_QPS_RTS);
#undef SILENCE
    assert_int_equal(ibv_destroy_qp(a), 0);
    assert_int_equal(ibv_destroy_qp(b), 0);
    assert_int_equal(ibv_destroy_cq(cq), 0);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
}

static void every_status_and_opcode_has_words(void **state)
{
    static const enum ibv_wc_status known[] = { IBV_WC_LOC_LEN_ERR,     IBV_WC_LOC_PROT_ERR,
                                                IBV_WC_REM_ACCESS_ERR,  IBV_WC_REM_INV_REQ_ERR,
                                                IBV_WC_REM_OP_ERR,      IBV_WC_RNR_RETRY_EXC_ERR,
                                                IBV_WC_MW_BIND_ERR,     IBV_WC_FATAL_ERR };

    for (unsigned i = 0; i < sizeof(known) / sizeof(*known); i++)
        for (unsigned k = 0; k < i; k++)
            assert_string_not_equal(qp_status_cause(known[i]), qp_status_cause(known[k]));
    assert_string_equal(qp_opcode_name(IBV_WR_RDMA_WRITE), "RDMA write");
    assert_string_equal(qp_opcode_name(IBV_WR_ATOMIC_FETCH_AND_ADD), "fetch and add");
    assert_string_equal(qp_opcode_name(IBV_WR_ATOMIC_WRITE), "atomic write");
    assert_string_equal(qp_opcode_name(IBV_WR_ATOMIC_WRITE + 1), "unknown");
    assert_string_equal(qp_opcode_name(255), "unknown");
}

/* ---- the log ---- */

static const char *logged(void (*body)(void *), void *argument)
{
    fabric_log_begin();
    body(argument);
    return fabric_log_end();
}

struct failure {
    const struct hca_qp *qp;
    enum ibv_wc_status status;
};

static void log_send_failure(void *argument)
{
    struct failure *failure = argument;
    struct send_wqe wqe = { .wr_id = 0xabc, .opcode = IBV_WR_RDMA_READ };

    qp_log_send(failure->qp, &wqe, failure->status);
}

static void log_receive_failure(void *argument)
{
    struct failure *failure = argument;

    qp_log_receive(0x123, 0xdef, failure->status);
}

static void log_events(void *argument)
{
    qp_log_responder(((struct failure *)argument)->qp);
}

/* Flushed requests follow from the first failure, and would hide it. */
static void failures_are_logged_at_level_info(void **state)
{
    struct ibv_context *context = fabric_open();
    struct ibv_pd *pd = ibv_alloc_pd(context);
    struct ibv_cq *cq = ibv_create_cq(context, 4, NULL, NULL, 0);
    struct ibv_qp *qp = fabric_rc_qp(pd, cq, 1);
    struct failure failure = { (struct hca_qp *)qp, IBV_WC_REM_ACCESS_ERR };
    struct shared_qp *shared = ((struct hca_qp *)qp)->shared;
    enum log_level level = log_level;

    log_level = LOG_LEVEL_WARN;
    assert_string_equal(logged(log_send_failure, &failure), "");
    assert_string_equal(logged(log_receive_failure, &failure), "");
    log_level = LOG_LEVEL_INFO;
    const char *said = logged(log_send_failure, &failure);
    assert_non_null(strstr(said, "work request 0xabc (RDMA read) failed with remote access error: "
                                 "the remote key does not grant this access to these bytes"));
    said = logged(log_receive_failure, &failure);
    assert_non_null(strstr(said, "QP 0x123: receive 0xdef failed with remote access error: "));
    failure.status = IBV_WC_RETRY_EXC_ERR;
    said = logged(log_send_failure, &failure);
    assert_non_null(strstr(said, "is no port of fabric"));
    static const enum ibv_wc_status quiet[] = { IBV_WC_WR_FLUSH_ERR, IBV_WC_SUCCESS };
    for (int i = 0; i < 2; i++) {
        failure.status = quiet[i];
        assert_string_equal(logged(log_send_failure, &failure), "");
        assert_string_equal(logged(log_receive_failure, &failure), "");
    }
    assert_string_equal(logged(log_events, &failure), "");
    static const struct {
        enum ibv_event_type event;
        const char *text;
    } events[] = {
        { IBV_EVENT_QP_FATAL, "its CQ has overrun" },
        { IBV_EVENT_QP_REQ_ERR, "its access flags do not allow the peer's request" },
        { IBV_EVENT_QP_ACCESS_ERR, "the peer's remote key does not allow the access" },
    };
    for (int i = 0; i < 3; i++) {
        store_relaxed(&shared->events.bits, 1u << events[i].event);
        assert_non_null(strstr(logged(log_events, &failure), events[i].text));
    }
    store_relaxed(&shared->events.bits, 0);
    log_level = level;
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_cq(cq), 0);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_local_key_is_refused_for_a_reason),
        cmocka_unit_test(a_remote_key_is_refused_for_a_reason),
        cmocka_unit_test(silence_has_a_reason),
        cmocka_unit_test(every_status_and_opcode_has_words),
        cmocka_unit_test(failures_are_logged_at_level_info),
    };

    return cmocka_run_group_tests_name("why", tests, join_fabric, NULL);
}
