/* SPDX-License-Identifier: BSD-2-Clause */
/* Asynchronous events and completion channels, as a program takes them. */

#include "fabric.h"

#include "hca/notify.h"

#include "verbena.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static struct ibv_context *context;
static struct ibv_pd *pd;
static uint64_t received;
static struct ibv_mr *mr;

static int join_fabric(void **state)
{
    fabric_let_another_be_first();
    context = fabric_open();
    pd = ibv_alloc_pd(context);
    mr = ibv_reg_mr(pd, &received, sizeof(received), IBV_ACCESS_LOCAL_WRITE);
    return !mr;
}

static int leave_fabric(void **state)
{
    fabric_end_the_first();
    ibv_dereg_mr(mr);
    return ibv_dealloc_pd(pd);
}

static int readable(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };

    return poll(&p, 1, 0);
}

static void send_word(struct ibv_qp *qp, unsigned flags)
{
    uint64_t word = 42;
    struct ibv_sge sge = { (uintptr_t)&word, sizeof(word), 0 };
    struct ibv_send_wr *bad, wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
        .send_flags = IBV_SEND_INLINE | flags };

    assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
}

static void post_word(struct ibv_qp *qp)
{
    struct ibv_sge sge = { (uintptr_t)&received, sizeof(received), mr->lkey };
    struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };

    assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
}

static void a_port_goes_down_and_up(void **state)
{
    struct ibv_async_event event;
    struct ibv_port_attr port;

    assert_int_equal(verbena_set_port(context, 0, 0), EINVAL);
    assert_int_equal(verbena_set_port(context, 1, 0), 0);
    assert_int_equal(ibv_get_async_event(context, &event), 0);
    assert_int_equal(event.event_type, IBV_EVENT_PORT_ERR);
    assert_int_equal(event.element.port_num, 1);
    ibv_ack_async_event(&event);
    assert_int_equal(ibv_query_port(context, 1, &port), 0);
    assert_int_equal(port.state, IBV_PORT_DOWN);
    assert_int_equal(verbena_set_port(context, 1, 0), 0);
    assert_int_equal(readable(context->async_fd), 0);
    assert_int_equal(verbena_set_port(context, 1, 1), 0);
    assert_int_equal(ibv_get_async_event(context, &event), 0);
    assert_int_equal(event.event_type, IBV_EVENT_PORT_ACTIVE);
    ibv_ack_async_event(&event);
}

static void nothing_passes_a_port_that_is_down(void **state)
{
    struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
    struct ibv_qp *a = fabric_rc_qp(pd, cq, 4), *b = fabric_rc_qp(pd, cq, 4);
    struct ibv_async_event event;
    struct ibv_wc wc;
    int got;

    fabric_connect(a, b);
    post_word(b);
    verbena_set_port(context, 1, 0);
    send_word(a, IBV_SEND_SIGNALED);
    while ((got = ibv_poll_cq(cq, 1, &wc)) == 0)
        ;
    assert_int_equal(got, 1);
    assert_int_equal(wc.status, IBV_WC_RETRY_EXC_ERR);
    verbena_set_port(context, 1, 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ibv_get_async_event(context, &event), 0);
        ibv_ack_async_event(&event);
    }
    ibv_destroy_qp(a);
    ibv_destroy_qp(b);
    assert_int_equal(ibv_destroy_cq(cq), 0);
}

/* Two QPs whose CQ has a channel; the second has four receives. */
struct channel_pair {
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_qp *a, *b;
};

static struct channel_pair channel_pair_new(void)
{
    struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
    struct ibv_cq *cq = ibv_create_cq(context, 16, (void *)77, channel, 0);
    struct channel_pair pair = { channel, cq, fabric_rc_qp(pd, cq, 8), fabric_rc_qp(pd, cq, 8) };

    fabric_connect(pair.a, pair.b);
    for (int i = 0; i < 4; i++)
        post_word(pair.b);
    return pair;
}

static void take_event(const struct channel_pair *pair)
{
    struct ibv_cq *from;
    void *cq_context;

    assert_int_equal(ibv_get_cq_event(pair->channel, &from, &cq_context), 0);
    assert_ptr_equal(from, pair->cq);
    assert_ptr_equal(cq_context, (void *)77);
}

