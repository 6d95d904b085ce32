/* SPDX-License-Identifier: BSD-2-Clause */
/* ring RANK RANKS ROUNDS PORT: processes in a ring, each connected to two neighbours, pass a message on.
 * They exchange addresses over TCP, process K listening at PORT + K. Rank 0 prints the time of a hop. */
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define DEPTH 4

struct address {
    uint32_t qpn;
    uint16_t lid;
};

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static uint64_t message;

static void fail(const char *what, int rank)
{
    fprintf(stderr, "ring: process %d: ", rank);
    perror(what);
    exit(1);
}

static struct sockaddr_in at_port(int port)
{
    return (struct sockaddr_in){ .sin_family = AF_INET,
                                 .sin_port = htons(port),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

static int listen_at(int port)
{
    struct sockaddr_in address = at_port(port);
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    return bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 4) ? -1 : fd;
}

static int connect_to(int port)
{
    struct sockaddr_in address = at_port(port);

    for (;;) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);

        if (!connect(fd, (struct sockaddr *)&address, sizeof(address)))
            return fd;
        close(fd);
        usleep(100000);
    }
}

static struct ibv_qp *create_qp(struct address *own)
{
    struct ibv_qp_init_attr init = { .send_cq = cq,
                                     .recv_cq = cq,
                                     .qp_type = IBV_QPT_RC,
                                     .cap = { DEPTH, DEPTH, 1, 1, 0 } };
    struct ibv_qp *qp = ibv_create_qp(pd, &init);
    struct ibv_port_attr port;

    if (!qp || ibv_query_port(context, 1, &port))
        return NULL;
    *own = (struct address){ qp->qp_num, port.lid };
    return qp;
}

static int connect_qp(struct ibv_qp *qp, const struct address *peer)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

    if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                                     IBV_QP_ACCESS_FLAGS))
        return -1;
    attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR,
                                 .path_mtu = IBV_MTU_1024,
                                 .dest_qp_num = peer->qpn,
                                 .ah_attr = { .dlid = peer->lid, .port_num = 1 },
                                 .min_rnr_timer = 12 };
    if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                                     IBV_QP_MIN_RNR_TIMER))
        return -1;
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7
    };
    return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
                                        IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                        IBV_QP_MAX_QP_RD_ATOMIC);
}

static int post(struct ibv_qp *qp, int is_send)
{
    struct ibv_sge sge = { (uintptr_t)&message, sizeof(message), mr->lkey };
    struct ibv_send_wr send = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
                                .send_flags = IBV_SEND_SIGNALED }, *bad_send;
    struct ibv_recv_wr receive = { .sg_list = &sge, .num_sge = 1 }, *bad_receive;

    return is_send ? ibv_post_send(qp, &send, &bad_send) : ibv_post_recv(qp, &receive, &bad_receive);
}

/* Waits for a receive; completions of sends may come before. */
static int await(enum ibv_wc_opcode opcode)
{
    struct ibv_wc wc;

    for (;;) {
        int count = ibv_poll_cq(cq, 1, &wc);

        if (count < 0 || (count && wc.status != IBV_WC_SUCCESS))
            return -1;
        if (count && wc.opcode == opcode)
            return 0;
    }
}

static uint64_t now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ull + time.tv_nsec;
}

/* The message goes round; only rank 0 changes it. The first round waits for those who start late. */
static int pass_on(int rank, int rounds, struct ibv_qp *previous, struct ibv_qp *next, uint64_t *start)
{
    for (int round = 0; round <= rounds; round++) {
        if (round == 1)
            *start = now();
        if (!rank) {
            message = round;
            if (post(next, 1))
                return -1;
        }
        if (await(IBV_WC_RECV) || message != (uint64_t)round || post(previous, 0))
            return -1;
        if (rank && post(next, 1))
            return -1;
    }
    return rank ? await(IBV_WC_SEND) : 0;
}

/* Exchanges addresses; both sides have posted a receive before either returns. */
static int meet(int fd, struct ibv_qp *qp, const struct address *own)
{
    struct address peer;
    char ready;

    if (write(fd, own, sizeof(*own)) != sizeof(*own) ||
        recv(fd, &peer, sizeof(peer), MSG_WAITALL) != sizeof(peer) || connect_qp(qp, &peer) ||
        post(qp, 0) || write(fd, "", 1) != 1 || read(fd, &ready, 1) != 1)
        return -1;
    return 0;
}

int main(int count, char **words)
{
    int rank = count == 5 ? atoi(words[1]) : 0, ranks = count == 5 ? atoi(words[2]) : 0;
    int rounds = count == 5 ? atoi(words[3]) : 0, port = count == 5 ? atoi(words[4]) : 0;
    struct ibv_device **devices = ibv_get_device_list(NULL);
    struct ibv_qp *previous, *next;
    struct address to_previous, to_next;
    int listener = listen_at(port + rank), back, forth;
    uint64_t start = 0;

    if (ranks < 2 || listener < 0)
        fail("listen", rank);
    context = devices && devices[0] ? ibv_open_device(devices[0]) : NULL;
    pd = context ? ibv_alloc_pd(context) : NULL;
    cq = pd ? ibv_create_cq(context, 4 * DEPTH, NULL, NULL, 0) : NULL;
    mr = cq ? ibv_reg_mr(pd, &message, sizeof(message), IBV_ACCESS_LOCAL_WRITE) : NULL;
    if (!mr || !(previous = create_qp(&to_previous)) || !(next = create_qp(&to_next)))
        fail("device", rank);
    /* Whoever started earlier listens already. */
    if (rank) {
        back = connect_to(port + rank - 1);
        if (meet(back, previous, &to_previous))
            fail("previous", rank);
    }
    forth = rank == ranks - 1 ? connect_to(port) : accept(listener, NULL, NULL);
    if (forth < 0 || meet(forth, next, &to_next))
        fail("next", rank);
    if (!rank && ((back = accept(listener, NULL, NULL)) < 0 || meet(back, previous, &to_previous)))
        fail("previous", rank);
    if (pass_on(rank, rounds, previous, next, &start))
        fail("message", rank);
    if (!rank)
        printf("%d processes: %.3f us a hop\n", ranks, (now() - start) / 1e3 / rounds / ranks);
    return 0;
}
