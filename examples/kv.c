/* SPDX-License-Identifier: BSD-2-Clause */
/* A small key-value store on verbs, and five bugs to find with "verbena check":
 *
 *     kv server [BUG]        kv client [BUG]
 *
 * The client puts values, gets them back, and copies values between keys: it reads one from the
 * server's memory and puts it under another key without looking at it. docs/check.md tells the story
 * of each bug: reuse, fence, rnr, wakeup, leak. */
#include <verbena.h>

#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PORT     19875
#define KEYS     16
#define ROUNDS   40
#define REQUESTS 2 /* in flight */

enum { PUT, GET };

struct message {
    uint32_t op, key;
    uint64_t value;
};

struct address {
    uint64_t values;
    uint32_t qpn, rkey;
    uint16_t lid;
};

/* All registered memory. */
struct memory {
    uint64_t values[KEYS]; /* of the server */
    struct message out[REQUESTS], in[REQUESTS];
};

struct store {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    struct memory *memory;
    struct message answers[REQUESTS]; /* of the client */
    int peer; /* socket, which the peer closes when it is done */
};

static const char *bug = "";

static bool has_bug(const char *name)
{
    return !strcmp(bug, name);
}

static bool failed(const char *what)
{
    perror(what);
    return false;
}

/* ---- setting up ---- */

static void close_store(struct store *store)
{
    if (store->qp)
        ibv_destroy_qp(store->qp);
    if (store->mr)
        ibv_dereg_mr(store->mr);
    if (store->cq)
        ibv_destroy_cq(store->cq);
    if (store->channel)
        ibv_destroy_comp_channel(store->channel);
    if (store->pd)
        ibv_dealloc_pd(store->pd);
    if (store->context)
        ibv_close_device(store->context);
    if (store->peer >= 0)
        close(store->peer);
    free(store->memory);
}

static bool open_store(struct store *store)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_qp_init_attr init = { .cap = { 16, 16, 1, 1, 0 }, .qp_type = IBV_QPT_RC };

    if (!list || !*list || !(store->context = ibv_open_device(*list)))
        return failed("ibv_open_device");
    ibv_free_device_list(list);
    store->memory = calloc(1, sizeof(*store->memory));
    if (!store->memory || !(store->pd = ibv_alloc_pd(store->context)) ||
        !(store->channel = ibv_create_comp_channel(store->context)) ||
        !(store->cq = ibv_create_cq(store->context, 64, NULL, store->channel, 0)))
        return failed("cannot create objects");
    store->mr = ibv_reg_mr(store->pd, store->memory, sizeof(*store->memory),
                           IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
    if (!store->mr)
        return failed("ibv_reg_mr");
    init.send_cq = init.recv_cq = store->cq;
    store->qp = ibv_create_qp(store->pd, &init);
    if (!store->qp && has_bug("leak"))
        store->mr = NULL; /* as if the error path had been written before there was a region */
    return store->qp || failed("ibv_create_qp");
}

static bool meet(struct store *store, bool is_server)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(PORT),
                                   .sin_addr = { htonl(INADDR_LOOPBACK) } };
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;

    if (!is_server) {
        store->peer = fd;
        return !connect(fd, (struct sockaddr *)&address, sizeof(address)) || failed("connect");
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 1)) {
        close(fd);
        return failed("listen");
    }
    store->peer = accept(fd, NULL, NULL);
    close(fd);
    return store->peer >= 0 || failed("accept");
}

static bool connect_qp(struct ibv_qp *qp, const struct address *to)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
                                .port_num = 1,
                                .qp_access_flags = IBV_ACCESS_REMOTE_READ };

    if (ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
        return false;
    attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR,
                                 .path_mtu = IBV_MTU_1024,
                                 .dest_qp_num = to->qpn,
                                 .max_dest_rd_atomic = 1,
                                 .min_rnr_timer = 12,
                                 .ah_attr = { .dlid = to->lid, .port_num = 1 } };
    if (ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
        return false;
    attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
                                 .timeout = 14,
                                 .retry_cnt = 7,
                                 .rnr_retry = has_bug("rnr") ? 1 : 7,
                                 .max_rd_atomic = 1 };
    return !ibv_modify_qp(qp, &attr,
                          IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                              IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

/* ---- work requests ---- */

static bool receive(struct store *store, unsigned slot)
{
    struct message *to = &store->memory->in[slot];
    struct ibv_sge sge = { (uintptr_t)to, sizeof(*to), store->mr->lkey };
    struct ibv_recv_wr *bad, wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 };

    return !ibv_post_recv(store->qp, &wr, &bad) || failed("ibv_post_recv");
}

