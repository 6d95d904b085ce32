/* SPDX-License-Identifier: BSD-2-Clause */
/* What 'latency' and 'bw' measure, over TCP sockets. */
#include "runs.h"
#include "bench/measure/sampling.h"
#include "bench/measure/stream.h"
#include "util/vtime.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define LIVENESS_MS 200 /* how often a waiting side checks that the other is alive */

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_storage storage;
};

struct tcp_pair {
    struct bench *bench;
    int fd;
    char *buffer;
    size_t size;
    uint64_t messages;
};

/* The address of rank 1's host: the end of its control connection, or loopback if that is not a
 * network socket. */
static socklen_t host_of_peer(struct bench *bench, union address *out)
{
    socklen_t length = sizeof(*out);
    int error = bench->rank ? getsockname(bench->control->fd[0], &out->any, &length)
                            : getpeername(bench->control->fd[1], &out->any, &length);

    if (!error && out->any.sa_family == AF_INET6)
        return sizeof(out->v6);
    if (error || out->any.sa_family != AF_INET)
        out->v4 =
            (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    return sizeof(out->v4);
}

/* The port is at the same offset in both address families. */
static void set_port(union address *address, in_port_t port)
{
    address->v4.sin_port = port;
}

static int listen_here(struct bench *bench, in_port_t *port)
{
    union address address;
    socklen_t length = host_of_peer(bench, &address);
    int fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    set_port(&address, 0);
    if (fd < 0)
        return bench_fail(bench, "socket: %s", strerror(errno));
    if (bind(fd, &address.any, length) || listen(fd, 1) || getsockname(fd, &address.any, &length)) {
        bench_fail(bench, "a TCP port to listen on: %s", strerror(errno));
        close(fd);
        return BENCH_FAILED;
    }
    *port = address.v4.sin_port;
    return fd;
}

static int accept_peer(struct bench *bench, int listener)
{
    struct pollfd ready = { .fd = listener, .events = POLLIN };
    uint64_t since = patience_now();
    int fd;

    while (poll(&ready, 1, LIVENESS_MS) <= 0) {
        if (!bench_alive(bench, since))
            return BENCH_FAILED;
    }
    fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    return fd < 0 ? bench_fail(bench, "accept: %s", strerror(errno)) : fd;
}

static int connect_peer(struct bench *bench, in_port_t port)
{
    union address address;
    socklen_t length = host_of_peer(bench, &address);
    int fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return bench_fail(bench, "socket: %s", strerror(errno));
    set_port(&address, port);
    if (connect(fd, &address.any, length)) {
        bench_fail(bench, "TCP connection to the other process: %s", strerror(errno));
        close(fd);
        return BENCH_FAILED;
    }
    return fd;
}

/* Collective. Returns a socket, or BENCH_FAILED. */
static int open_connection(struct bench *bench)
{
    struct timeval tick = { .tv_usec = LIVENESS_MS * 1000 };
    in_port_t port = 0, ports[CONTROL_RANKS_MAX];
    int fd, on = 1, listener = -1;

    if (bench->rank) {
        listener = listen_here(bench, &port);
        if (listener < 0)
            return BENCH_FAILED;
    }
    if (bench_exchange(bench, &port, sizeof(port), ports))
        fd = BENCH_FAILED;
    else
        fd = bench->rank ? accept_peer(bench, listener) : connect_peer(bench, ports[1]);
    if (listener >= 0)
        close(listener);
    if (fd < 0)
        return BENCH_FAILED;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tick, sizeof(tick));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tick, sizeof(tick));
    return fd;
}

typedef ssize_t transfer_fn(int fd, void *buffer, size_t size);

static ssize_t put(int fd, void *buffer, size_t size)
{
    return send(fd, buffer, size, MSG_NOSIGNAL);
}

static ssize_t get(int fd, void *buffer, size_t size)
{
    return recv(fd, buffer, size, 0);
}

/* Transfers 'size' bytes; checks that the other side is alive whenever nothing moves for a while.
 */
static int transfer(struct tcp_pair *pair, transfer_fn *call, size_t size)
{
    uint64_t since = 0;

    for (size_t done = 0; done < size;) {
        ssize_t moved = call(pair->fd, pair->buffer + done, size - done);

        if (moved > 0) {
            done += moved;
            since = 0;
            continue;
        }
        if (!moved || (errno != EAGAIN && errno != EINTR))
            return bench_fail(pair->bench, "TCP: %s",
                              moved ? strerror(errno) : "the other side closed the connection");
        if (!since)
            since = patience_now();
        if (!bench_alive(pair->bench, since))
            return BENCH_FAILED;
    }
    return BENCH_OK;
}

