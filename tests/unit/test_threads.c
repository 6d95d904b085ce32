/* SPDX-License-Identifier: BSD-2-Clause */
/* One process, many threads: what a thread sanitizer can judge. Traffic goes from queue pair to queue
 * pair of the process, through the same code as between processes. */

#include "fabric.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SENDERS  3
#define DEPTH    16
#define SLOT     32768
#define MESSAGES 400

/* A short one, one that does not fit into a completion, one that goes straight into the buffer. */
static const uint32_t lengths[] = { 16, 64, 500, 3000, 20000 };

static struct ibv_pd *pd;

static int join_fabric(void **state)
{
    pd = ibv_alloc_pd(fabric_open());
    return !pd;
}

/* ---- memory and requests ---- */

struct memory {
    char *bytes;
    struct ibv_mr *mr;
};

static bool memory_open(struct memory *m, size_t size)
{
    m->bytes = aligned_alloc(4096, size);
    m->mr = NULL;
    if (!m->bytes)
        return false;
    memset(m->bytes, 0, size);
    m->mr = ibv_reg_mr(pd, m->bytes, size, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                                               IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
    return m->mr;
}

static bool memory_close(struct memory *m)
{
    bool ok = !ibv_dereg_mr(m->mr);

    free(m->bytes);
    return ok;
}

static int post_recv(struct ibv_qp *qp, struct ibv_srq *srq, struct memory *m, uint64_t slot)
{
    struct ibv_sge sge = { (uintptr_t)m->bytes + slot * SLOT, SLOT, m->mr->lkey };
    struct ibv_recv_wr *bad, wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 };

    return srq ? ibv_post_srq_recv(srq, &wr, &bad) : ibv_post_recv(qp, &wr, &bad);
}

static int post(struct ibv_qp *qp, struct memory *from, enum ibv_wr_opcode opcode, uint32_t length,
                const struct memory *to)
{
    struct ibv_sge sge = { (uintptr_t)from->bytes, length, from->mr->lkey };
    struct ibv_send_wr *bad, wr = { .sg_list = &sge, .num_sge = 1, .opcode = opcode,
                                    .send_flags = IBV_SEND_SIGNALED };

    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = (uintptr_t)to->bytes;
        wr.wr.atomic.rkey = to->mr->rkey;
        wr.wr.atomic.compare_add = 1;
    } else if (to) {
        wr.wr.rdma.remote_addr = (uintptr_t)to->bytes;
        wr.wr.rdma.rkey = to->mr->rkey;
    }
    return ibv_post_send(qp, &wr, &bad);
}

static bool completes(struct ibv_cq *cq, enum ibv_wc_status *status)
{
    struct ibv_wc wc;
    int got;

    while (!(got = ibv_poll_cq(cq, 1, &wc)))
        ;
    *status = got > 0 ? wc.status : IBV_WC_GENERAL_ERR;
    return got > 0;
}

/* ---- traffic ---- */

struct flow {
    pthread_t thread;
    struct ibv_cq *send_cq;
    struct ibv_qp *from, *to;
    struct memory source, target, written;
};

/* All receives of all flows come out of one queue, which several threads poll. */
static struct traffic {
    struct ibv_cq *recv_cq;
    struct ibv_srq *srq;
    struct memory pool; /* of the SRQ */
    struct memory word; /* that all flows add to */
    struct flow flows[SENDERS];
    atomic_uint received;
} traffic;

static const char *send_all(struct flow *f)
{
    enum ibv_wc_status status;

    for (unsigned i = 0; i < MESSAGES; i++) {
        uint32_t length = lengths[i % (sizeof(lengths) / sizeof(lengths[0]))];
        if (post(f->from, &f->source, IBV_WR_SEND, length, NULL) ||
            !completes(f->send_cq, &status) || status)
            return "a send failed";
        if (i % 8 == 0 && (post(f->from, &f->source, IBV_WR_RDMA_WRITE, length, &f->written) ||
                           !completes(f->send_cq, &status) || status))
            return "a write failed";
        if (i % 8 == 1 && (post(f->from, &f->source, IBV_WR_ATOMIC_FETCH_AND_ADD, 8,
                                &traffic.word) ||
                           !completes(f->send_cq, &status) || status))
            return "an atomic failed";
    }
    return NULL;
}

static void *send_in_thread(void *flow)
{
    return (void *)send_all(flow);
}

static struct flow *flow_of(uint32_t qpn)
{
    for (unsigned i = 0; i < SENDERS; i++)
        if (traffic.flows[i].to->qp_num == qpn)
            return &traffic.flows[i];
    return NULL;
}

