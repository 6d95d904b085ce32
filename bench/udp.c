/* SPDX-License-Identifier: BSD-2-Clause */
/* UDP with nothing around it: a ping-pong that polls, and a stream with UDP_SEGMENT and UDP_GRO.
 *
 *     bench-udp latency|stream SIZE COUNT             the server
 *     bench-udp latency|stream SIZE COUNT ADDRESS     the client, which prints microseconds
 *
 * Of a ping-pong, these are half of the median round trip. Of a stream, SIZE is that of a datagram,
 * and the server reports what it has received: datagrams are lost if it is slower. */
#include "harness.h"

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PORT      18599
#define AT_ONCE   60000
#define BUFFER    (8 << 20)
#define GIVE_UP_S 20
#define IDLE_S    0.2 /* the stream has ended */

static char bytes[65536];

static int open_socket(const char *peer)
{
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(PORT) };
    int fd = socket(AF_INET, SOCK_DGRAM, 0), size = BUFFER, on = 1;

    if (fd < 0)
        err(1, "socket");
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)))
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
    setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof(on));
    if (!peer && bind(fd, (struct sockaddr *)&address, sizeof(address)))
        err(1, "bind");
    if (peer && (inet_pton(AF_INET, peer, &address.sin_addr) != 1 ||
                 connect(fd, (struct sockaddr *)&address, sizeof(address))))
        errx(1, "%s is no address of a host", peer);
    return fd;
}

/* Polls until something arrives. A server adopts the first client. */
static ssize_t receive(int fd, double limit_s)
{
    double started = harness_now();
    ssize_t got;
    unsigned tries = 0;

    while ((got = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT)) < 0)
        if (!(++tries % 1024) && harness_now() - started > limit_s)
            return 0;
    return got;
}

static void adopt_client(int fd, size_t size)
{
    struct sockaddr_in from;
    socklen_t length = sizeof(from);

    if (recvfrom(fd, bytes, sizeof(bytes), 0, (struct sockaddr *)&from, &length) < 0 ||
        connect(fd, (struct sockaddr *)&from, length) || send(fd, bytes, size, 0) < 0)
        err(1, "the first datagram");
}

static void greet_server(int fd, size_t size)
{
    double started = harness_now();

    do {
        if (harness_now() - started > GIVE_UP_S)
            errx(1, "no server");
        send(fd, bytes, size, 0);
    } while (!receive(fd, 0.1));
}

static int in_order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void ping_pong(int fd, bool client, size_t size, unsigned count)
{
    double *times = calloc(count, sizeof(*times));

    if (!times)
        err(1, "calloc");
    for (unsigned i = 0; i < count; i++) {
        double started = harness_now();

        if (client && send(fd, bytes, size, 0) < 0)
            err(1, "send");
        if (!receive(fd, GIVE_UP_S))
            errx(1, "a datagram was lost");
        if (!client && send(fd, bytes, size, 0) < 0)
            err(1, "send");
        times[i] = harness_now() - started;
    }
    qsort(times, count, sizeof(*times), in_order);
    if (client)
        printf("{ \"usec\": %.3f }\n", times[count / 2] / 2 * 1e6);
    free(times);
}

static void send_stream(int fd, size_t size, unsigned count)
{
    unsigned at_once = AT_ONCE / size;
    int segment = size;
    double usec;

    if (setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof(segment)))
        err(1, "UDP_SEGMENT");
    for (unsigned sent = 0; sent < count; sent += at_once)
        if (send(fd, bytes, at_once * size, 0) < 0)
            err(1, "send");
    segment = 0;
    setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof(segment));
    if (recv(fd, &usec, sizeof(usec), 0) != sizeof(usec))
        err(1, "the server's report");
    printf("{ \"usec\": %.4f }\n", usec);
}

static void receive_stream(int fd, size_t size)
{
    double first = 0, last = 0, usec;
    size_t total = 0, got;

    while ((got = receive(fd, first ? IDLE_S : GIVE_UP_S))) {
        last = harness_now();
        if (first)
            total += got;
        else
            first = last;
    }
    usec = total ? (last - first) * 1e6 / (total / size) : 0;
    if (send(fd, &usec, sizeof(usec), 0) < 0)
        err(1, "send");
}

int main(int argc, char **argv)
{
    bool stream, client = argc == 5;
    size_t size;
    unsigned count;
    int fd;

    if ((argc != 4 && argc != 5) || (strcmp(argv[1], "latency") && strcmp(argv[1], "stream")))
        errx(2, "usage: bench-udp latency|stream SIZE COUNT [ADDRESS]");
    stream = !strcmp(argv[1], "stream");
    size = harness_number("SIZE", argv[2], 8, 60000);
    count = harness_number("COUNT", argv[3], 1, 100000000);
    alarm(2 * GIVE_UP_S);
    fd = open_socket(client ? argv[4] : NULL);
    if (client)
        greet_server(fd, size);
    else
        adopt_client(fd, size);
    if (!stream)
        ping_pong(fd, client, size, count);
    else if (client)
        send_stream(fd, size, count);
    else
        receive_stream(fd, size);
    return 0;
}
