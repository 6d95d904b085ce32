/* SPDX-License-Identifier: BSD-2-Clause */
#include "pair.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct rdma_addrinfo *look_up(uint16_t port, int flags)
{
    struct rdma_addrinfo hints = { .ai_flags = flags, .ai_port_space = RDMA_PS_TCP }, *res;
    char service[8];

    snprintf(service, sizeof(service), "%u", port);
    CHECK(!rdma_getaddrinfo("127.0.0.1", service, &hints, &res));
    CHECK(res->ai_qp_type == IBV_QPT_RC && res->ai_port_space == RDMA_PS_TCP);
    return res;
}

static struct ibv_qp_init_attr qp_attr(void)
{
    return (struct ibv_qp_init_attr){
        .cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
        .sq_sig_all = 1,
    };
}

/* ---- endpoints: every call waits for its own event ---- */

static void endpoint_passive(void)
{
    struct rdma_addrinfo *res = look_up(0, RAI_PASSIVE);
    struct ibv_qp_init_attr attr = qp_attr();
    struct rdma_cm_id *listener, *id;

    CHECK(res->ai_src_addr && !res->ai_dst_addr);
    CHECK(!rdma_create_ep(&listener, res, NULL, &attr));
    CHECK_ERRNO(rdma_get_request(listener, &id), EINVAL);
    CHECK(!rdma_listen(listener, 0));
    tell(ntohs(rdma_get_src_port(listener)));
    CHECK(!rdma_get_request(listener, &id));
    CHECK(id->qp && id->event->event == RDMA_CM_EVENT_CONNECT_REQUEST);
    CHECK(!strcmp(id->event->param.conn.private_data, "from the client"));
    CHECK(!rdma_accept(id, NULL));
    CHECK(id->event->event == RDMA_CM_EVENT_ESTABLISHED);
    receive_text(id, "ping", 0);
    hear();
    send_text(id, "pong");
    CHECK(!rdma_disconnect(id));
    rdma_destroy_ep(id);
    CHECK(!rdma_get_request(listener, &id));
    CHECK(!rdma_reject(id, NULL, 0));
    rdma_destroy_ep(id);
    rdma_destroy_ep(listener);
    rdma_freeaddrinfo(res);
    tell(1);
}

static void endpoint_active(void)
{
    struct rdma_addrinfo *res = look_up(hear(), 0);
    struct ibv_qp_init_attr attr = qp_attr();
    struct rdma_conn_param param = conn_param("from the client", 16);
    struct rdma_cm_id *id;

    CHECK(res->ai_src_addr && res->ai_dst_addr);
    CHECK(!rdma_create_ep(&id, res, NULL, &attr));
    CHECK(id->qp && !rdma_connect(id, &param));
    CHECK(id->event->event == RDMA_CM_EVENT_ESTABLISHED);
    hear();
    send_text(id, "ping");
    receive_text(id, "pong", 0);
    CHECK(!rdma_disconnect(id));
    rdma_destroy_ep(id);

    attr = qp_attr(); /* the call filled in the CQs of the first */
    CHECK(!rdma_create_ep(&id, res, NULL, &attr));
    CHECK_ERRNO(rdma_connect(id, NULL), ECONNREFUSED);
    rdma_destroy_ep(id);
    hear(); /* the listener is gone */
    attr = qp_attr();
    CHECK(!rdma_create_ep(&id, res, NULL, &attr));
    CHECK_ERRNO(rdma_connect(id, NULL), ECONNREFUSED);
    CHECK(id->event->status == 8);
    rdma_destroy_ep(id);
    rdma_freeaddrinfo(res);
}

/* ---- addresses ---- */

