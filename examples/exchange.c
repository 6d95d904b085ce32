/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two processes exchange data over one reliable connection: send, RDMA write, RDMA read and atomics,
 * with every byte checked. Then they measure the latency of small messages and the bandwidth of
 * large writes.
 *
 *     verbena run -- exchange
 *
 * An ordinary verbs program that runs on any adapter.
 */
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LARGE      (1024 * 1024)
#define SMALL      64
#define PINGS      20000
#define WRITES     2000
#define WINDOW     16
#define ADDITIONS  1000
#define QUEUE_SIZE 64

/* Exchanged over a socket before RDMA is possible. */
struct conn_info {
    union ibv_gid gid;
    uint64_t address;
    uint32_t rkey;
    uint32_t qp_number;
    uint16_t lid;
};

struct side {
    const char *name;
    int socket;
    unsigned char *buffer;
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_mr *mr;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct conn_info peer;
};

#define REQUIRE(condition, what)                                            \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "exchange: %s: %s failed\n", side->name, what); \
            _exit(1);                                                       \
        }                                                                   \
    } while (0)

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}

static unsigned char pattern(size_t index, unsigned int salt)
{
    return (index * 2654435761u + salt * 40503u) >> 13;
}

static void fill(struct side *side, size_t length, unsigned int salt)
{
    for (size_t i = 0; i < length; i++)
        side->buffer[i] = pattern(i, salt);
}

static void verify(struct side *side, size_t length, unsigned int salt, const char *what)
{
    for (size_t i = 0; i < length; i++)
        REQUIRE(side->buffer[i] == pattern(i, salt), what);
}

/* Waits until the peer has come to the same point. */
static void meet(struct side *side)
{
    char byte = 0;

    REQUIRE(write(side->socket, &byte, 1) == 1 && read(side->socket, &byte, 1) == 1, "meeting");
}

