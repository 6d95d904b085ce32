/* SPDX-License-Identifier: BSD-2-Clause */
#include "pair.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CASE_SECONDS 25

static int other_side = -1, report = -1;
static const char *side_name;

/* ---- running a case ---- */

void fail(const char *file, int line, const char *format, ...)
{
    char text[512];
    const char *base = strrchr(file, '/');
    va_list args;

    int n = snprintf(text, sizeof(text), "%s, %s:%d: ", side_name, base ? base + 1 : file, line);
    va_start(args, format);
    n += vsnprintf(text + n, sizeof(text) - n, format, args);
    va_end(args);
    if (write(report, text, n < (int)sizeof(text) ? n : (int)sizeof(text) - 1) < 0)
        perror("report");
    _exit(1);
}

static pid_t start_side(void (*function)(void), const char *name, int own, int others)
{
    pid_t pid = fork();

    if (pid)
        return pid;
    close(others);
    other_side = own;
    side_name = name;
    alarm(CASE_SECONDS);
    function();
    exit(0);
}

static const char *verdict(int status, bool dies)
{
    if (dies)
        return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL ? NULL : "did not die";
    if (WIFSIGNALED(status))
        return WTERMSIG(status) == SIGALRM ? "hangs" : "was killed by a signal";
    return WEXITSTATUS(status) ? "failed" : NULL;
}

static bool judge(const struct cm_case *c, const char *side, int status, int reports)
{
    char text[512] = "";
    const char *wrong = verdict(status, c->dies == side[0]);

    if (!wrong)
        return true;
    ssize_t n = read(reports, text, sizeof(text) - 1);
    text[n > 0 ? n : 0] = 0;
    printf("FAIL %s: %s side %s (status 0x%x)%s%s\n", c->name, side, wrong, status,
           *text ? ": " : "", text);
    return false;
}

static bool segment_is_left(void)
{
    const char *dir = getenv("VERBENA_SHM_DIR");
    char path[256];

    snprintf(path, sizeof(path), "%s/verbena-%u-%s", dir ? dir : "/dev/shm", (unsigned)geteuid(),
             getenv("VERBENA_FABRIC"));
    if (access(path, F_OK))
        return false;
    unlink(path);
    return true;
}

bool run_case(const struct cm_case *c)
{
    int words[2], reports[2], status_a = 0, status_p;
    char fabric[64];

    snprintf(fabric, sizeof(fabric), "cm-%d-%s", (int)getpid(), c->name);
    setenv("VERBENA_FABRIC", fabric, 1);
    fflush(stdout);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, words) || pipe(reports))
        return false;
    fcntl(reports[0], F_SETFL, O_NONBLOCK);
    report = reports[1];
    pid_t passive = start_side(c->passive, "passive", words[0], words[1]);
    pid_t active = c->active ? start_side(c->active, "active", words[1], words[0]) : 0;
    close(words[0]);
    close(words[1]);
    waitpid(passive, &status_p, 0);
    if (active)
        waitpid(active, &status_a, 0);
    bool good = judge(c, "passive", status_p, reports[0]);
    if (good && active)
        good = judge(c, "active", status_a, reports[0]);
    close(reports[0]);
    close(reports[1]);
    if (segment_is_left() && good) {
        printf("FAIL %s: a segment is left\n", c->name);
        good = false;
    }
    if (good)
        printf("ok %s\n", c->name);
    return good;
}

/* ---- messages outside the fabric ---- */

void tell(uint64_t value)
{
    CHECK(write(other_side, &value, sizeof(value)) == sizeof(value));
}

uint64_t hear(void)
{
    uint64_t value;

    CHECK(read(other_side, &value, sizeof(value)) == sizeof(value));
    return value;
}

/* ---- steps ---- */

bool readable(int fd, int timeout_ms)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };

    return poll(&p, 1, timeout_ms) == 1;
}

struct rdma_cm_event *expect_at(const char *file, int line, struct rdma_event_channel *channel,
                                enum rdma_cm_event_type type)
{
    struct rdma_cm_event *event;

    if (!readable(channel->fd, STEP_MS))
        fail(file, line, "no event, %s is due", rdma_event_str(type));
    if (rdma_get_cm_event(channel, &event))
        fail(file, line, "rdma_get_cm_event: errno %d", errno);
    if (event->event != type)
        fail(file, line, "%s (status %d), not %s", rdma_event_str(event->event), event->status,
             rdma_event_str(type));
    return event;
}

struct rdma_event_channel *open_channel(void)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();

    CHECK(channel);
    return channel;
}

struct sockaddr *ip_address(const char *ip, uint16_t port)
{
    static struct sockaddr_storage storage;
    struct sockaddr_in *in = (void *)&storage;
    struct sockaddr_in6 *in6 = (void *)&storage;