static void *receive_in_thread(void *unused)
{
    struct ibv_wc wc[4];

    while (atomic_load(&traffic.received) < SENDERS * MESSAGES) {
        int got = ibv_poll_cq(traffic.recv_cq, 4, wc);
        for (int i = 0; i < got; i++) {
            struct flow *f = flow_of(wc[i].qp_num);
            if (!f || wc[i].status)
                return "a receive failed";
            if (post_recv(f->to, traffic.srq, traffic.srq ? &traffic.pool : &f->target,
                          wc[i].wr_id))
                return "a receive could not be posted again";
            atomic_fetch_add(&traffic.received, 1);
        }
    }
    return NULL;
}

static struct ibv_qp *make_qp(struct ibv_cq *send_cq, struct ibv_cq *recv_cq, struct ibv_srq *srq)
{
    struct ibv_qp_init_attr init = {
        .send_cq = send_cq, .recv_cq = recv_cq, .srq = srq, .qp_type = IBV_QPT_RC,
        .cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1,
                 .max_recv_sge = 1 },
    };

    return ibv_create_qp(pd, &init);
}

static void open_flow(struct flow *f)
{
    unsigned first = traffic.srq ? (f - traffic.flows) * DEPTH : 0;

    f->send_cq = ibv_create_cq(pd->context, 64, NULL, NULL, 0);
    f->from = make_qp(f->send_cq, f->send_cq, NULL);
    f->to = make_qp(f->send_cq, traffic.recv_cq, traffic.srq);
    assert_true(f->from && f->to);
    fabric_connect(f->from, f->to);
    assert_true(memory_open(&f->source, SLOT) && memory_open(&f->target, DEPTH * SLOT) &&
                memory_open(&f->written, SLOT));
    for (unsigned i = 0; i < DEPTH; i++)
        assert_int_equal(post_recv(f->to, traffic.srq, traffic.srq ? &traffic.pool : &f->target,
                                   first + i), 0);
}

static void close_flow(struct flow *f)
{
    assert_int_equal(ibv_destroy_qp(f->from), 0);
    assert_int_equal(ibv_destroy_qp(f->to), 0);
    assert_int_equal(ibv_destroy_cq(f->send_cq), 0);
    assert_true(memory_close(&f->source) && memory_close(&f->target) && memory_close(&f->written));
}

static void run_traffic(bool with_srq)
{
    struct ibv_srq_init_attr init = { .attr = { .max_wr = SENDERS * DEPTH, .max_sge = 1 } };
    pthread_t receivers[2];
    void *complaint;

    memset(&traffic, 0, sizeof(traffic));
    traffic.recv_cq = ibv_create_cq(pd->context, 512, NULL, NULL, 0);
    if (with_srq) {
        traffic.srq = ibv_create_srq(pd, &init);
        assert_true(memory_open(&traffic.pool, SENDERS * DEPTH * SLOT));
    }
    assert_true(memory_open(&traffic.word, 4096));
    for (unsigned i = 0; i < SENDERS; i++)
        open_flow(&traffic.flows[i]);
    for (unsigned i = 0; i < 2; i++)
        pthread_create(&receivers[i], NULL, receive_in_thread, NULL);
    for (unsigned i = 0; i < SENDERS; i++)
        pthread_create(&traffic.flows[i].thread, NULL, send_in_thread, &traffic.flows[i]);
    for (unsigned i = 0; i < SENDERS; i++) {
        pthread_join(traffic.flows[i].thread, &complaint);
        assert_null(complaint);
    }
    for (unsigned i = 0; i < 2; i++) {
        pthread_join(receivers[i], &complaint);
        assert_null(complaint);
    }
    for (unsigned i = 0; i < SENDERS; i++)
        close_flow(&traffic.flows[i]);
    if (with_srq) {
        assert_int_equal(ibv_destroy_srq(traffic.srq), 0);
        assert_true(memory_close(&traffic.pool));
    }
    assert_int_equal(*(uint64_t *)traffic.word.bytes, SENDERS * MESSAGES / 8);
    assert_true(memory_close(&traffic.word));
    assert_int_equal(ibv_destroy_cq(traffic.recv_cq), 0);
}

static void threads_send_to_one_completion_queue(void **state)
{
    run_traffic(false);
}

static void threads_send_to_one_shared_receive_queue(void **state)
{
    run_traffic(true);
}

/* ---- objects that come and go, errors, sends that wait ---- */