static bool send_message(struct store *store, unsigned slot, unsigned flags)
{
    struct message *from = &store->memory->out[slot];
    struct ibv_sge sge = { (uintptr_t)from, sizeof(*from), store->mr->lkey };
    struct ibv_send_wr *bad, wr = { .wr_id = slot,
                                    .sg_list = &sge,
                                    .num_sge = 1,
                                    .opcode = IBV_WR_SEND,
                                    .send_flags = IBV_SEND_SIGNALED | flags };

    return !ibv_post_send(store->qp, &wr, &bad) || failed("ibv_post_send");
}

/* Reads a value of the server into a request. */
static bool read_value(struct store *store, const struct address *server, uint32_t key,
                       uint64_t *to)
{
    struct ibv_sge sge = { (uintptr_t)to, sizeof(*to), store->mr->lkey };
    struct ibv_send_wr *bad, wr = { .sg_list = &sge,
                                    .num_sge = 1,
                                    .opcode = IBV_WR_RDMA_READ,
                                    .wr.rdma = { server->values + key * sizeof(*to),
                                                 server->rkey } };

    return !ibv_post_send(store->qp, &wr, &bad) || failed("ibv_post_send");
}

/* Waits for a completion. False: there is none to wait for, because the peer has gone, or it failed;
 * 'gone' tells which. */
static bool next_completion(struct store *store, struct ibv_wc *wc, bool *gone)
{
    struct pollfd list[] = { { .fd = store->channel->fd, .events = POLLIN },
                             { .fd = store->peer, .events = POLLIN } };
    bool armed = false;
    struct ibv_cq *cq;
    void *context;

    *gone = false;
    for (;;) {
        int count = ibv_poll_cq(store->cq, 1, wc);

        if (count)
            return count == 1 && wc->status == IBV_WC_SUCCESS;
        if (!armed) {
            if (ibv_req_notify_cq(store->cq, 0))
                return failed("ibv_req_notify_cq");
            armed = true;
            if (!has_bug("wakeup"))
                continue; /* a completion may have come before the CQ was armed */
        }
        if (poll(list, 2, -1) < 0)
            return failed("poll");
        if (list[0].revents) {
            if (ibv_get_cq_event(store->channel, &cq, &context))
                return failed("ibv_get_cq_event");
            ibv_ack_cq_events(cq, 1);
            armed = false;
        } else if (list[1].revents) {
            *gone = true;
            return false;
        }
    }
}

/* ---- the server ---- */

static bool reply(struct store *store, unsigned slot)
{
    const struct message *request = &store->memory->in[slot];
    struct message *answer = &store->memory->out[slot];
    bool late = has_bug("rnr");

    *answer = *request;
    if (request->op == PUT)
        store->memory->values[request->key % KEYS] = request->value;
    answer->value = store->memory->values[request->key % KEYS];
    return (late || receive(store, slot)) && send_message(store, slot, 0) &&
           (!late || receive(store, slot));
}

/* A client may send its next request when it has the answer to the last one. By then the send of
 * that answer need not have completed here: its acknowledgement may be late. Until then the answer's
 * buffer belongs to the adapter. */
static bool serve(struct store *store)
{
    bool sends[REQUESTS] = { false }, has_request[REQUESTS] = { false }, gone;
    struct ibv_wc wc;

    while (next_completion(store, &wc, &gone)) {
        unsigned slot = wc.wr_id;

        if (wc.opcode == IBV_WC_RECV)
            has_request[slot] = true;
        else
            sends[slot] = false;
        if (!has_request[slot] || sends[slot])
            continue;
        has_request[slot] = false;
        sends[slot] = true;
        if (!reply(store, slot))
            return false;
    }
    return gone;
}

