/* SPDX-License-Identifier: BSD-2-Clause */
/* One end of connections by rdma_cm, which prints each event.
 *
 *     wire-cm-peer listen PORT accept|reject|ignore COUNT
 *     wire-cm-peer connect PORT ADDRESS [disconnect|leave]
 *
 * A listener handles COUNT connections until each has ended. A caller with an established
 * connection disconnects, or exits, or waits for the other end to disconnect. */
#include <netdb.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GREETING "hello"
#define ANSWER   "welcome"
#define REFUSAL  "not today"

static struct rdma_event_channel *channel;

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static struct rdma_cm_event *next_event(void)
{
    struct rdma_cm_event *event;

    if (rdma_get_cm_event(channel, &event))
        fail("rdma_get_cm_event");
    printf("event %s %d", rdma_event_str(event->event) + strlen("RDMA_CM_EVENT_"), event->status);
    if (event->param.conn.private_data_len)
        printf(" \"%.*s\"", event->param.conn.private_data_len,
               (const char *)event->param.conn.private_data);
    printf("\n");
    return event;
}

static void make_qp(struct rdma_cm_id *id)
{
    struct ibv_qp_init_attr attr = {
        .qp_type = IBV_QPT_RC,
        .cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
    };

    if (rdma_create_qp(id, NULL, &attr))
        fail("rdma_create_qp");
}

static struct rdma_conn_param param_with(const char *text)
{
    return (struct rdma_conn_param){
        .private_data = text,
        .private_data_len = strlen(text) + 1,
        .responder_resources = 3,
        .initiator_depth = 2,
        .retry_count = 7,
        .rnr_retry_count = 7,
    };
}

static void finish(struct rdma_cm_id *id)
{
    if (id->qp)
        rdma_destroy_qp(id);
    if (rdma_destroy_id(id))
        fail("rdma_destroy_id");
}

/* ---- the listener ---- */

static void take_request(struct rdma_cm_id *id, const char *mode)
{
    struct rdma_conn_param param = param_with(ANSWER);

    if (!strcmp(mode, "reject")) {
        if (rdma_reject(id, REFUSAL, sizeof(REFUSAL)))
            fail("rdma_reject");
    } else if (!strcmp(mode, "accept")) {
        make_qp(id);
        if (rdma_accept(id, &param))
            fail("rdma_accept");
    }
}

static void listen_for(const char *port, const char *mode, int count)
{
    struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE | RAI_FAMILY,
                                   .ai_family = AF_INET6,
                                   .ai_port_space = RDMA_PS_TCP },
                         *info;
    struct rdma_cm_id *listener;

    if (rdma_getaddrinfo(NULL, port, &hints, &info) ||
        rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP) ||
        rdma_bind_addr(listener, info->ai_src_addr) || rdma_listen(listener, 64))
        fail("rdma_listen");
    rdma_freeaddrinfo(info);
    printf("listening\n");
    while (count) {
        struct rdma_cm_event *event = next_event();
        struct rdma_cm_id *id = event->id;
        enum rdma_cm_event_type type = event->event;

        rdma_ack_cm_event(event);
        if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
            take_request(id, mode);
        bool ended = type == RDMA_CM_EVENT_DISCONNECTED || type == RDMA_CM_EVENT_REJECTED ||
                     type == RDMA_CM_EVENT_UNREACHABLE || !strcmp(mode, "reject");
        if (ended) {
            finish(id);
            count--;
        }
    }
    finish(listener);
}

/* ---- the caller ---- */

static enum rdma_cm_event_type take_event(void)
{
    struct rdma_cm_event *event = next_event();
    enum rdma_cm_event_type type = event->event;

    rdma_ack_cm_event(event);
    return type;
}

static void call(const char *port, const char *address, const char *then)
{
    struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *info;
    struct rdma_conn_param param = param_with(GREETING);
    struct rdma_cm_id *id;

    if (rdma_getaddrinfo(address, port, &hints, &info) ||
        rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) ||
        rdma_resolve_addr(id, NULL, info->ai_dst_addr, 2000))
        fail("rdma_resolve_addr");
    rdma_freeaddrinfo(info);
    if (take_event() != RDMA_CM_EVENT_ADDR_RESOLVED || rdma_resolve_route(id, 2000) ||
        take_event() != RDMA_CM_EVENT_ROUTE_RESOLVED)
        exit(1);
    make_qp(id);
    if (rdma_connect(id, &param))
        fail("rdma_connect");
    if (take_event() == RDMA_CM_EVENT_ESTABLISHED) {
        if (!strcmp(then, "leave"))
            exit(0);
        if (!strcmp(then, "disconnect") && rdma_disconnect(id))
            fail("rdma_disconnect");
        while (take_event() != RDMA_CM_EVENT_DISCONNECTED)
            ;
    }
    finish(id);
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc < 4 || !(channel = rdma_create_event_channel())) {
        fprintf(stderr, "usage: wire-cm-peer listen|connect PORT ...\n");
        return 2;
    }
    if (!strcmp(argv[1], "listen"))
        listen_for(argv[2], argv[3], argc > 4 ? atoi(argv[4]) : 1);
    else
        call(argv[2], argv[3], argc > 4 ? argv[4] : "");
    rdma_destroy_event_channel(channel);
    printf("end\n");
    return 0;
}