static void addresses_whole(void)
{
    struct rdma_event_channel *channel = open_channel();
    struct rdma_addrinfo hints = { .ai_flags = RAI_NUMERICHOST }, *res;
    struct rdma_cm_id *id, *sync;

    CHECK_ERRNO(rdma_getaddrinfo(NULL, NULL, NULL, &res), EINVAL);
    CHECK(rdma_getaddrinfo("not a number", "1", &hints, &res) == EAI_NONAME);
    CHECK(!rdma_getaddrinfo("::1", "7", NULL, &res) && res->ai_family == AF_INET6);
    rdma_freeaddrinfo(res);

    CHECK(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
    CHECK_ERRNO(rdma_bind_addr(id, ip_address("203.0.113.1", 0)), EADDRNOTAVAIL);
    CHECK(!rdma_resolve_addr(id, NULL, ip_address("203.0.113.1", 5), 100));
    struct rdma_cm_event *event = EXPECT(channel, RDMA_CM_EVENT_ADDR_ERROR);
    CHECK(event->status == -ENODEV);
    rdma_ack_cm_event(event);
    close_id(id);
    CHECK(!rdma_create_id(NULL, &sync, NULL, RDMA_PS_TCP));
    CHECK_ERRNO(rdma_resolve_addr(sync, NULL, ip_address("203.0.113.1", 5), 100), ENODEV);
    CHECK(!rdma_resolve_addr(sync, ip_address("127.0.0.1", 0), ip_address("127.0.0.1", 5), 100));
    close_id(sync);
    rdma_destroy_event_channel(channel);
}

static void ports_whole(void)
{
    struct rdma_event_channel *channel = open_channel();
    struct rdma_cm_id *a, *b, *udp;
    int yes = 1;

    CHECK(!rdma_create_id(channel, &a, NULL, RDMA_PS_TCP));
    CHECK(!rdma_create_id(channel, &b, NULL, RDMA_PS_TCP));
    CHECK(!rdma_create_id(channel, &udp, NULL, RDMA_PS_UDP));
    CHECK(!rdma_bind_addr(a, ip_address("127.0.0.1", 4711)));
    CHECK_ERRNO(rdma_bind_addr(a, ip_address("127.0.0.1", 4712)), EINVAL);
    CHECK_ERRNO(rdma_bind_addr(b, ip_address("0.0.0.0", 4711)), EADDRINUSE);
    CHECK(!rdma_bind_addr(udp, ip_address("0.0.0.0", 4711))); /* another port space */
    CHECK(!rdma_set_option(a, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &yes, sizeof(yes)));
    CHECK(!rdma_set_option(b, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &yes, sizeof(yes)));
    CHECK(!rdma_bind_addr(b, ip_address("127.0.0.1", 4711)));
    CHECK(!rdma_listen(a, 1));
    CHECK_ERRNO(rdma_listen(b, 1), EADDRINUSE);
    close_id(a);
    CHECK(!rdma_listen(b, 1));
    close_id(b);
    close_id(udp);
    rdma_destroy_event_channel(channel);
}

/* ---- nodes: 127.42.0.(K+1) is node K only ---- */

static void on_node(const char *node)
{
    setenv("VERBENA_NODES", "2", 1);
    setenv("VERBENA_NODE", node, 1);
}

static void nodes_passive(void)
{
    on_node("1");
    struct rdma_event_channel *channel = open_channel();
    struct rdma_cm_id *listener, *other;

    CHECK(!rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP));
    CHECK(!rdma_create_id(channel, &other, NULL, RDMA_PS_TCP));
    CHECK_ERRNO(rdma_bind_addr(other, ip_address("127.42.0.1", 0)), EADDRNOTAVAIL);
    CHECK(!rdma_bind_addr(listener, ip_address("0.0.0.0", 0)));
    CHECK(!rdma_listen(listener, 5));
    for (int round = 0; round < 2; round++) {
        tell(ntohs(rdma_get_src_port(listener)));
        struct rdma_cm_id *id = connect_passive(channel, listener);
        receive_text(id, "over the wire", 0);
        EXPECT_ACK(channel, RDMA_CM_EVENT_DISCONNECTED);
        close_id(id);
    }
    close_id(other);
    close_id(listener);
}

static void connect_to(struct rdma_event_channel *channel, const char *ip, uint16_t port)
{
    struct rdma_conn_param param = conn_param(NULL, 0);
    struct rdma_cm_id *id = resolve(channel, RDMA_PS_TCP, ip, port);

    make_qp(id);
    CHECK(!rdma_connect(id, &param));
    EXPECT_ACK(channel, RDMA_CM_EVENT_ESTABLISHED);
    hear();
    send_text(id, "over the wire");
    close_id(id);
}