static void channel_pair_destroy(const struct channel_pair *pair, unsigned events)
{
    ibv_ack_cq_events(pair->cq, events);
    ibv_destroy_qp(pair->a);
    ibv_destroy_qp(pair->b);
    assert_int_equal(ibv_destroy_comp_channel(pair->channel), EBUSY);
    assert_int_equal(ibv_destroy_cq(pair->cq), 0);
    assert_int_equal(ibv_destroy_comp_channel(pair->channel), 0);
}

static void an_armed_channel_fires_once(void **state)
{
    struct channel_pair pair = channel_pair_new();
    struct ibv_wc wc[8];

    send_word(pair.a, 0);
    assert_int_equal(readable(pair.channel->fd), 0);
    assert_int_equal(ibv_req_notify_cq(pair.cq, 0), 0); /* an entry waits already */
    assert_int_equal(readable(pair.channel->fd), 1);
    take_event(&pair);
    assert_int_equal(ibv_poll_cq(pair.cq, 8, wc), 1);

    assert_int_equal(ibv_req_notify_cq(pair.cq, 0), 0);
    send_word(pair.a, 0);
    send_word(pair.a, 0);
    take_event(&pair);
    assert_int_equal(readable(pair.channel->fd), 0);
    channel_pair_destroy(&pair, 2);
}

static void solicited_means_solicited(void **state)
{
    struct channel_pair pair = channel_pair_new();

    assert_int_equal(ibv_req_notify_cq(pair.cq, 1), 0);
    send_word(pair.a, IBV_SEND_SIGNALED); /* completes at both ends */
    assert_int_equal(readable(pair.channel->fd), 0);
    send_word(pair.a, IBV_SEND_SOLICITED);
    assert_int_equal(readable(pair.channel->fd), 1);
    take_event(&pair);
    channel_pair_destroy(&pair, 1);
}

/* What waits already when a CQ is armed counts as what arrives later does. */
static void arming_looks_at_what_waits(void **state)
{
    struct channel_pair pair = channel_pair_new();
    struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
    struct ibv_wc wc[8];

    send_word(pair.a, IBV_SEND_SIGNALED); /* a send's own completion is not solicited either */
    assert_int_equal(ibv_req_notify_cq(pair.cq, 1), 0);
    assert_int_equal(readable(pair.channel->fd), 0);
    send_word(pair.a, IBV_SEND_SOLICITED);
    assert_int_equal(readable(pair.channel->fd), 1);
    take_event(&pair);
    assert_int_equal(ibv_poll_cq(pair.cq, 8, wc), 3);
    send_word(pair.a, IBV_SEND_SOLICITED);
    assert_int_equal(readable(pair.channel->fd), 0);
    assert_int_equal(ibv_req_notify_cq(pair.cq, 1), 0);
    assert_int_equal(readable(pair.channel->fd), 1);
    take_event(&pair);
    assert_int_equal(ibv_poll_cq(pair.cq, 8, wc), 1);
    assert_int_equal(ibv_modify_qp(pair.b, &error, IBV_QP_STATE), 0);
    assert_int_equal(readable(pair.channel->fd), 0);
    assert_int_equal(ibv_req_notify_cq(pair.cq, 1), 0); /* an error is always solicited */
    assert_int_equal(readable(pair.channel->fd), 1);
    take_event(&pair);
    channel_pair_destroy(&pair, 3);
}

/* A program that has polled the first failure, arms and sleeps, is woken for the rest. */
static void an_error_flushes_before_the_program_sleeps(void **state)
{
    struct channel_pair pair = channel_pair_new();
    uint64_t words[2] = { 1, 2 }; /* more than a receive takes */
    struct ibv_sge sge = { (uintptr_t)words, sizeof(words), 0 };
    struct ibv_send_wr *bad, wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
        .send_flags = IBV_SEND_INLINE };
    struct ibv_wc wc[8];

    assert_int_equal(ibv_req_notify_cq(pair.cq, 0), 0);
    assert_int_equal(ibv_post_send(pair.a, &wr, &bad), 0);
    assert_int_equal(readable(pair.channel->fd), 1);
    take_event(&pair);
    assert_int_equal(ibv_poll_cq(pair.cq, 8, wc), 2);
    assert_int_equal(wc[0].status, IBV_WC_REM_INV_REQ_ERR);
    assert_int_equal(wc[1].status, IBV_WC_LOC_LEN_ERR);
    assert_int_equal(ibv_req_notify_cq(pair.cq, 0), 0);
    assert_int_equal(readable(pair.channel->fd), 1);
    take_event(&pair);
    assert_int_equal(ibv_poll_cq(pair.cq, 8, wc), 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(wc[i].status, IBV_WC_WR_FLUSH_ERR);
    channel_pair_destroy(&pair, 2);
}