static void open_side(struct side *side)
{
    struct ibv_device **devices = ibv_get_device_list(NULL);
    struct ibv_qp_init_attr attributes = {
        .qp_type = IBV_QPT_RC,
        .cap = { .max_send_wr = QUEUE_SIZE,
                 .max_recv_wr = QUEUE_SIZE,
                 .max_send_sge = 1,
                 .max_recv_sge = 1,
                 .max_inline_data = SMALL },
    };

    REQUIRE(devices && devices[0], "finding an RDMA device");
    side->context = ibv_open_device(devices[0]);
    ibv_free_device_list(devices);
    REQUIRE(side->context, "ibv_open_device");
    side->pd = ibv_alloc_pd(side->context);
    REQUIRE(side->pd, "ibv_alloc_pd");
    side->buffer = aligned_alloc(4096, LARGE);
    side->mr = ibv_reg_mr(side->pd, side->buffer, LARGE,
                          IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                              IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
    REQUIRE(side->mr, "ibv_reg_mr");
    side->cq = ibv_create_cq(side->context, 2 * QUEUE_SIZE, NULL, NULL, 0);
    REQUIRE(side->cq, "ibv_create_cq");
    attributes.send_cq = attributes.recv_cq = side->cq;
    side->qp = ibv_create_qp(side->pd, &attributes);
    REQUIRE(side->qp, "ibv_create_qp");
}

static void exchange_cards(struct side *side)
{
    struct ibv_port_attr port;
    struct conn_info own = { .address = (uintptr_t)side->buffer,
                        .rkey = side->mr->rkey,
                        .qp_number = side->qp->qp_num };

    REQUIRE(!ibv_query_port(side->context, 1, &port), "ibv_query_port");
    REQUIRE(!ibv_query_gid(side->context, 1, 0, &own.gid), "ibv_query_gid");
    own.lid = port.lid;
    REQUIRE(write(side->socket, &own, sizeof(own)) == sizeof(own), "telling the peer");
    REQUIRE(read(side->socket, &side->peer, sizeof(own)) == sizeof(own), "hearing from the peer");
}

static void connect_side(struct side *side)
{
    struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT,
                                .port_num = 1,
                                .qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
                                                   IBV_ACCESS_REMOTE_READ |
                                                   IBV_ACCESS_REMOTE_ATOMIC };
    struct ibv_qp_attr receive = { .qp_state = IBV_QPS_RTR,
                                   .path_mtu = IBV_MTU_1024,
                                   .dest_qp_num = side->peer.qp_number,
                                   .max_dest_rd_atomic = 4,
                                   .min_rnr_timer = 12,
                                   .ah_attr = {
                                       .dlid = side->peer.lid,
                                       .port_num = 1,
                                       .is_global = 1,
                                       .grh = { .dgid = side->peer.gid, .hop_limit = 1 } } };
    struct ibv_qp_attr send = {
        .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 4
    };

    REQUIRE(!ibv_modify_qp(side->qp, &init,
                           IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
            "to INIT");
    REQUIRE(!ibv_modify_qp(side->qp, &receive,
                           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                               IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
            "to RTR");
    REQUIRE(!ibv_modify_qp(side->qp, &send,
                           IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                               IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
            "to RTS");
}

static void post_receive(struct side *side, uint32_t length)
{
    struct ibv_sge piece = { (uintptr_t)side->buffer, length, side->mr->lkey };
    struct ibv_recv_wr request = { .sg_list = &piece, .num_sge = 1 }, *bad;

    REQUIRE(!ibv_post_recv(side->qp, &request, &bad), "ibv_post_recv");
}

static void post(struct side *side, enum ibv_wr_opcode opcode, uint32_t length, unsigned int flags)
{
    struct ibv_sge piece = { (uintptr_t)side->buffer, length, side->mr->lkey };
    struct ibv_send_wr request = { .sg_list = &piece,
                                   .num_sge = 1,
                                   .opcode = opcode,
                                   .send_flags = IBV_SEND_SIGNALED | flags },
                       *bad;

    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        request.wr.atomic.remote_addr = side->peer.address;
        request.wr.atomic.rkey = side->peer.rkey;
        request.wr.atomic.compare_add = 3;
    } else {
        request.wr.rdma.remote_addr = side->peer.address;
        request.wr.rdma.rkey = side->peer.rkey;
    }
    REQUIRE(!ibv_post_send(side->qp, &request, &bad), "ibv_post_send");
}

static void complete(struct side *side, int count)
{
    struct ibv_wc completion;

    while (count) {
        int polled = ibv_poll_cq(side->cq, 1, &completion);

        REQUIRE(polled >= 0, "ibv_poll_cq");
        REQUIRE(!polled || completion.status == IBV_WC_SUCCESS,
                ibv_wc_status_str(completion.status));
        count -= polled;
    }
}

/* Each step runs on both sides, which meet before and after it. */

static void step_send(struct side *side, bool first)
{
    if (first) {
        fill(side, LARGE, 1);
        meet(side);
        post(side, IBV_WR_SEND, LARGE, 0);
        complete(side, 1);
    } else {
        post_receive(side, LARGE);
        meet(side);
        complete(side, 1);
        verify(side, LARGE, 1, "comparing what was sent");
        puts("send         1 MiB   every byte right");
    }
}

static void step_write(struct side *side, bool first)
{
    if (first) {
        fill(side, LARGE, 2);
        post(side, IBV_WR_RDMA_WRITE, LARGE, 0);
        complete(side, 1);
        meet(side);
    } else {
        meet(side);
        verify(side, LARGE, 2, "comparing what was written");
        puts("RDMA write   1 MiB   every byte right");
    }
}

static void step_read(struct side *side, bool first)
{
    if (!first)
        fill(side, LARGE, 3);
    meet(side);
    if (first) {
        post(side, IBV_WR_RDMA_READ, LARGE, 0);
        complete(side, 1);
        verify(side, LARGE, 3, "comparing what was read");
        puts("RDMA read    1 MiB   every byte right");
    }
}

static void step_atomic(struct side *side, bool first)
{
    uint64_t *counter = (uint64_t *)side->buffer;

    *counter = 0;
    meet(side);
    if (first) {
        for (int i = 0; i < ADDITIONS; i++) {
            post(side, IBV_WR_ATOMIC_FETCH_AND_ADD, sizeof(*counter), 0);
            complete(side, 1);
            REQUIRE(*counter == 3ull * i, "comparing the value fetched");
        }
    }
    meet(side);
    if (!first) {
        REQUIRE(*counter == 3ull * ADDITIONS, "comparing the sum");
        printf("fetch-add    %d    every sum right\n", ADDITIONS);
    }
}

static void step_latency(struct side *side, bool first)
{
    double start;

    post_receive(side, SMALL);
    meet(side);
    start = seconds();
    for (int i = 0; i < PINGS; i++) {
        if (first)
            post(side, IBV_WR_SEND, SMALL, IBV_SEND_INLINE);
        complete(side, first ? 2 : 1);
        post_receive(side, SMALL);
        if (!first) {
            post(side, IBV_WR_SEND, SMALL, IBV_SEND_INLINE);
            complete(side, 1);
        }
    }
    if (first)
        printf("latency      64 B    %.2f us one way\n", (seconds() - start) / PINGS / 2 * 1e6);
}

static void step_bandwidth(struct side *side, bool first)
{
    double start = seconds();

    if (!first)
        return;
    for (int i = 0; i < WRITES; i++) {
        if (i >= WINDOW)
            complete(side, 1);
        post(side, IBV_WR_RDMA_WRITE, LARGE, 0);
    }
    complete(side, WINDOW);
    printf("write rate   1 MiB   %.1f GB/s\n", WRITES * (LARGE / 1e9) / (seconds() - start));
}

static void close_side(struct side *side)
{
    REQUIRE(!ibv_destroy_qp(side->qp), "ibv_destroy_qp");
    REQUIRE(!ibv_destroy_cq(side->cq), "ibv_destroy_cq");
    REQUIRE(!ibv_dereg_mr(side->mr), "ibv_dereg_mr");
    REQUIRE(!ibv_dealloc_pd(side->pd), "ibv_dealloc_pd");
    REQUIRE(!ibv_close_device(side->context), "ibv_close_device");
    free(side->buffer);
}

static void take_part(struct side *side, bool first)
{
    static void (*const steps[])(struct side * side, bool first) = {
        step_send, step_write, step_read, step_atomic, step_latency, step_bandwidth,
    };

    open_side(side);
    exchange_cards(side);
    connect_side(side);
    meet(side);
    if (first)
        printf("device       %s\n", ibv_get_device_name(side->context->device));
    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
        steps[i](side, first);
        fflush(stdout);
        meet(side);
    }
    close_side(side);
}

int main(void)
{
    struct side side = { .name = "second process" };
    int sockets[2], status;
    pid_t child;

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) || (child = fork()) < 0) {
        perror("exchange");
        return 1;
    }
    if (!child) {
        close(sockets[0]);
        side.socket = sockets[1];
        take_part(&side, false);
        return 0;
    }
    close(sockets[1]);
    side.name = "first process";
    side.socket = sockets[0];
    take_part(&side, true);
    if (waitpid(child, &status, 0) < 0 || status) {
        fprintf(stderr, "exchange: the second process failed\n");
        return 1;
    }
    puts("exchange     verified");
    return 0;
}