static void nodes_active(void)
{
    on_node("0");
    struct rdma_event_channel *channel = open_channel();
    struct rdma_conn_param param = conn_param(NULL, 0);
    uint16_t port = hear();
    struct rdma_cm_id *id = resolve(channel, RDMA_PS_TCP, "127.42.0.1", port);

    CHECK(!rdma_connect(id, &param));
    EXPECT_ACK(channel, RDMA_CM_EVENT_REJECTED);
    close_id(id);
    CHECK(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
    CHECK(!rdma_resolve_addr(id, NULL, ip_address("127.42.0.3", port), 100));
    EXPECT_ACK(channel, RDMA_CM_EVENT_ADDR_ERROR);
    close_id(id);
    connect_to(channel, "127.42.0.2", port);
    connect_to(channel, "127.0.0.1", hear());
}

/* ---- calls in the wrong state ---- */

static void wrong_whole(void)
{
    struct rdma_event_channel *channel = open_channel();
    struct rdma_conn_param param = conn_param(NULL, 0), large = conn_param("", 57);
    struct ibv_qp_init_attr attr = qp_attr();
    struct ibv_qp_attr step = { .qp_state = IBV_QPS_RTR };
    struct rdma_cm_id *id, *child;
    uint8_t timeout = 40;
    int mask;

    CHECK_ERRNO(rdma_create_id(channel, &id, NULL, 0x77), EPROTONOSUPPORT);
    CHECK_ERRNO(rdma_get_cm_event(NULL, NULL), EINVAL);
    CHECK(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
    CHECK_ERRNO(rdma_resolve_route(id, 100), EINVAL);
    CHECK_ERRNO(rdma_connect(id, &param), EINVAL);
    CHECK_ERRNO(rdma_accept(id, &param), EINVAL);
    CHECK_ERRNO(rdma_reject(id, NULL, 0), EINVAL);
    CHECK_ERRNO(rdma_disconnect(id), EINVAL);
    CHECK_ERRNO(rdma_establish(id), EINVAL);
    CHECK_ERRNO(rdma_notify(id, IBV_EVENT_COMM_EST), EINVAL);
    CHECK_ERRNO(rdma_create_qp(id, NULL, &attr), EINVAL);
    CHECK_ERRNO(rdma_get_request(id, &child), EINVAL);
    CHECK_ERRNO(rdma_join_multicast(id, ip_address("239.1.1.1", 0), NULL), EINVAL);
    CHECK_ERRNO(rdma_leave_multicast(id, ip_address("239.1.1.1", 0)), EADDRNOTAVAIL);
    CHECK_ERRNO(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1),
                EINVAL);
    CHECK_ERRNO(rdma_set_option(id, 9, 9, &timeout, 1), ENOSYS);
    close_id(id);
    id = resolve(channel, RDMA_PS_TCP, "127.0.0.1", 9);
    CHECK_ERRNO(rdma_listen(id, 1), EINVAL);
    CHECK_ERRNO(rdma_init_qp_attr(id, &step, &mask), EINVAL);
    CHECK_ERRNO(rdma_connect(id, &large), EINVAL);
    make_qp(id);
    attr.qp_type = IBV_QPT_RC;
    CHECK_ERRNO(rdma_create_qp(id, NULL, &attr), EINVAL);
    close_id(id);
    rdma_destroy_event_channel(channel);
    CHECK(!strcmp(rdma_event_str(RDMA_CM_EVENT_TIMEWAIT_EXIT), "RDMA_CM_EVENT_TIMEWAIT_EXIT"));
    CHECK(!strcmp(rdma_event_str(99), "UNKNOWN EVENT"));
}

/* ---- a fork: the ids stay with the parent ---- */

static void child_of_fork(struct rdma_event_channel *channel, struct rdma_cm_id *listener)
{
    struct rdma_cm_event *event;
    struct rdma_cm_id *own;

    alarm(10); /* the parent's is not inherited */
    CHECK_ERRNO(rdma_listen(listener, 1), EINVAL);
    CHECK_ERRNO(rdma_get_cm_event(channel, &event), EINVAL);
    CHECK_ERRNO(rdma_migrate_id(listener, NULL), EINVAL);
    CHECK(!rdma_destroy_id(listener));
    CHECK(!rdma_create_id(NULL, &own, NULL, RDMA_PS_TCP));
    CHECK(!rdma_resolve_addr(own, NULL, ip_address("127.0.0.1", 1), 100));
    close_id(own);
    exit(0);
}

static void fork_whole(void)
{
    struct rdma_event_channel *channel = open_channel();
    struct rdma_conn_param param = conn_param(NULL, 0);
    struct rdma_cm_id *listener;
    int status;

    CHECK(!rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP));
    CHECK(!rdma_bind_addr(listener, ip_address("127.0.0.1", 0)));
    CHECK(!rdma_listen(listener, 1));
    pid_t child = fork();
    if (!child)
        child_of_fork(channel, listener);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    struct rdma_cm_id *id =
        resolve(channel, RDMA_PS_TCP, "127.0.0.1", ntohs(rdma_get_src_port(listener)));
    CHECK(!rdma_connect(id, &param));
    struct rdma_cm_event *event = EXPECT(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
    struct rdma_cm_id *asked = event->id;
    rdma_ack_cm_event(event);
    close_id(asked);
    EXPECT_ACK(channel, RDMA_CM_EVENT_REJECTED);
    close_id(id);
    close_id(listener);
    rdma_destroy_event_channel(channel);
}

const struct cm_case endpoint_cases[] = {
    { "endpoints", endpoint_passive, endpoint_active, 0 },
    { "addresses", addresses_whole, NULL, 0 },
    { "ports", ports_whole, NULL, 0 },
    { "nodes", nodes_passive, nodes_active, 0 },
    { "wrong-state", wrong_whole, NULL, 0 },
    { "fork", fork_whole, NULL, 0 },
    { 0 },
};