/* A program that arms before it polls is not woken again by the completion of its last event; by a
 * second one it is. */
static void a_completion_wakes_once(void **state)
{
    struct channel_pair pair = channel_pair_new();
    struct ibv_wc wc[8];

    for (int signaled = 0; signaled < 2; signaled++) {
        assert_int_equal(ibv_req_notify_cq(pair.cq, 0), 0);
        send_word(pair.a, signaled ? IBV_SEND_SIGNALED : 0); /* one completion, or two */
        take_event(&pair);
        assert_int_equal(readable(pair.channel->fd), 0);
        assert_int_equal(ibv_req_notify_cq(pair.cq, 0), 0);
        assert_int_equal(readable(pair.channel->fd), signaled);
        if (signaled)
            take_event(&pair);
        assert_int_equal(ibv_poll_cq(pair.cq, 8, wc), 1 + signaled);
    }
    channel_pair_destroy(&pair, 3);
}

static void an_overrun_is_told_and_breaks_the_queue_pair(void **state)
{
    struct ibv_cq *small = ibv_create_cq(context, 2, NULL, NULL, 0);
    struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
    struct ibv_qp *a = fabric_rc_qp(pd, cq, 8), *b = fabric_rc_qp(pd, small, 8);
    struct ibv_async_event event;
    bool cq_error = false, qp_fatal = false;
    struct ibv_wc wc[8];

    fabric_connect(a, b);
    for (int i = 0; i < 4; i++)
        post_word(b);
    for (int i = 0; i < 3; i++)
        send_word(a, IBV_SEND_SIGNALED);
    assert_int_equal(ibv_poll_cq(cq, 8, wc), 3);
    assert_int_equal(wc[1].status, IBV_WC_SUCCESS);
    assert_int_equal(wc[2].status, IBV_WC_REM_OP_ERR);
    ibv_poll_cq(small, 8, wc);
    while (ibv_poll_cq(small, 8, wc) > 0)
        ;
    while (readable(context->async_fd)) {
        assert_int_equal(ibv_get_async_event(context, &event), 0);
        cq_error |= event.event_type == IBV_EVENT_CQ_ERR && event.element.cq == small;
        qp_fatal |= event.event_type == IBV_EVENT_QP_FATAL && event.element.qp == b;
        ibv_ack_async_event(&event);
    }
    assert_true(cq_error);
    assert_true(qp_fatal);
    ibv_destroy_qp(a);
    ibv_destroy_qp(b);
    assert_int_equal(ibv_destroy_cq(small), 0);
    assert_int_equal(ibv_destroy_cq(cq), 0);
}

static struct ibv_cq *fired_cq(struct ibv_comp_channel *channel)
{
    struct ibv_cq *cq = ibv_create_cq(context, 4, NULL, channel, 0);
    struct ibv_qp *a = fabric_rc_qp(pd, cq, 4), *b = fabric_rc_qp(pd, cq, 4);

    assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
    fabric_connect(a, b);
    post_word(b);
    send_word(a, 0);
    ibv_destroy_qp(a);
    ibv_destroy_qp(b);
    return cq;
}

