/* The same questions as 'latency' and 'bw', asked of sockets. */
#include "bench/repeat.h"
#include "bench/stream.h"
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

#define LOOK_AROUND_MS 200 /* how often a waiting side looks whether the other is alive */

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_storage storage;
};

struct pipe {
    struct bench *bench;
    int fd;
    char *buffer;
    size_t size;
    uint64_t messages;
};

/* The host of rank 1: where its control connection ends, or this one if that is no network's. */
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

/* The port lies at the same place in both families. */
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
    uint64_t since = monotonic_ns();
    int fd;

    while (poll(&ready, 1, LOOK_AROUND_MS) <= 0) {
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
    struct timeval tick = { .tv_usec = LOOK_AROUND_MS * 1000 };
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

/* Moves all of it, and looks around whenever nothing has moved for a while. */
static int transfer(struct pipe *pipe, transfer_fn *call, size_t size)
{
    uint64_t since = 0;

    for (size_t done = 0; done < size;) {
        ssize_t moved = call(pipe->fd, pipe->buffer + done, size - done);

        if (moved > 0) {
            done += moved;
            since = 0;
            continue;
        }
        if (!moved || (errno != EAGAIN && errno != EINTR))
            return bench_fail(pipe->bench, "TCP: %s",
                              moved ? strerror(errno) : "the other side closed the connection");
        if (!since)
            since = monotonic_ns();
        if (!bench_alive(pipe->bench, since))
            return BENCH_FAILED;
    }
    return BENCH_OK;
}

static int round_trip(struct pipe *pipe)
{
    if (pipe->bench->rank)
        return transfer(pipe, get, pipe->size) || transfer(pipe, put, pipe->size);
    return transfer(pipe, put, pipe->size) || transfer(pipe, get, pipe->size);
}

static int run_batch(void *context, uint64_t warmup, struct histogram *samples)
{
    struct pipe *pipe = context;
    uint64_t total = warmup + pipe->bench->settings->iterations;

    if (bench_barrier(pipe->bench))
        return BENCH_FAILED;
    for (uint64_t i = 0; i < total; i++) {
        uint64_t start = clock_ticks();

        if (round_trip(pipe))
            return BENCH_FAILED;
        if (i >= warmup)
            histogram_add(samples, clock_ticks() - start);
    }
    return BENCH_OK;
}

/* All messages, then one byte back. */
static int run_stream(void *context, double *value)
{
    struct pipe *pipe = context;
    bool sender = !pipe->bench->rank;
    uint64_t start;

    if (bench_barrier(pipe->bench))
        return BENCH_FAILED;
    start = clock_ticks();
    for (uint64_t i = 0; i < pipe->messages; i++) {
        if (transfer(pipe, sender ? put : get, pipe->size))
            return BENCH_FAILED;
    }
    if (transfer(pipe, sender ? get : put, 1))
        return BENCH_FAILED;
    *value = pipe->messages * pipe->size / (clock_ns(clock_ticks() - start) / 1e9) / 1e6;
    return BENCH_OK;
}

static int measure_latency(struct pipe *pipe, struct summary *out)
{
    return repeat_samples(pipe->bench, run_batch, pipe, bench_clock.ns_per_tick / 1000 / 2, out);
}

static int measure_bandwidth(struct pipe *pipe, struct summary *out)
{
    double warm_up;

    pipe->messages = stream_messages(pipe->bench, pipe->size);
    if (run_stream(pipe, &warm_up))
        return BENCH_FAILED;
    return repeat_values(pipe->bench, run_stream, pipe, out);
}

/* One panel with one curve of that name. */
static int sweep(struct pipe *pipe, const char *quantity, const char *unit, enum better better,
                 int (*measure)(struct pipe *pipe, struct summary *out))
{
    const struct number_list *sizes = &pipe->bench->settings->sizes;

    bench_panel(pipe->bench, &(struct panel_spec){ .quantity = quantity,
                                                   .unit = unit,
                                                   .axis = "size",
                                                   .axis_unit = "B",
                                                   .better = better,
                                                   .count = 1,
                                                   .names = &quantity });
    for (unsigned int i = 0; i < sizes->count; i++) {
        struct summary figure;

        /* A stream of bytes knows no empty message. */
        if (!sizes->value[i])
            continue;
        pipe->size = sizes->value[i];
        if (measure(pipe, &figure))
            return BENCH_FAILED;
        bench_point(pipe->bench, 0, pipe->size, &figure);
    }
    return BENCH_OK;
}

static int measure_all(struct pipe *pipe)
{
    if (sweep(pipe, "latency", "us", BETTER_LOWER, measure_latency))
        return BENCH_FAILED;
    return sweep(pipe, "bandwidth", "MB/s", BETTER_HIGHER, measure_bandwidth);
}

static int run(struct bench *bench)
{
    const struct number_list *sizes = &bench->settings->sizes;
    struct pipe pipe = { .bench = bench, .size = 1 };
    int status = BENCH_FAILED;

    if (vtime.on)
        return bench_skip(bench, "sockets have no part in the modelled fabric");
    for (unsigned int i = 0; i < sizes->count; i++)
        pipe.size = sizes->value[i] > pipe.size ? sizes->value[i] : pipe.size;
    pipe.buffer = calloc(1, pipe.size);
    if (!pipe.buffer)
        return bench_fail(bench, "no %zu bytes of memory", pipe.size);
    pipe.fd = open_connection(bench);
    if (pipe.fd >= 0) {
        status = measure_all(&pipe);
        close(pipe.fd);
    }
    free(pipe.buffer);
    return status;
}

const struct experiment experiment_tcp = {
    .name = "tcp",
    .group = "comparison",
    .title = "What do sockets give on the same machines?",
    .source = "VI Architecture section 3.3",
    .options = "--sizes 1..4M",
    .quick = "--sizes 8,1K,64K --iterations 200 --repetitions 3",
    .ranks = 2,
    .run = run,
};