static int round_trip(struct tcp_pair *pair)
{
    if (pair->bench->rank)
        return transfer(pair, get, pair->size) || transfer(pair, put, pair->size);
    return transfer(pair, put, pair->size) || transfer(pair, get, pair->size);
}

static int run_batch(void *context, uint64_t warmup, struct histogram *samples)
{
    struct tcp_pair *pair = context;
    uint64_t total = warmup + pair->bench->settings->iterations;

    if (bench_barrier(pair->bench))
        return BENCH_FAILED;
    for (uint64_t i = 0; i < total; i++) {
        uint64_t start = clock_ticks();

        if (round_trip(pair))
            return BENCH_FAILED;
        if (i >= warmup)
            histogram_add(samples, clock_ticks() - start);
    }
    return BENCH_OK;
}

/* Sends all messages, then waits for one byte back. */
static int run_stream(void *context, double *value)
{
    struct tcp_pair *pair = context;
    bool sender = !pair->bench->rank;
    uint64_t start;

    if (bench_barrier(pair->bench))
        return BENCH_FAILED;
    start = clock_ticks();
    for (uint64_t i = 0; i < pair->messages; i++) {
        if (transfer(pair, sender ? put : get, pair->size))
            return BENCH_FAILED;
    }
    if (transfer(pair, sender ? get : put, 1))
        return BENCH_FAILED;
    *value = pair->messages * pair->size / (clock_ns(clock_ticks() - start) / 1e9) / 1e6;
    return BENCH_OK;
}

static int measure_latency(struct tcp_pair *pair, struct summary *out)
{
    return sampling_iterations(pair->bench, run_batch, pair, bench_clock.ns_per_tick / 1000 / 2,
                               out);
}

static int measure_bandwidth(struct tcp_pair *pair, struct summary *out)
{
    double warm_up;

    pair->messages = stream_messages(pair->bench, pair->size);
    if (run_stream(pair, &warm_up))
        return BENCH_FAILED;
    return sampling_runs(pair->bench, run_stream, pair, out);
}

/* Opens a panel with one curve, which is named after the quantity. */
static int sweep(struct tcp_pair *pair, const char *quantity, const char *unit, enum better better,
                 int (*measure)(struct tcp_pair *pair, struct summary *out))
{
    const struct number_list *sizes = &pair->bench->settings->sizes;

    bench_panel(pair->bench, &(struct panel_spec){ .quantity = quantity,
                                                   .unit = unit,
                                                   .axis = "size",
                                                   .axis_unit = "B",
                                                   .better = better,
                                                   .count = 1,
                                                   .names = &quantity });
    for (unsigned int i = 0; i < sizes->count; i++) {
        struct summary summary;

        /* A byte stream has no empty messages. */
        if (!sizes->value[i])
            continue;
        pair->size = sizes->value[i];
        if (measure(pair, &summary))
            return BENCH_FAILED;
        bench_point(pair->bench, 0, pair->size, &summary);
    }
    return BENCH_OK;
}

static int measure_all(struct tcp_pair *pair)
{
    if (sweep(pair, "latency", "us", BETTER_LOWER, measure_latency))
        return BENCH_FAILED;
    return sweep(pair, "bandwidth", "MB/s", BETTER_HIGHER, measure_bandwidth);
}

int tcp_run(struct bench *bench)
{
    const struct number_list *sizes = &bench->settings->sizes;
    struct tcp_pair pair = { .bench = bench, .size = 1 };
    int status = BENCH_FAILED;

    if (vtime.on)
        return bench_skip(bench, "sockets have no part in the modelled fabric");
    for (unsigned int i = 0; i < sizes->count; i++)
        pair.size = sizes->value[i] > pair.size ? sizes->value[i] : pair.size;
    pair.buffer = calloc(1, pair.size);
    if (!pair.buffer)
        return bench_fail(bench, "no %zu bytes of memory", pair.size);
    pair.fd = open_connection(bench);
    if (pair.fd >= 0) {
        status = measure_all(&pair);
        close(pair.fd);
    }
    free(pair.buffer);
    return status;
}