    memset(&storage, 0, sizeof(storage));
    if (inet_pton(AF_INET, ip, &in->sin_addr) == 1) {
        in->sin_family = AF_INET;
        in->sin_port = htons(port);
    } else {
        CHECK(inet_pton(AF_INET6, ip, &in6->sin6_addr) == 1);
        in6->sin6_family = AF_INET6;
        in6->sin6_port = htons(port);
    }
    return (struct sockaddr *)&storage;
}

struct rdma_cm_id *open_listener(struct rdma_event_channel *channel, enum rdma_port_space ps,
                                 int backlog)
{
    struct rdma_cm_id *id;

    CHECK(!rdma_create_id(channel, &id, NULL, ps));
    CHECK(!rdma_bind_addr(id, ip_address("127.0.0.1", 0)));
    CHECK(id->verbs && id->pd && rdma_get_src_port(id));
    CHECK(!rdma_listen(id, backlog));
    tell(ntohs(rdma_get_src_port(id)));
    return id;
}

struct rdma_cm_id *resolve(struct rdma_event_channel *channel, enum rdma_port_space ps,
                           const char *ip, uint16_t port)
{
    struct rdma_cm_id *id;

    CHECK(!rdma_create_id(channel, &id, NULL, ps));
    CHECK(!rdma_resolve_addr(id, NULL, ip_address(ip, port), 1000));
    EXPECT_ACK(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
    CHECK(id->verbs && id->pd);
    CHECK(!rdma_resolve_route(id, 1000));
    EXPECT_ACK(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
    return id;
}

struct rdma_cm_id *open_route(struct rdma_event_channel *channel, enum rdma_port_space ps)
{
    return resolve(channel, ps, "127.0.0.1", hear());
}

void make_qp(struct rdma_cm_id *id)
{
    struct ibv_qp_init_attr attr = {
        .cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
        .qp_type = id->qp_type,
        .sq_sig_all = 1,
    };

    CHECK(!rdma_create_qp(id, NULL, &attr));
    CHECK(id->qp && id->send_cq && id->recv_cq && id->send_cq_channel && id->recv_cq_channel);
}

void close_id(struct rdma_cm_id *id)
{
    if (id->qp)
        rdma_destroy_qp(id);
    CHECK(!rdma_destroy_id(id));
}

struct rdma_conn_param conn_param(const void *data, uint8_t length)
{
    return (struct rdma_conn_param){
        .private_data = data,
        .private_data_len = length,
        .responder_resources = 3,
        .initiator_depth = 2,
        .retry_count = 5,
        .rnr_retry_count = 6,
    };
}

struct rdma_cm_id *connect_passive(struct rdma_event_channel *channel, struct rdma_cm_id *listener)
{
    struct rdma_cm_event *event = EXPECT(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
    struct rdma_cm_id *id = event->id;

    CHECK(event->listen_id == listener && id != listener);
    rdma_ack_cm_event(event);
    make_qp(id);
    CHECK(!rdma_accept(id, NULL));
    EXPECT_ACK(channel, RDMA_CM_EVENT_ESTABLISHED);
    return id;
}

struct rdma_cm_id *connect_active(struct rdma_event_channel *channel)
{
    struct rdma_cm_id *id = open_route(channel, RDMA_PS_TCP);
    struct rdma_conn_param param = conn_param(NULL, 0);

    make_qp(id);
    CHECK(!rdma_connect(id, &param));
    EXPECT_ACK(channel, RDMA_CM_EVENT_ESTABLISHED);
    return id;
}

void send_text(struct rdma_cm_id *id, const char *text)
{
    char buffer[64] = "";
    struct ibv_wc wc;
    struct ibv_mr *mr = rdma_reg_msgs(id, buffer, sizeof(buffer));

    CHECK(mr);
    snprintf(buffer, sizeof(buffer), "%s", text);
    CHECK(!rdma_post_send(id, NULL, buffer, sizeof(buffer), mr, 0));
    CHECK(rdma_get_send_comp(id, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
    CHECK(!rdma_dereg_mr(mr));
}

void receive_text(struct rdma_cm_id *id, const char *text, size_t skip)
{
    char buffer[128] = "";
    struct ibv_wc wc;
    struct ibv_mr *mr = rdma_reg_msgs(id, buffer, sizeof(buffer));

    CHECK(mr);
    CHECK(!rdma_post_recv(id, NULL, buffer, sizeof(buffer), mr));
    tell(1);
    CHECK(rdma_get_recv_comp(id, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
    CHECK(strcmp(buffer + skip, text) == 0);
    CHECK(!rdma_dereg_mr(mr));
}
