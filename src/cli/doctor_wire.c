/* SPDX-License-Identifier: BSD-2-Clause */
/* What --wire needs, tried on the loopback interface. */
#include "doctor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROCE_PORT   4791
#define ANSWER_MS   1000
#define GOOD_BUFFER (1 << 20)

static int open_port(const struct sockaddr_in *address)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), one = 1;

    if (fd < 0)
        return -1;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)) ||
        bind(fd, (const struct sockaddr *)address, sizeof(*address))) {
        int err = errno;

        close(fd);
        errno = err;
        return -1;
    }
    return fd;
}

/* A datagram that this process sends to itself. Other processes may share the port and get it. */
static bool arrives(int fd, const struct sockaddr_in *address)
{
    struct pollfd wait = { .fd = fd, .events = POLLIN };

    return sendto(fd, "", 1, 0, (const struct sockaddr *)address, sizeof(*address)) == 1 &&
           poll(&wait, 1, ANSWER_MS) == 1;
}

static long largest_buffer(void)
{
    FILE *file = fopen("/proc/sys/net/core/rmem_max", "re");
    long bytes = 0;

    if (file && fscanf(file, "%ld", &bytes) != 1)
        bytes = 0;
    if (file)
        fclose(file);
    return bytes;
}

static const char *offload(int fd)
{
    int zero = 0, one = 1;
    bool cuts = !setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, &zero, sizeof(zero));
    bool joins = !setsockopt(fd, IPPROTO_UDP, UDP_GRO, &one, sizeof(one));

    return cuts && joins ? "with UDP_SEGMENT and UDP_GRO"
           : cuts        ? "without UDP_GRO"
                         : "without UDP_SEGMENT, so slowly";
}

void doctor_check_wire(struct finding *finding)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(ROCE_PORT),
                                   .sin_addr = { htonl(INADDR_LOOPBACK) } };
    int fd = open_port(&address);
    long buffer = largest_buffer();

    if (fd < 0) {
        doctor_found(finding, VERDICT_NO, "UDP port %d: %s", ROCE_PORT, strerror(errno));
        doctor_remedy(finding, errno == EADDRINUSE
                                   ? "another user, or the kernel's rdma_rxe, has the port"
                                   : "--wire needs UDP sockets");
        return;
    }
    if (!arrives(fd, &address)) {
        doctor_found(finding, VERDICT_NOTE,
                     "no datagram arrives on UDP port %d: a firewall, or another program of yours "
                     "that uses the port",
                     ROCE_PORT);
    } else {
        doctor_found(finding, VERDICT_YES, "UDP port %d works, %s; socket buffers up to %ld KiB",
                     ROCE_PORT, offload(fd), buffer >> 10);
        if (buffer < GOOD_BUFFER && geteuid())
            doctor_remedy(finding, "many senders at once lose fewer packets with sysctl "
                                   "net.core.rmem_max=8388608");
    }
    close(fd);
}
