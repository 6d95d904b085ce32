/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes of a host share a UDP port: the kernel gives a packet to one of them, and this one
 * passes it to the process that owns the QP. */
#include "wire/wire.h"

#include "hca/proc.h"
#include "util/log.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define WAIT_NS     20000000
#define SEND_BUFFER (8 << 20) /* the kernel grants less */

/* The token shows that the sender can read the fabric's segment, so is a process of this user. */
struct forwarded {
    uint64_t token;
    struct roce_flow flow;
    uint8_t gid[16];  /* at which they arrived */
    uint32_t segment; /* the length of each packet but the last */
};

_Static_assert(sizeof(struct forwarded) == WIRE_FORWARD_HEAD, "the head of a message");

static socklen_t name_of(unsigned proc, struct sockaddr_un *name)
{
    memset(name, 0, sizeof(*name));
    name->sun_family = AF_UNIX;
    int length = snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1, "verbena-%u-%s-%x",
                          (unsigned)geteuid(), segment_config()->name, proc_word(proc));
    return offsetof(struct sockaddr_un, sun_path) + 1 + length;
}

int wire_forward_open(void)
{
    struct sockaddr_un name;
    socklen_t length = name_of(proc_self, &name);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), size = SEND_BUFFER;

    if (fd < 0 || bind(fd, (struct sockaddr *)&name, length)) {
        int err = errno;
        log_error(
            "wire: cannot receive packets from other processes of this host: %s%s", strerror(err),
            err == EADDRINUSE ? ": processes on one network must share /dev/shm (or --shm-dir)"
                              : "");
        if (fd >= 0)
            close(fd);
        return err;
    }
    setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    wire_port.forward_fd = fd;
    return 0;
}

/* The socket takes only ten messages (net.unix.max_dgram_qlen): let the owner run. To wait for it
 * without a limit might be to wait for each other, and among programs that spin, one call of
 * sched_yield() can take several milliseconds. A packet that is lost here is repeated by its
 * sender, if the service is reliable. */
void wire_forward_send(unsigned proc, unsigned gid, const struct roce_flow *flow,
                       const uint8_t *bytes, size_t length, size_t segment)
{
    uint64_t started = now_ns();
    struct sockaddr_un name;
    struct forwarded head = { .token = segment_random(SEED_WIRE_TOKEN),
                              .flow = *flow,
                              .segment = segment };
    struct iovec iov[] = { { &head, sizeof(head) }, { (void *)bytes, length } };
    struct msghdr message = {
        .msg_name = &name, .msg_namelen = name_of(proc, &name), .msg_iov = iov, .msg_iovlen = 2
    };

    memcpy(head.gid, wire_port.gids[gid].raw, sizeof(head.gid));
    while (sendmsg(wire_port.forward_fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
        if ((errno != EAGAIN && errno != EINTR) || now_ns() - started > WAIT_NS) {
            log_debug("wire: cannot pass packets to process %u: %s", proc, strerror(errno));
            return;
        }
        sched_yield();
    }
}

static bool find_gid(const uint8_t raw[16], unsigned *gid)
{
    for (*gid = 0; *gid < wire_port.count; ++*gid)
        if (!memcmp(wire_port.gids[*gid].raw, raw, 16))
            return true;
    return false;
}

size_t wire_forward_take(uint8_t *buffer, size_t size, unsigned *gid, struct roce_flow *flow,
                         const uint8_t **frames, size_t *segment)
{
    for (;;) {
        ssize_t length = recv(wire_port.forward_fd, buffer, size, MSG_DONTWAIT);
        struct forwarded head;

        if (length < 0)
            return 0;
        if ((size_t)length < sizeof(head))
            continue;
        memcpy(&head, buffer, sizeof(head));
        if (head.token != segment_random(SEED_WIRE_TOKEN) || !find_gid(head.gid, gid) ||
            !head.segment)
            continue;
        *flow = head.flow;
        *segment = head.segment;
        *frames = buffer + sizeof(head);
        return length - sizeof(head);
    }
}
