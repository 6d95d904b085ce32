/* SPDX-License-Identifier: BSD-2-Clause */
/* Two programs that wait for each other in vain, or refuse a request.
 *     pair poll|event|lock|socket|timeout|refuse PORT server|client */
#include "bed.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct address {
    uint64_t memory;
    uint32_t qpn, rkey;
    uint16_t lid;
};

static int meet(int port, bool is_server)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(port),
                                   .sin_addr = { htonl(INADDR_LOOPBACK) } };
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1, peer;

    if (is_server) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        BED_NEED(!bind(fd, (struct sockaddr *)&address, sizeof(address)) && !listen(fd, 1));
        peer = accept(fd, NULL, NULL);
        BED_NEED(peer >= 0);
        close(fd);
        return peer;
    }
    while (connect(fd, (struct sockaddr *)&address, sizeof(address))) {
        close(fd);
        usleep(10000);
        fd = socket(AF_INET, SOCK_STREAM, 0);
    }
    return fd;
}

static struct address exchange(struct bed *bed, int peer)
{
    struct address mine = { (uintptr_t)bed->memory, bed->qp[0]->qp_num, bed->mr->rkey,
                            bed_lid(bed->context) };
    struct address theirs;

    BED_NEED(write(peer, &mine, sizeof(mine)) == sizeof(mine));
    BED_NEED(read(peer, &theirs, sizeof(theirs)) == sizeof(theirs));
    bed_connect(bed->qp[0], theirs.qpn, theirs.lid);
    return theirs;
}

/* The client writes where the server allows no writes; both wait for the end of their QPs. */
static void refuse(struct bed *bed, int peer, const struct address *target)
{
    bool is_client = target;
    char byte = 0;

    if (!is_client)
        BED_NEED(!bed_receive(bed, 0, 8, 1));
    BED_NEED(write(peer, &byte, 1) == 1 && read(peer, &byte, 1) == 1);
    if (is_client)
        BED_NEED(!bed_rdma(bed, IBV_WR_RDMA_WRITE, target->memory, target->rkey, 64));
    BED_NEED(bed_poll(bed).status == (is_client ? IBV_WC_REM_ACCESS_ERR : IBV_WC_WR_FLUSH_ERR));
}

/* Waits, in the named way, for a message that the server never sends. */
static void wait_for_message(struct bed *bed, struct ibv_comp_channel *channel)
{
    struct ibv_cq *cq;
    void *context;

    BED_NEED(!bed_receive(bed, 0, 8, 1));
    if (!channel) {
        bed_poll(bed);
        return;
    }
    BED_NEED(!ibv_req_notify_cq(bed->cq, 0));
    BED_NEED(!ibv_get_cq_event(channel, &cq, &context));
}

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;

static void *take_lock(void *unused)
{
    pthread_mutex_lock(&held);
    return NULL;
}

static void join_locked_thread(void)
{
    pthread_t thread;

    pthread_mutex_lock(&held);
    BED_NEED(!pthread_create(&thread, NULL, take_lock, NULL));
    pthread_join(thread, NULL);
}

/* Not a deadlock: this program gives up by itself. */
static int poll_for_a_while(struct bed *bed)
{
    struct timespec begin, now;
    struct ibv_wc wc;

    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        BED_NEED(!ibv_poll_cq(bed->cq, 1, &wc));
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < 600);
    return 5;
}

int main(int count, char **words)
{
    struct ibv_comp_channel *channel = NULL;
    struct bed bed = { 0 };
    struct address theirs;
    bool is_server;
    int peer;

    BED_NEED(count == 4);
    is_server = !strcmp(words[3], "server");
    bed.context = ibv_open_device(*ibv_get_device_list(NULL));
    BED_NEED(bed.context);
    if (!strcmp(words[1], "event"))
        channel = ibv_create_comp_channel(bed.context);
    bed.pd = ibv_alloc_pd(bed.context);
    bed.cq = ibv_create_cq(bed.context, 16, NULL, channel, 0);
    bed.memory = calloc(1, BED_BYTES);
    bed.mr = ibv_reg_mr(bed.pd, bed.memory, BED_BYTES, IBV_ACCESS_LOCAL_WRITE);
    bed.qp[0] = bed_qp(&bed);
    peer = meet(atoi(words[2]), is_server);
    theirs = exchange(&bed, peer);
    if (!strcmp(words[1], "refuse")) {
        refuse(&bed, peer, is_server ? NULL : &theirs);
    } else if (!strcmp(words[1], "socket")) {
        BED_NEED(read(peer, &count, sizeof(count)) > 0);
    } else if (!is_server && !strcmp(words[1], "lock")) {
        join_locked_thread();
    } else if (!is_server && !strcmp(words[1], "timeout")) {
        return poll_for_a_while(&bed);
    } else if (!is_server) {
        wait_for_message(&bed, channel);
    }
    return 0;
}
