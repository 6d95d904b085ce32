/* SPDX-License-Identifier: BSD-2-Clause */
/* The far end of a connection, in this process or in another. */
#include "side.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum command {
    FAR_INFO,
    FAR_INIT,
    FAR_CONNECT,
    FAR_POST_RECV,
    FAR_POLL_RECV,
    FAR_ASYNC,
    FAR_ERROR,
    FAR_DESTROY_QP,
    FAR_SRQ_LIMIT,
    FAR_UNMAP,
    FAR_DEREG,
    FAR_STATE,
    FAR_FILL,
    FAR_READ,
    FAR_ARM,
    FAR_EVENT,
    FAR_CLOSE,
};

#define READ_BYTES 256

struct far_request {
    enum command command;
    struct rig_addr addr;
    struct rig_timing timing;
    uint64_t wr_id;
    uint64_t offset;
    uint32_t len;
    uint32_t lkey;
    int value;
};

struct far_reply {
    int result;
    struct side_info info;
    struct ibv_wc wc;
    uint8_t bytes[READ_BYTES];
};

static int connect_side(struct side *side, const struct far_request *request)
{
    int err =
        rig_qp_state(side->qp) == IBV_QPS_INIT ? 0 : rig_qp_init(side->qp, side->config.qp_access);

    if (!err)
        err = rig_qp_rtr(side->qp, &request->addr, &request->timing);
    if (!err)
        err = rig_qp_rts(side->qp, 0, &request->timing);
    return err;
}

static int destroy_qp(struct side *side)
{
    int err = ibv_destroy_qp(side->qp);

    side->qp = NULL;
    return err;
}

static int set_srq_limit(struct side *side, int limit)
{
    struct ibv_srq_attr attr = { .srq_limit = limit };

    return ibv_modify_srq(side->srq, &attr, IBV_SRQ_LIMIT);
}

static int dereg(struct side *side)
{
    int err = ibv_dereg_mr(side->mr);

    side->mr = NULL;
    return err;
}

/* Sleeps in poll(), outside the library. */
static int take_event(struct side *side, int timeout_ms)
{
    struct pollfd fd = { .fd = side->channel->fd, .events = POLLIN };
    struct ibv_cq *cq;
    void *context;

    if (poll(&fd, 1, timeout_ms) != 1 || ibv_get_cq_event(side->channel, &cq, &context))
        return -1;
    ibv_ack_cq_events(cq, 1);
    return 0;
}

static int carry_out(struct side *side, const struct far_request *request, struct far_reply *reply)
{
    switch (request->command) {
    case FAR_INFO:
        side_info(side, &reply->info);
        return 0;
    case FAR_INIT:
        return rig_qp_init(side->qp, side->config.qp_access);
    case FAR_CONNECT:
        return connect_side(side, request);
    case FAR_POST_RECV:
        return side_post_recv(side, request->wr_id, request->offset, request->len,
                              request->lkey ? request->lkey : side->mr->lkey);
    case FAR_POLL_RECV:
        return rig_poll(side->recv_cq, &reply->wc, request->value);
    case FAR_ASYNC:
        return side_async(side, request->value);
    case FAR_ERROR:
        return rig_qp_error(side->qp);
    case FAR_DESTROY_QP:
        return destroy_qp(side);
    case FAR_SRQ_LIMIT:
        return set_srq_limit(side, request->value);
    case FAR_UNMAP:
        return side_unmap(side);
    case FAR_DEREG:
        return dereg(side);
    case FAR_STATE:
        return rig_qp_state(side->qp);
    case FAR_FILL:
        memset(side->buf, request->value, side->config.bytes);
        return 0;
    case FAR_READ:
        memcpy(reply->bytes, side->buf + request->offset, request->len);
        return 0;
    case FAR_ARM:
        return ibv_req_notify_cq(side->recv_cq, 0);
    case FAR_EVENT:
        return take_event(side, request->value);
    case FAR_CLOSE:
        side_close(side);
        return 0;
    }
    return EINVAL;
}

static void serve(int fd, const struct side_config *config)
{
    struct side side;
    struct far_request request;

    side_open(&side, config);
    while (recv(fd, &request, sizeof(request), 0) == sizeof(request)) {
        struct far_reply reply = { 0 };
        reply.result = carry_out(&side, &request, &reply);
        if (send(fd, &reply, sizeof(reply), MSG_NOSIGNAL) < 0 || request.command == FAR_CLOSE)
            break;
    }
    exit(0);
}

