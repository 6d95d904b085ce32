/* SPDX-License-Identifier: BSD-2-Clause */
#include "pair.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

/* One side dies at some stage; the other must learn it from its descriptor. */

static void die(void)
{
    raise(SIGKILL);
}

/* ---- the active side dies ---- */

static void caller_dies_asking(void)
{
    struct rdma_event_channel *channel = open_channel();
    struct rdma_cm_id *id = open_route(channel, RDMA_PS_TCP);
    struct rdma_conn_param param = conn_param(NULL, 0);

    make_qp(id);
    CHECK(!rdma_connect(id, &param));
    hear();
    die();
}

static void sees_caller_die(void)
{
    struct rdma_event_channel *channel = open_channel();
    struct rdma_cm_id *listener = open_listener(channel, RDMA_PS_TCP, 1);
    struct rdma_cm_event *event = EXPECT(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
    struct rdma_cm_id *id = event->id;

    rdma_ack_cm_event(event);
    tell(1);
    EXPECT_ACK(channel, RDMA_CM_EVENT_UNREACHABLE);
    CHECK_ERRNO(rdma_accept(id, &(struct rdma_conn_param){ 0 }), EINVAL);
    CHECK(!readable(channel->fd, 50));
    close_id(id);
    close_id(listener);
}

static void sees_caller_die_after_accept(void)
{
    struct rdma_event_channel *channel = open_channel();
    struct rdma_cm_id *listener = open_listener(channel, RDMA_PS_TCP, 1);
    struct rdma_cm_event *event = EXPECT(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
    struct rdma_cm_id *id = event->id;

    rdma_ack_cm_event(event);
    make_qp(id);
    CHECK(!rdma_accept(id, NULL));
    tell(1);
    EXPECT_ACK(channel, RDMA_CM_EVENT_UNREACHABLE);
    close_id(id);
    close_id(listener);
}

static void caller_dies_connected(void)
{
    connect_active(open_channel());
    hear();
    die();
}

static void sees_connection_die(void)
{
    struct rdma_event_channel *channel = open_channel();
    struct rdma_cm_id *listener = open_listener(channel, RDMA_PS_TCP, 1);
    struct rdma_cm_id *id = connect_passive(channel, listener);

    tell(1);
    EXPECT_ACK(channel, RDMA_CM_EVENT_DISCONNECTED);
    close_id(id);
    close_id(listener);
}

/* The peer is dead before the call: the call must not hang. */
static void sync_waits_for_the_dead(void)
{
    struct rdma_cm_id *listener, *id;

    CHECK(!rdma_create_id(NULL, &listener, NULL, RDMA_PS_TCP));
    CHECK(!rdma_bind_addr(listener, ip_address("127.0.0.1", 0)));
    CHECK(!rdma_listen(listener, 1));
    tell(be16toh(rdma_get_src_port(listener)));
    CHECK(!rdma_get_request(listener, &id));
    make_qp(id);
    tell(1);
    usleep(100000);
    CHECK(rdma_accept(id, NULL) == -1 && (errno == ECONNRESET || errno == ETIMEDOUT));
    close_id(id);
    close_id(listener);
}

/* ---- the passive side dies ---- */

static void listener_dies_idle(void)
{
    open_listener(open_channel(), RDMA_PS_TCP, 1);
    hear();
    die();
}

static void calls_dead_listener(void)
{
    struct rdma_event_channel *channel = open_channel();
    struct rdma_cm_id *id = open_route(channel, RDMA_PS_TCP);
    struct rdma_conn_param param = conn_param(NULL, 0);

    tell(1);
    usleep(100000);
    CHECK(!rdma_connect(id, &param));
    EXPECT_ACK(channel, RDMA_CM_EVENT_REJECTED);
    close_id(id);
}

static void listener_dies_asked(void)
{
    struct rdma_event_channel *channel = open_channel();

    open_listener(channel, RDMA_PS_TCP, 1);
    readable(channel->fd, STEP_MS); /* the message stays in the mailbox */
    die();
}

static void listener_dies_with_request(void)
{
    struct rdma_event_channel *channel = open_channel();

    open_listener(channel, RDMA_PS_TCP, 1);
    EXPECT(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
    die();
}

static void sees_listener_die(void)
{
    struct rdma_event_channel *channel = open_channel();
    struct rdma_cm_id *id = open_route(channel, RDMA_PS_TCP);
    struct rdma_conn_param param = conn_param(NULL, 0);

    make_qp(id);
    CHECK(!rdma_connect(id, &param));
    struct rdma_cm_event *event = EXPECT(channel, RDMA_CM_EVENT_UNREACHABLE);
    CHECK(event->status == -ETIMEDOUT);
    rdma_ack_cm_event(event);
    close_id(id);
}

static void sync_sees_listener_die(void)
{
    uint16_t port = hear();
    struct rdma_cm_id *id;

    CHECK(!rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP));
    CHECK(!rdma_resolve_addr(id, NULL, ip_address("127.0.0.1", port), 100));
    CHECK(!rdma_resolve_route(id, 100));
    make_qp(id);
    CHECK_ERRNO(rdma_connect(id, NULL), ETIMEDOUT);
    close_id(id);
}

static void listener_dies_accepting(void)
{
    struct rdma_event_channel *channel = open_channel();

    open_listener(channel, RDMA_PS_TCP, 1);
    struct rdma_cm_event *event = EXPECT(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
    make_qp(event->id);
    CHECK(!rdma_accept(event->id, NULL));
    die();
}

static void sees_reply_of_the_dead(void)
{
    struct rdma_event_channel *channel = open_channel();
    struct rdma_cm_id *id = open_route(channel, RDMA_PS_TCP);
    struct rdma_conn_param param = conn_param(NULL, 0);
    struct rdma_cm_event *event;

    make_qp(id);
    CHECK(!rdma_connect(id, &param));
    usleep(200000);
    do {
        CHECK(readable(channel->fd, STEP_MS));
        CHECK(!rdma_get_cm_event(channel, &event));
        CHECK(event->event == RDMA_CM_EVENT_ESTABLISHED ||
              event->event == RDMA_CM_EVENT_CONNECT_ERROR ||
              event->event == RDMA_CM_EVENT_DISCONNECTED);
        bool over = event->event != RDMA_CM_EVENT_ESTABLISHED;
        rdma_ack_cm_event(event);
        if (over)
            break;
    } while (1);
    close_id(id);
}

static void listener_dies_connected(void)
{
    struct rdma_event_channel *channel = open_channel();

    connect_passive(channel, open_listener(channel, RDMA_PS_TCP, 1));
    hear();
    die();
}

static void sees_connected_listener_die(void)
{
    struct rdma_event_channel *channel = open_channel();
    struct rdma_cm_id *id = connect_active(channel);

    tell(1);
    EXPECT_ACK(channel, RDMA_CM_EVENT_DISCONNECTED);
    CHECK(!rdma_disconnect(id));
    close_id(id);
}

/* exit() without rdma_disconnect() looks like a crash to the peer. */
static void leaves_without_a_word(void)
{
    struct rdma_event_channel *channel = open_channel();

    connect_passive(channel, open_listener(channel, RDMA_PS_TCP, 1));
    hear();
}

const struct cm_case fault_cases[] = {
    { "caller-dies-asking", sees_caller_die, caller_dies_asking, 'a' },
    { "caller-dies-accepted", sees_caller_die_after_accept, caller_dies_asking, 'a' },
    { "caller-dies-connected", sees_connection_die, caller_dies_connected, 'a' },
    { "caller-dies-sync", sync_waits_for_the_dead, caller_dies_asking, 'a' },
    { "listener-dies-idle", listener_dies_idle, calls_dead_listener, 'p' },
    { "listener-dies-asked", listener_dies_asked, sees_listener_die, 'p' },
    { "listener-dies-with-request", listener_dies_with_request, sees_listener_die, 'p' },
    { "listener-dies-sync", listener_dies_with_request, sync_sees_listener_die, 'p' },
    { "listener-dies-accepting", listener_dies_accepting, sees_reply_of_the_dead, 'p' },
    { "listener-dies-connected", listener_dies_connected, sees_connected_listener_die, 'p' },
    { "listener-exits-connected", leaves_without_a_word, sees_connected_listener_die, 0 },
    { 0 },
};