/* The receive comes later than the send, or never: the QP goes to error instead. */
static const char *one_life(bool breaks)
{
    struct ibv_cq *cq = ibv_create_cq(pd->context, 64, NULL, NULL, 0);
    struct ibv_qp *a = fabric_rc_qp(pd, cq, DEPTH), *b = fabric_rc_qp(pd, cq, DEPTH);
    struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
    enum ibv_wc_status status;
    struct memory m;

    fabric_connect(a, b);
    if (!memory_open(&m, SLOT))
        return "no memory";
    if (post(a, &m, IBV_WR_SEND, 3000, NULL))
        return "posting failed";
    if (breaks ? ibv_modify_qp(a, &error, IBV_QP_STATE) : post_recv(b, NULL, &m, 0))
        return "the other side failed";
    for (int i = 0; i < (breaks ? 1 : 2); i++)
        if (!completes(cq, &status) || status != (breaks ? IBV_WC_WR_FLUSH_ERR : IBV_WC_SUCCESS))
            return "a wrong completion";
    if (ibv_destroy_qp(a) || ibv_destroy_qp(b) || ibv_destroy_cq(cq) || !memory_close(&m))
        return "destroying failed";
    return NULL;
}

static void *live_in_thread(void *unused)
{
    const char *complaint = NULL;

    for (int i = 0; i < 30 && !complaint; i++)
        complaint = one_life(i % 3 == 2);
    return (void *)complaint;
}

static void threads_make_and_destroy_objects(void **state)
{
    pthread_t threads[3];
    void *complaint;

    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, live_in_thread, NULL);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], &complaint);
        assert_null(complaint);
    }
}

/* ---- events ---- */

#define EVENTS 50

static struct ibv_comp_channel *channel;
static struct ibv_cq *armed_cq;

static void *wait_for_events(void *unused)
{
    struct ibv_cq *cq;
    struct ibv_wc wc;
    void *context;

    for (int got = 0; got < EVENTS;) {
        int n = ibv_poll_cq(armed_cq, 1, &wc);
        got += n > 0;
        if (n)
            continue;
        if (ibv_req_notify_cq(armed_cq, 0))
            return "arming failed";
        if (ibv_poll_cq(armed_cq, 1, &wc) > 0) {
            got++;
            continue;
        }
        if (ibv_get_cq_event(channel, &cq, &context))
            return "waiting failed";
        ibv_ack_cq_events(cq, 1);
    }
    return NULL;
}

static void a_thread_sleeps_until_another_sends(void **state)
{
    struct ibv_cq *send_cq = ibv_create_cq(pd->context, 64, NULL, NULL, 0);
    enum ibv_wc_status status;
    struct memory m;
    pthread_t thread;
    void *complaint;

    channel = ibv_create_comp_channel(pd->context);
    armed_cq = ibv_create_cq(pd->context, 64, NULL, channel, 0);
    struct ibv_qp *a = make_qp(send_cq, send_cq, NULL), *b = make_qp(send_cq, armed_cq, NULL);
    fabric_connect(a, b);
    assert_true(memory_open(&m, 2 * SLOT));
    pthread_create(&thread, NULL, wait_for_events, NULL);
    for (int i = 0; i < EVENTS; i++) {
        int err;

        while ((err = post_recv(b, NULL, &m, 1)) == ENOMEM) /* the thread has not run for a while */
            usleep(500);
        assert_int_equal(err, 0);
        assert_int_equal(post(a, &m, IBV_WR_SEND, 8, NULL), 0);
        assert_true(completes(send_cq, &status));
        assert_int_equal(status, IBV_WC_SUCCESS);
        usleep(500);
    }
    pthread_join(thread, &complaint);
    assert_null(complaint);
    ibv_destroy_qp(a);
    ibv_destroy_qp(b);
    assert_int_equal(ibv_destroy_cq(armed_cq), 0);
    assert_int_equal(ibv_destroy_cq(send_cq), 0);
    assert_int_equal(ibv_destroy_comp_channel(channel), 0);
    assert_true(memory_close(&m));
}

/* ---- the end ---- */

static void *poll_to_the_end(void *cq)
{
    struct ibv_wc wc;

    for (;;)
        ibv_poll_cq(cq, 1, &wc);
    return NULL;
}

/* It runs on while the process ends. */
static void a_thread_polls_to_the_end(void **state)
{
    struct ibv_cq *cq = ibv_create_cq(pd->context, 64, NULL, NULL, 0);
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, poll_to_the_end, cq), 0);
    pthread_detach(thread);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_send_to_one_completion_queue),
        cmocka_unit_test(threads_send_to_one_shared_receive_queue),
        cmocka_unit_test(threads_make_and_destroy_objects),
        cmocka_unit_test(a_thread_sleeps_until_another_sends),
        cmocka_unit_test(a_thread_polls_to_the_end),
    };

    return cmocka_run_group_tests_name("threads", tests, join_fabric, NULL);
}