static void start_process(struct far *far, const struct side_config *config)
{
    int pair[2];

    CHECK_INT(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    far->pid = fork();
    CHECK(far->pid >= 0, "fork: %s", strerror(errno));
    if (far->pid == 0) {
        close(pair[0]);
        serve(pair[1], config);
    }
    close(pair[1]);
    far->fd = pair[0];
}

void far_open(struct far *far, bool remote, const struct side_config *config)
{
    memset(far, 0, sizeof(*far));
    far->remote = remote;
    if (remote)
        start_process(far, config);
    else
        side_open(&far->local, config);
}

static int ask(struct far *far, const struct far_request *request, struct far_reply *reply)
{
    memset(reply, 0, sizeof(*reply));
    if (!far->remote)
        return carry_out(&far->local, request, reply);
    CHECK(send(far->fd, request, sizeof(*request), MSG_NOSIGNAL) == sizeof(*request),
          "the far process is gone");
    CHECK(recv(far->fd, reply, sizeof(*reply), 0) == sizeof(*reply), "the far process is gone");
    return reply->result;
}

static int ask_simple(struct far *far, enum command command, int value)
{
    struct far_request request = { .command = command, .value = value };
    struct far_reply reply;

    return ask(far, &request, &reply);
}

void far_info(struct far *far, struct side_info *info)
{
    struct far_request request = { .command = FAR_INFO };
    struct far_reply reply;

    ask(far, &request, &reply);
    *info = reply.info;
}

int far_init(struct far *far)
{
    return ask_simple(far, FAR_INIT, 0);
}

int far_connect(struct far *far, const struct rig_addr *to, const struct rig_timing *timing)
{
    struct far_request request = { .command = FAR_CONNECT, .addr = *to, .timing = *timing };
    struct far_reply reply;

    return ask(far, &request, &reply);
}

int far_post_recv_key(struct far *far, uint64_t wr_id, uint64_t offset, uint32_t len, uint32_t lkey)
{
    struct far_request request = {
        .command = FAR_POST_RECV, .wr_id = wr_id, .offset = offset, .len = len, .lkey = lkey
    };
    struct far_reply reply;

    return ask(far, &request, &reply);
}

int far_post_recv(struct far *far, uint64_t wr_id, uint64_t offset, uint32_t len)
{
    return far_post_recv_key(far, wr_id, offset, len, 0);
}

int far_poll_recv(struct far *far, struct ibv_wc *wc, unsigned timeout_ms)
{
    struct far_request request = { .command = FAR_POLL_RECV, .value = timeout_ms };
    struct far_reply reply;
    int n = ask(far, &request, &reply);

    *wc = reply.wc;
    return n;
}

int far_async(struct far *far, int timeout_ms)
{
    return ask_simple(far, FAR_ASYNC, timeout_ms);
}

int far_error(struct far *far)
{
    return ask_simple(far, FAR_ERROR, 0);
}

int far_destroy_qp(struct far *far)
{
    return ask_simple(far, FAR_DESTROY_QP, 0);
}

int far_set_srq_limit(struct far *far, uint32_t limit)
{
    return ask_simple(far, FAR_SRQ_LIMIT, limit);
}

int far_unmap(struct far *far)
{
    return ask_simple(far, FAR_UNMAP, 0);
}

int far_dereg(struct far *far)
{
    return ask_simple(far, FAR_DEREG, 0);
}

enum ibv_qp_state far_state(struct far *far)
{
    return ask_simple(far, FAR_STATE, 0);
}

void far_fill(struct far *far, uint8_t value)
{
    ask_simple(far, FAR_FILL, value);
}

int far_arm(struct far *far)
{
    return ask_simple(far, FAR_ARM, 0);
}

int far_event(struct far *far, int timeout_ms)
{
    return ask_simple(far, FAR_EVENT, timeout_ms);
}

void far_read(struct far *far, uint64_t offset, uint8_t *out, uint32_t len)
{
    struct far_request request = { .command = FAR_READ, .offset = offset, .len = len };
    struct far_reply reply;

    CHECK(len <= READ_BYTES, "at most %d bytes", READ_BYTES);
    ask(far, &request, &reply);
    memcpy(out, reply.bytes, len);
}

void far_kill(struct far *far)
{
    CHECK(far->remote, "only another process can be killed");
    kill(far->pid, SIGKILL);
    waitpid(far->pid, NULL, 0);
    far->pid = 0;
}

void far_close(struct far *far)
{
    int status = 0;

    if (far->remote && !far->pid)
        return;
    ask_simple(far, FAR_CLOSE, 0);
    if (far->remote) {
        waitpid(far->pid, &status, 0);
        CHECK(WIFEXITED(status) && !WEXITSTATUS(status), "the far process ended with %#x", status);
    }
}
