/* SPDX-License-Identifier: BSD-2-Clause */
#include "pair.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* ---- a whole connection, every field ---- */

static void whole_passive(void)
{
    struct rdma_event_channel *channel = open_channel();
    struct rdma_cm_id *listener = open_listener(channel, RDMA_PS_TCP, 0);
    struct rdma_cm_event *event = EXPECT(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
    struct rdma_conn_param *got = &event->param.conn;
    struct rdma_conn_param param = conn_param("hello back", 11);
    struct rdma_cm_id *id = event->id;

    CHECK(event->listen_id == listener && event->status == 0);
    CHECK(got->private_data_len == 56 && !memcmp(got->private_data, "hello", 6));
    CHECK(got->responder_resources == 2 && got->initiator_depth == 3);
    CHECK(got->retry_count == 5 && got->rnr_retry_count == 6 && got->qp_num == hear());
    CHECK(id->verbs && id->pd && id->verbs == listener->verbs && id->port_num == 1);
    CHECK(rdma_get_src_port(id) == rdma_get_src_port(listener) && rdma_get_dst_port(id));
    make_qp(id);
    param.responder_resources = 2;
    param.initiator_depth = 1;
    CHECK(!rdma_accept(id, &param));
    rdma_ack_cm_event(event);
    EXPECT_ACK(channel, RDMA_CM_EVENT_ESTABLISHED);
    receive_text(id, "one message", 0);
    EXPECT_ACK(channel, RDMA_CM_EVENT_DISCONNECTED);
    CHECK(!rdma_disconnect(id));
    EXPECT_ACK(channel, RDMA_CM_EVENT_TIMEWAIT_EXIT);
    close_id(id);
    close_id(listener);
    rdma_destroy_event_channel(channel);
}

static void whole_active(void)
{
    struct rdma_event_channel *channel = open_channel();
    struct rdma_cm_id *id = open_route(channel, RDMA_PS_TCP);
    struct rdma_conn_param param = conn_param("hello", 6);
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;

    CHECK(id->route.num_paths == 1 && id->route.path_rec->dlid);
    make_qp(id);
    tell(id->qp->qp_num);
    CHECK(!rdma_connect(id, &param));
    struct rdma_cm_event *event = EXPECT(channel, RDMA_CM_EVENT_ESTABLISHED);
    struct rdma_conn_param *got = &event->param.conn;
    CHECK(got->private_data_len == 196 && !memcmp(got->private_data, "hello back", 11));
    CHECK(got->responder_resources == 1 && got->initiator_depth == 2 && got->qp_num);
    rdma_ack_cm_event(event);
    CHECK(!ibv_query_qp(id->qp, &attr, IBV_QP_STATE | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY, &init));
    CHECK(attr.qp_state == IBV_QPS_RTS && attr.retry_cnt == 5 && attr.rnr_retry == 6);
    hear();
    send_text(id, "one message");
    CHECK(!rdma_disconnect(id));
    EXPECT_ACK(channel, RDMA_CM_EVENT_DISCONNECTED);
    CHECK(!ibv_query_qp(id->qp, &attr, IBV_QP_STATE, &init) && attr.qp_state == IBV_QPS_ERR);
    EXPECT_ACK(channel, RDMA_CM_EVENT_TIMEWAIT_EXIT);
    CHECK(!readable(channel->fd, 50));
    close_id(id);
    rdma_destroy_event_channel(channel);
}

/* ---- rejections ---- */

static void reject_passive(void)
{
    struct rdma_event_channel *channel = open_channel();
    struct rdma_cm_id *listener = open_listener(channel, RDMA_PS_TCP, 1);

    for (int round = 0; round < 2; round++) {
        struct rdma_cm_event *event = EXPECT(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
        struct rdma_cm_id *id = event->id;
        rdma_ack_cm_event(event);
        if (round == 0) {
            CHECK(!rdma_reject(id, "no thanks", 10));
            CHECK_ERRNO(rdma_reject(id, NULL, 0), EINVAL);
            CHECK_ERRNO(rdma_accept(id, &(struct rdma_conn_param){ 0 }), EINVAL);
        }
        close_id(id); /* destroying the id rejects the second request */
    }
    close_id(listener);
    tell(1);
    hear();
}

static void reject_active(void)
{
    struct rdma_event_channel *channel = open_channel();
    uint16_t port = hear();

    for (int round = 0; round < 3; round++) {
        if (round == 2)
            hear(); /* the listener is gone */
        struct rdma_cm_id *id = resolve(channel, RDMA_PS_TCP, "127.0.0.1", port);
        make_qp(id);
        struct rdma_conn_param param = conn_param(NULL, 0);
        CHECK(!rdma_connect(id, &param));
        struct rdma_cm_event *event = EXPECT(channel, RDMA_CM_EVENT_REJECTED);
        CHECK(event->status == (round == 2 ? 8 : 28));
        if (round == 0)
            CHECK(event->param.conn.private_data_len == 148 &&
                  !strcmp(event->param.conn.private_data, "no thanks"));
        rdma_ack_cm_event(event);
        CHECK_ERRNO(rdma_connect(id, &param), EINVAL);
        close_id(id);
    }
    tell(1);
}

/* ---- a QP created without the id ---- */

static void to_state(struct rdma_cm_id *id, struct ibv_qp *qp, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = { .qp_state = state };
    int mask;

    CHECK(!rdma_init_qp_attr(id, &attr, &mask));
    CHECK(!ibv_modify_qp(qp, &attr, mask));
}

static struct ibv_qp *own_qp(struct rdma_cm_id *id)
{
    struct ibv_cq *cq = ibv_create_cq(id->verbs, 4, NULL, NULL, 0);
    struct ibv_qp_init_attr attr = {
        .send_cq = cq,
        .recv_cq = cq,
        .cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
        .qp_type = IBV_QPT_RC,
    };
    struct ibv_qp *qp = ibv_create_qp(id->pd, &attr);

    CHECK(cq && qp);
    return qp;
}

static void all_states(struct rdma_cm_id *id, struct ibv_qp *qp)
{
    to_state(id, qp, IBV_QPS_INIT);
    to_state(id, qp, IBV_QPS_RTR);
    to_state(id, qp, IBV_QPS_RTS);
}

static void external_passive(void)
{
    struct rdma_event_channel *channel = open_channel();
    struct rdma_cm_id *listener = open_listener(channel, RDMA_PS_TCP, 1);
    struct rdma_cm_event *event = EXPECT(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
    struct rdma_cm_id *id = event->id;
    struct ibv_qp *qp = own_qp(id);
    struct rdma_conn_param param = conn_param(NULL, 0);
    struct ibv_ece ece;

    CHECK(event->param.conn.qp_num == hear());
    CHECK(!rdma_get_remote_ece(id, &ece) && ece.vendor_id == 0x1234 && ece.options == 7);
    rdma_ack_cm_event(event);
    all_states(id, qp);
    param.qp_num = qp->qp_num;
    CHECK_ERRNO(rdma_accept(id, NULL), EINVAL);
    CHECK(!rdma_accept(id, &param));
    tell(qp->qp_num);
    CHECK(!readable(channel->fd, 100)); /* the peer has not called rdma_establish */
    tell(1);
    EXPECT_ACK(channel, RDMA_CM_EVENT_ESTABLISHED);
    CHECK_ERRNO(rdma_notify(id, IBV_EVENT_COMM_EST), EISCONN);
    CHECK_ERRNO(rdma_notify(id, IBV_EVENT_PORT_ERR), EINVAL);
    tell(1);
    EXPECT_ACK(channel, RDMA_CM_EVENT_DISCONNECTED);
    ibv_destroy_qp(qp);
    close_id(id);
    close_id(listener);
}

static void external_active(void)
{
    struct rdma_event_channel *channel = open_channel();
    struct rdma_cm_id *id = open_route(channel, RDMA_PS_TCP);
    struct ibv_qp *qp = own_qp(id);
    struct rdma_conn_param param = conn_param(NULL, 0);
    struct ibv_ece ece = { .vendor_id = 0x1234, .options = 7 };

    CHECK_ERRNO(rdma_establish(id), EINVAL);
    CHECK(!rdma_set_local_ece(id, &ece));
    param.qp_num = qp->qp_num;
    tell(qp->qp_num);
    CHECK_ERRNO(rdma_connect(id, NULL), EINVAL);
    CHECK(!rdma_connect(id, &param));
    struct rdma_cm_event *event = EXPECT(channel, RDMA_CM_EVENT_CONNECT_RESPONSE);
    CHECK(event->param.conn.qp_num == hear());
    rdma_ack_cm_event(event);
    hear();
    all_states(id, qp);
    CHECK(!rdma_establish(id));
    hear();
    CHECK(!rdma_disconnect(id));
    EXPECT_ACK(channel, RDMA_CM_EVENT_DISCONNECTED);
    ibv_destroy_qp(qp);
    close_id(id);
}

/* ---- descriptors: readable exactly when there is an event ---- */

static void epoll_passive(void)
{
    struct rdma_event_channel *channel = open_channel();
    struct epoll_event ev = { .events = EPOLLIN };
    struct rdma_cm_event *event;
    int ep = epoll_create1(0);

    CHECK(!fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK));
    CHECK(!epoll_ctl(ep, EPOLL_CTL_ADD, channel->fd, &ev));
    CHECK_ERRNO(rdma_get_cm_event(channel, &event), EAGAIN);
    CHECK(epoll_wait(ep, &ev, 1, 0) == 0);
    struct rdma_cm_id *listener = open_listener(channel, RDMA_PS_TCP, 1);
    CHECK(epoll_wait(ep, &ev, 1, STEP_MS) == 1);
    struct rdma_cm_id *id = connect_passive(channel, listener);
    CHECK(epoll_wait(ep, &ev, 1, 50) == 0);
    CHECK_ERRNO(rdma_get_cm_event(channel, &event), EAGAIN);
    tell(1);
    CHECK(!rdma_disconnect(id)); /* while the peer disconnects too */
    CHECK(epoll_wait(ep, &ev, 1, STEP_MS) == 1);
    EXPECT_ACK(channel, RDMA_CM_EVENT_DISCONNECTED);
    CHECK(epoll_wait(ep, &ev, 1, 100) == 0);
    close_id(id);
    CHECK(epoll_wait(ep, &ev, 1, 600) == 0);
    close_id(listener);
}

static void epoll_active(void)
{
    struct rdma_event_channel *channel = open_channel();
    struct rdma_cm_id *id = connect_active(channel);

    hear();
    CHECK(!rdma_disconnect(id));
    EXPECT_ACK(channel, RDMA_CM_EVENT_DISCONNECTED);
    CHECK(!readable(channel->fd, 100));
    close_id(id);
    CHECK(!readable(channel->fd, 0));
}

/* ---- moving ids between channels ---- */

static void migrate_passive(void)
{
    struct rdma_event_channel *channel = open_channel(), *second = open_channel();
    struct rdma_cm_id *listener = open_listener(channel, RDMA_PS_TCP, 1);

    CHECK(!rdma_migrate_id(listener, second)); /* the request must reach the new channel */
    struct rdma_cm_event *event = EXPECT(second, RDMA_CM_EVENT_CONNECT_REQUEST);
    struct rdma_cm_id *id = event->id;
    rdma_ack_cm_event(event);
    CHECK(!readable(channel->fd, 0));
    make_qp(id);
    CHECK(!rdma_accept(id, NULL));
    CHECK(!rdma_migrate_id(id, channel)); /* the peer still has the old channel */
    CHECK(id->channel == channel);
    tell(1);
    EXPECT_ACK(channel, RDMA_CM_EVENT_ESTABLISHED);
    CHECK(!readable(second->fd, 0));
    EXPECT_ACK(channel, RDMA_CM_EVENT_DISCONNECTED);
    close_id(id);
    close_id(listener);
    rdma_destroy_event_channel(channel);
    rdma_destroy_event_channel(second);
}

static void migrate_active(void)
{
    struct rdma_event_channel *channel = open_channel(), *second = open_channel();
    struct rdma_cm_id *id = open_route(channel, RDMA_PS_TCP);
    struct rdma_conn_param param = conn_param(NULL, 0);

    make_qp(id);
    CHECK(!rdma_connect(id, &param));
    hear();
    CHECK(!rdma_migrate_id(id, second)); /* while the reply is queued in the first */
    EXPECT_ACK(second, RDMA_CM_EVENT_ESTABLISHED);
    CHECK(!readable(channel->fd, 0));
    CHECK(!rdma_migrate_id(id, NULL)); /* synchronous from now on */
    CHECK(id->channel && id->channel != channel && id->channel != second);
    rdma_destroy_event_channel(second);
    CHECK(!rdma_disconnect(id));
    CHECK(id->event && id->event->event == RDMA_CM_EVENT_DISCONNECTED);
    close_id(id);
}

/* ---- backlog: surplus requests arrive later ---- */

#define CALLERS 5
#define BACKLOG 2

static void backlog_passive(void)
{
    struct rdma_event_channel *channel = open_channel();
    struct rdma_cm_id *listener = open_listener(channel, RDMA_PS_TCP, BACKLOG);
    struct rdma_cm_event *event;
    int burst = 0;

    hear(); /* all clients have called rdma_connect */
    CHECK(!fcntl(channel->fd, F_SETFL, O_NONBLOCK));
    while (!rdma_get_cm_event(channel, &event)) {
        CHECK(event->event == RDMA_CM_EVENT_CONNECT_REQUEST);
        struct rdma_cm_id *id = event->id;
        rdma_ack_cm_event(event);
        CHECK(!rdma_reject(id, NULL, 0));
        close_id(id);
        burst++;
    }
    CHECK(burst == BACKLOG);
    tell(1);
    for (; burst < CALLERS; burst++) {
        event = EXPECT(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
        struct rdma_cm_id *id = event->id;
        rdma_ack_cm_event(event);
        close_id(id);
    }
    CHECK(!readable(channel->fd, 50));
    close_id(listener);
}

static void backlog_active(void)
{
    struct rdma_event_channel *channel = open_channel();
    struct rdma_conn_param param = conn_param(NULL, 0);
    struct rdma_cm_id *ids[CALLERS];
    uint16_t port = hear();

    for (int i = 0; i < CALLERS; i++)
        ids[i] = resolve(channel, RDMA_PS_TCP, "127.0.0.1", port);
    for (int i = 0; i < CALLERS; i++)
        CHECK(!rdma_connect(ids[i], &param));
    tell(1);
    hear(); /* no request could be repeated before */
    for (int i = 0; i < CALLERS; i++)
        EXPECT_ACK(channel, RDMA_CM_EVENT_REJECTED);
    for (int i = 0; i < CALLERS; i++)
        close_id(ids[i]);
}

/* ---- both ends in one process ---- */

static void loop_whole(void)
{
    struct rdma_event_channel *a = rdma_create_event_channel(), *p = rdma_create_event_channel();
    struct rdma_cm_id *listener;
    struct rdma_conn_param param = conn_param(NULL, 0);

    CHECK(a && p);
    CHECK(!rdma_create_id(p, &listener, a, RDMA_PS_TCP));
    CHECK(!rdma_bind_addr(listener, ip_address("0.0.0.0", 0)) && !listener->verbs);
    CHECK(!rdma_listen(listener, 1));
    struct rdma_cm_id *id =
        resolve(a, RDMA_PS_TCP, "127.0.0.1", ntohs(rdma_get_src_port(listener)));
    make_qp(id);
    CHECK(!rdma_connect(id, &param));
    struct rdma_cm_event *event = EXPECT(p, RDMA_CM_EVENT_CONNECT_REQUEST);
    struct rdma_cm_id *child = event->id;
    rdma_ack_cm_event(event);
    CHECK(child->context == a && child->verbs == id->verbs && child->pd == id->pd);
    make_qp(child);
    CHECK(!rdma_accept(child, NULL));
    EXPECT_ACK(a, RDMA_CM_EVENT_ESTABLISHED);
    EXPECT_ACK(p, RDMA_CM_EVENT_ESTABLISHED);
    close_id(id);
    EXPECT_ACK(p, RDMA_CM_EVENT_DISCONNECTED);
    close_id(child);
    close_id(listener);
    rdma_destroy_event_channel(a);
    rdma_destroy_event_channel(p);
}

/* ---- an id waits for its events to be acknowledged ---- */

static struct rdma_cm_event *held;
static volatile bool acknowledged;

static void *acknowledge_later(void *unused)
{
    usleep(100000);
    acknowledged = true;
    rdma_ack_cm_event(held);
    return NULL;
}

static void ack_whole(void)
{
    struct rdma_event_channel *channel = open_channel();
    struct rdma_cm_id *id;
    pthread_t thread;

    CHECK(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
    CHECK(!rdma_resolve_addr(id, NULL, ip_address("127.0.0.1", 1), 1000));
    held = EXPECT(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
    CHECK(!pthread_create(&thread, NULL, acknowledge_later, NULL));
    CHECK(!rdma_destroy_id(id));
    CHECK(acknowledged);
    pthread_join(thread, NULL);
    rdma_destroy_event_channel(channel);
}

/* ---- many connections, one after another and at once ---- */

#define ROUNDS  20
#define AT_ONCE 40

static void many_passive(void)
{
    struct rdma_event_channel *channel = open_channel();
    struct rdma_cm_id *listener = open_listener(channel, RDMA_PS_TCP, 0);
    struct rdma_cm_event *event;
    unsigned gone = 0;

    while (gone < ROUNDS * AT_ONCE) {
        CHECK(!rdma_get_cm_event(channel, &event));
        struct rdma_cm_id *id = event->id;
        enum rdma_cm_event_type type = event->event;
        rdma_ack_cm_event(event);
        if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
            make_qp(id);
            CHECK(!rdma_accept(id, NULL));
        } else if (type == RDMA_CM_EVENT_DISCONNECTED) {
            close_id(id);
            gone++;
        } else {
            CHECK(type == RDMA_CM_EVENT_ESTABLISHED);
        }
    }
    close_id(listener);
}

static void many_active(void)
{
    struct rdma_event_channel *channel = open_channel();
    struct rdma_conn_param param = conn_param(NULL, 0);
    struct rdma_cm_id *ids[AT_ONCE];
    uint16_t port = hear();

    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < AT_ONCE; i++) {
            ids[i] = resolve(channel, RDMA_PS_TCP, "127.0.0.1", port);
            make_qp(ids[i]);
        }
        for (int i = 0; i < AT_ONCE; i++)
            CHECK(!rdma_connect(ids[i], &param));
        for (int i = 0; i < AT_ONCE; i++)
            EXPECT_ACK(channel, RDMA_CM_EVENT_ESTABLISHED);
        for (int i = 0; i < AT_ONCE; i++)
            close_id(ids[i]);
        CHECK(!readable(channel->fd, 0));
    }
}

/* ---- several threads, each with its own channel ---- */

#define THREADS 4

static void *caller_thread(void *port)
{
    struct rdma_event_channel *channel = open_channel();
    struct rdma_conn_param param = conn_param(NULL, 0);

    for (int i = 0; i < ROUNDS * AT_ONCE / THREADS; i++) {
        struct rdma_cm_id *id;
        CHECK(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
        struct sockaddr_in to = {
            .sin_family = AF_INET,
            .sin_port = htons((uintptr_t)port),
            .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
        };
        CHECK(!rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 1000));
        EXPECT_ACK(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
        CHECK(!rdma_resolve_route(id, 1000));
        EXPECT_ACK(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
        make_qp(id);
        CHECK(!rdma_connect(id, &param));
        EXPECT_ACK(channel, RDMA_CM_EVENT_ESTABLISHED);
        if (i % 2) {
            CHECK(!rdma_disconnect(id));
            EXPECT_ACK(channel, RDMA_CM_EVENT_DISCONNECTED);
        }
        close_id(id);
    }
    rdma_destroy_event_channel(channel);
    return NULL;
}

static void threads_active(void)
{
    void *port = (void *)(uintptr_t)hear();
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        CHECK(!pthread_create(&threads[i], NULL, caller_thread, port));
    for (int i = 0; i < THREADS; i++)
        CHECK(!pthread_join(threads[i], NULL));
}

/* ---- ids that end before their events are taken ---- */

static void untaken_passive(void)
{
    struct rdma_event_channel *channel = open_channel();
    struct rdma_cm_id *listener = open_listener(channel, RDMA_PS_TCP, 4);

    CHECK(readable(channel->fd, STEP_MS)); /* a request that is never taken */
    CHECK(!rdma_destroy_id(listener));
    CHECK(!readable(channel->fd, 50));
    tell(1);
    listener = open_listener(channel, RDMA_PS_TCP, 4);
    struct rdma_cm_id *id = connect_passive(channel, listener);
    tell(1);
    CHECK(readable(channel->fd, STEP_MS)); /* the peer has disconnected */
    close_id(id);
    CHECK(!readable(channel->fd, 50));
    close_id(listener);
    rdma_destroy_event_channel(channel);
}

static void untaken_active(void)
{
    struct rdma_event_channel *channel = open_channel();
    struct rdma_cm_id *id = open_route(channel, RDMA_PS_TCP);
    struct rdma_conn_param param = conn_param(NULL, 0);

    make_qp(id);
    CHECK(!rdma_connect(id, &param));
    hear();
    CHECK(readable(channel->fd, STEP_MS)); /* the listener is gone */
    close_id(id);
    CHECK(!readable(channel->fd, 50));
    id = connect_active(channel);
    hear();
    CHECK(!rdma_disconnect(id));
    CHECK(readable(channel->fd, STEP_MS));
    close_id(id);
    CHECK(!readable(channel->fd, 50));
    rdma_destroy_event_channel(channel);
}

const struct cm_case connect_cases[] = {
    { "connect", whole_passive, whole_active, 0 },
    { "reject", reject_passive, reject_active, 0 },
    { "external-qp", external_passive, external_active, 0 },
    { "epoll", epoll_passive, epoll_active, 0 },
    { "migrate", migrate_passive, migrate_active, 0 },
    { "backlog", backlog_passive, backlog_active, 0 },
    { "one-process", loop_whole, NULL, 0 },
    { "acknowledge", ack_whole, NULL, 0 },
    { "untaken-events", untaken_passive, untaken_active, 0 },
    { "many", many_passive, many_active, 0 },
    { "threads", many_passive, threads_active, 0 },
    { 0 },
};