/* ---- the client ---- */

/* Waits until the requests in flight have completed and were answered. */
static bool await(struct store *store, unsigned requests)
{
    struct ibv_wc wc;
    bool gone;

    for (unsigned i = 0; i < 2 * requests; i++) {
        if (!next_completion(store, &wc, &gone)) {
            fprintf(stderr, gone ? "the server has gone\n" : "a request has failed\n");
            return false;
        }
        if (wc.opcode != IBV_WC_RECV)
            continue;
        store->answers[wc.wr_id] = store->memory->in[wc.wr_id]; /* then its buffer is the adapter's */
        if (!receive(store, wc.wr_id))
            return false;
    }
    return true;
}

static bool request(struct store *store, unsigned slot, uint32_t op, uint32_t key, uint64_t value)
{
    store->memory->out[slot] = (struct message){ op, key, value };
    return send_message(store, slot, 0);
}

/* Two puts in flight, then two gets. */
static bool put_and_get(struct store *store, uint32_t key, uint64_t value)
{
    unsigned second = has_bug("reuse") ? 0 : 1;

    if (!request(store, 0, PUT, key, value) || !request(store, second, PUT, key + 1, value + 1) ||
        !await(store, 2) || !request(store, 0, GET, key, 0) || !await(store, 1))
        return false;
    for (unsigned i = 0; i < REQUESTS; i++)
        verbena_assert(store->answers[i].key != key || store->answers[i].value == value);
    return true;
}

/* The send may not start before the read has filled the request. */
static bool copy_value(struct store *store, const struct address *server, uint32_t from, uint32_t to,
                       uint64_t expected)
{
    struct message *out = &store->memory->out[0];

    *out = (struct message){ PUT, to, 0 };
    if (!read_value(store, server, from, &out->value) ||
        !send_message(store, 0, has_bug("fence") ? 0 : IBV_SEND_FENCE) || !await(store, 1))
        return false;
    for (unsigned i = 0; i < REQUESTS; i++)
        verbena_assert(store->answers[i].key != to || store->answers[i].value == expected);
    return true;
}

static bool use(struct store *store, const struct address *server)
{
    bool good = true;

    for (uint32_t i = 0; good && i < ROUNDS; i++) {
        uint32_t key = i % (KEYS / 4) * 4;

        memset(store->answers, 0xff, sizeof(store->answers));
        good = put_and_get(store, key, 1000 + i) && copy_value(store, server, key, key + 2, 1000 + i);
    }
    return good;
}

/* ---- both ---- */

static bool run(struct store *store, bool is_server)
{
    struct ibv_port_attr port;
    struct address mine, theirs;
    char byte = 0;

    if (!open_store(store) || ibv_query_port(store->context, 1, &port))
        return false;
    mine = (struct address){ (uintptr_t)store->memory->values, store->qp->qp_num, store->mr->rkey,
                             port.lid };
    if (!meet(store, is_server) || write(store->peer, &mine, sizeof(mine)) != sizeof(mine) ||
        recv(store->peer, &theirs, sizeof(theirs), MSG_WAITALL) != sizeof(theirs) ||
        !connect_qp(store->qp, &theirs))
        return failed("cannot connect");
    for (unsigned i = 0; i < REQUESTS; i++) {
        if (!receive(store, i))
            return false;
    }
    /* Both have posted receives. */
    if (write(store->peer, &byte, 1) != 1 || recv(store->peer, &byte, 1, 0) != 1)
        return failed("the peer has gone");
    return is_server ? serve(store) : use(store, &theirs);
}

int main(int count, char **words)
{
    struct store store = { .peer = -1 };
    bool good;

    if (count < 2 || count > 3 || (strcmp(words[1], "server") && strcmp(words[1], "client"))) {
        fprintf(stderr, "usage: kv server|client [reuse|fence|rnr|wakeup|leak]\n");
        return 2;
    }
    if (count == 3)
        bug = words[2];
    good = run(&store, !strcmp(words[1], "server"));
    close_store(&store);
    return good ? 0 : 1;
}
