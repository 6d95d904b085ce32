/* SPDX-License-Identifier: BSD-2-Clause */
/* Sockets that are connected to one peer: the kernel looks up the route of what is sent once, not
 * for each datagram, and finds the socket and the route of what arrives in one step.
 *
 * The kernel numbers the IPv4 packets of a connected socket from a random identification on, and
 * the ICRC covers it. To learn it, we send an empty datagram and ask for a timestamp: the kernel
 * returns the datagram with its headers. */
#include "wire/wire.h"

#include "util/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/net_tstamp.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define IPV4_BYTES  20
#define UDP_BYTES   8
#define IPV4_HEAD   0x45    /* without options */
#define MAX_HEADERS 128     /* of the link as well */
#define LEARN_EVERY 1000000 /* ns */
#define KEEP_AFTER \
    16 /* datagrams of the same kind: a setsockopt() takes as long as it saves in a few */
#define LEARN_TRIES 3 /* in vain: the kernel does not tell */

struct wire_path wire_paths[WIRE_PATHS];
atomic_uint wire_path_count;

static struct spinlock paths_lock;

static bool is_ipv4(const struct wire_path *path)
{
    return path->to.any.sa_family == AF_INET;
}

/* Here as elsewhere, not libc's functions: a thread that is cancelled there would keep its locks.
 */
static bool open_path(struct wire_path *path, const struct wire_gid *from,
                      const union netif_address *to)
{
    *path = (struct wire_path){
        .from = from, .to = *to, .fd = wire_port_twin(from, to), .may_hold_others = true
    };
    if (path->fd < 0)
        return false;
    if (!syscall(SYS_connect, path->fd, &to->any, is_ipv4(path) ? sizeof(to->v4) : sizeof(to->v6)))
        return true;
    log_debug("wire: cannot connect a socket to a peer: %s", strerror(errno));
    syscall(SYS_close, path->fd);
    return false;
}

struct wire_path *wire_path_find(const struct wire_gid *from, const union netif_address *to)
{
    struct wire_path *found = NULL;
    bool opened = false;
    unsigned count;

    spin_lock(&paths_lock);
    count = load_relaxed(&wire_path_count);
    for (unsigned i = 0; i < count && !found; i++)
        if (wire_paths[i].from == from && !memcmp(&wire_paths[i].to, to, sizeof(*to)))
            found = &wire_paths[i];
    if (!found && count < WIRE_PATHS && open_path(&wire_paths[count], from, to)) {
        found = &wire_paths[count];
        store_release(&wire_path_count, count + 1);
        opened = true;
    }
    spin_unlock(&paths_lock);
    if (opened)
        wire_service_wake();
    return found;
}

void wire_path_close(void)
{
    for (unsigned i = 0; i < wire_path_count; i++)
        close(wire_paths[i].fd);
    wire_path_count = 0;
    paths_lock = (struct spinlock){ 0 };
}

/* ---- the identification ---- */

/* The identification of the datagram that the kernel has returned, which is empty. */
static bool take_returned(int fd, uint16_t *identification)
{
    uint8_t bytes[MAX_HEADERS];
    bool found = false;
    ssize_t length;

    while ((length = syscall(SYS_recvfrom, fd, bytes, sizeof(bytes), MSG_ERRQUEUE | MSG_DONTWAIT,
                             NULL, NULL)) >= 0) {
        const uint8_t *ip = bytes + length - IPV4_BYTES - UDP_BYTES;

        if (length < IPV4_BYTES + UDP_BYTES || ip[0] != IPV4_HEAD)
            continue;
        *identification = ip[4] << 8 | ip[5];
        found = true;
    }
    return found;
}

/* With the path's lock held. A connected socket may send elsewhere, too: to ourselves, so that the
 * network does not see it. */
static bool learn(struct wire_path *path)
{
    uint32_t request = SOF_TIMESTAMPING_TX_SCHED;
    char control[CMSG_SPACE(sizeof(request))] = { 0 };
    union netif_address own;
    struct msghdr message = { .msg_name = &own,
                              .msg_namelen = sizeof(own),
                              .msg_control = control,
                              .msg_controllen = sizeof(control) };
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);

    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SO_TIMESTAMPING;
    header->cmsg_len = CMSG_LEN(sizeof(request));
    memcpy(CMSG_DATA(header), &request, sizeof(request));
    if (getsockname(path->from->near_fd, &own.any, &message.msg_namelen) ||
        syscall(SYS_sendmsg, path->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ||
        !take_returned(path->fd, &path->identification))
        return false;
    path->identification++;
    return true;
}

static bool try_to_learn(struct wire_path *path)
{
    uint64_t now = now_ns();

    if (path->failures == LEARN_TRIES || now - path->tried_at < LEARN_EVERY)
        return false;
    path->tried_at = now;
    if (is_ipv4(path) && !learn(path)) {
        path->failures++;
        return false;
    }
    path->failures = 0;
    store_relaxed(&path->known, true);
    return true;
}

bool wire_path_take(struct wire_path *path)
{
    if (!path || !spin_trylock(&path->lock))
        return false;
    if (likely(load_relaxed(&path->known)) || try_to_learn(path))
        return true;
    spin_unlock(&path->lock);
    return false;
}

void wire_path_release(struct wire_path *path, bool sent)
{
    path->identification++;
    if (unlikely(!sent))
        wire_path_doubt(path);
    spin_unlock(&path->lock);
}

/* ---- segments ---- */

static void keep_segment(struct wire_path *path, uint16_t segment)
{
    int value = segment;

    path->repeats = segment == path->last_segment ? path->repeats + 1 : 0;
    path->last_segment = segment;
    if (path->repeats >= KEEP_AFTER && path->segment != segment &&
        !setsockopt(path->fd, IPPROTO_UDP, UDP_SEGMENT, &value, sizeof(value)))
        path->segment = segment;
}

bool wire_path_cuts(struct wire_path *path, size_t bytes, uint16_t segment)
{
    if (segment)
        keep_segment(path, segment);
    return segment == path->segment || (!segment && bytes <= path->segment);
}

void wire_path_doubt(struct wire_path *path)
{
    if (path)
        store_relaxed(&path->known, false);
}