static void a_destroyed_cq_takes_its_events_along(void **state)
{
    struct ibv_comp_channel *channel = ibv_create_comp_channel(context);
    struct ibv_cq *first, *second, *told;
    void *told_context;

    assert_int_equal(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
    first = fired_cq(channel);
    assert_int_equal(readable(channel->fd), 1);
    assert_int_equal(ibv_destroy_cq(first), 0);
    assert_int_equal(readable(channel->fd), 0);
    assert_int_equal(ibv_get_cq_event(channel, &told, &told_context), -1);
    assert_int_equal(errno, EAGAIN);
    first = fired_cq(channel);
    second = fired_cq(channel);
    assert_int_equal(ibv_destroy_cq(first), 0);
    assert_int_equal(readable(channel->fd), 1);
    assert_int_equal(ibv_get_cq_event(channel, &told, &told_context), 0);
    assert_ptr_equal(told, second);
    assert_int_equal(readable(channel->fd), 0);
    ibv_ack_cq_events(second, 1);
    assert_int_equal(ibv_destroy_cq(second), 0);
    assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

static void destroyed_objects_take_their_asynchronous_events_along(void **state)
{
    struct ibv_srq_init_attr init = { .attr = { .max_wr = 4, .max_sge = 1 } };
    struct ibv_srq_attr limit = { .srq_limit = 2 };
    struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
    struct ibv_srq *srq = ibv_create_srq(pd, &init);
    struct ibv_cq *cq = ibv_create_cq(context, 4, NULL, NULL, 0);
    struct ibv_qp_init_attr qp_init = { .send_cq = cq, .recv_cq = cq, .srq = srq,
        .qp_type = IBV_QPT_RC, .cap = { .max_send_wr = 1, .max_send_sge = 1 } };
    struct ibv_qp *qp = ibv_create_qp(pd, &qp_init), *peer = fabric_rc_qp(pd, cq, 1);

    assert_int_equal(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT), 0);
    assert_int_equal(readable(context->async_fd), 1);
    fabric_connect(qp, peer);
    assert_int_equal(ibv_modify_qp(qp, &error, IBV_QP_STATE), 0); /* the last WQE is reached */
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_qp(peer), 0);
    assert_int_equal(readable(context->async_fd), 1);
    assert_int_equal(ibv_destroy_srq(srq), 0);
    assert_int_equal(readable(context->async_fd), 0);
    assert_int_equal(ibv_destroy_cq(cq), 0);
}

/* When fewer than the limit are left, and once. */
static void a_shared_queue_tells_that_it_runs_low(void **state)
{
    struct ibv_srq_init_attr init = { .attr = { .max_wr = 8, .max_sge = 1 } };
    struct ibv_srq_attr limit = { .srq_limit = 3 };
    struct ibv_srq *srq = ibv_create_srq(pd, &init);
    struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
    struct ibv_qp_init_attr qp_init = { .send_cq = cq, .recv_cq = cq, .srq = srq,
        .qp_type = IBV_QPT_RC, .cap = { .max_send_wr = 1, .max_send_sge = 1 } };
    struct ibv_qp *qp = ibv_create_qp(pd, &qp_init), *peer = fabric_rc_qp(pd, cq, 8);
    struct ibv_sge sge = { (uintptr_t)&received, sizeof(received), mr->lkey };
    struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };
    struct ibv_async_event event;

    fabric_connect(qp, peer);
    for (int i = 0; i < 5; i++)
        assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
    assert_int_equal(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT), 0);
    for (int left = 4; left > 0; left--) {
        send_word(peer, 0);
        assert_int_equal(readable(context->async_fd), left == 2);
        if (left != 2)
            continue;
        assert_int_equal(ibv_get_async_event(context, &event), 0);
        assert_int_equal(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
        assert_ptr_equal(event.element.srq, srq);
        ibv_ack_async_event(&event);
    }
    assert_int_equal(ibv_destroy_qp(qp) | ibv_destroy_qp(peer) | ibv_destroy_srq(srq), 0);
    assert_int_equal(ibv_destroy_cq(cq), 0);
}

static unsigned services;

static void serve(void)
{
    services++;
}

static void a_service_hook_is_called_once_a_round(void **state)
{
    notify_add_service_hook(serve);
    notify_add_service_hook(serve);
    notify_run_service_hooks();
    assert_int_equal(services, 1);
    notify_run_service_hooks();
    assert_int_equal(services, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_port_goes_down_and_up),
        cmocka_unit_test(nothing_passes_a_port_that_is_down),
        cmocka_unit_test(an_armed_channel_fires_once),
        cmocka_unit_test(solicited_means_solicited),
        cmocka_unit_test(arming_looks_at_what_waits),
        cmocka_unit_test(an_error_flushes_before_the_program_sleeps),
        cmocka_unit_test(a_completion_wakes_once),
        cmocka_unit_test(an_overrun_is_told_and_breaks_the_queue_pair),
        cmocka_unit_test(a_destroyed_cq_takes_its_events_along),
        cmocka_unit_test(destroyed_objects_take_their_asynchronous_events_along),
        cmocka_unit_test(a_shared_queue_tells_that_it_runs_low),
        cmocka_unit_test(a_service_hook_is_called_once_a_round),
    };

    return cmocka_run_group_tests_name("events", tests, join_fabric, leave_fabric);
}
