/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire/wire.h"

#include "hca/proc.h"
#include "hca/table.h"
#include "util/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SOCKET_BUFFER (8 << 20) /* the kernel grants less, unless the administrator allows it */
#define HEADERS_BYTES 80        /* IP, UDP and transport headers that must fit beside the payload */

struct wire_port wire_port = { .forward_fd = -1, .changes_fd = -1 };

/* The interface, address or network of --wire. The program may clear its environment later. */
static char chosen[INET6_ADDRSTRLEN + sizeof("/128")];

static void read_choice(void)
{
    const char *text = getenv("VERBENA_WIRE");

    if (text)
        snprintf(chosen, sizeof(chosen), "%s", text);
}

static void gid_of(const union netif_address *address, uint8_t gid[16])
{
    if (address->any.sa_family == AF_INET6) {
        memcpy(gid, &address->v6.sin6_addr, 16);
        return;
    }
    memcpy(gid, ROCE_IPV4_PREFIX, 12);
    memcpy(gid + 12, &address->v4.sin_addr, 4);
}

static int set_number(int fd, int level, int option, int value)
{
    return setsockopt(fd, level, option, &value, sizeof(value));
}

/* With IP_PMTUDISC_DO, an unconnected socket sends identification 0 and "don't fragment", both of
 * which the ICRC covers. */
static int set_options(int fd, int family)
{
    if (family == AF_INET)
        return set_number(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO);
    if (set_number(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1))
        return -1;
    set_number(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1); /* adapters send no UDP checksum */
    return set_number(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO);
}

static void set_buffers(int fd)
{
    if (set_number(fd, SOL_SOCKET, SO_RCVBUFFORCE, SOCKET_BUFFER))
        set_number(fd, SOL_SOCKET, SO_RCVBUF, SOCKET_BUFFER);
    if (set_number(fd, SOL_SOCKET, SO_SNDBUFFORCE, SOCKET_BUFFER))
        set_number(fd, SOL_SOCKET, SO_SNDBUF, SOCKET_BUFFER);
}

/* `shared` by all processes of the host. */
static int open_socket(const union netif_address *address, bool shared)
{
    int family = address->any.sa_family;
    socklen_t length = family == AF_INET ? sizeof(address->v4) : sizeof(address->v6);
    int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    set_buffers(fd);
    set_number(fd, IPPROTO_UDP, UDP_GRO, 1);
    if (set_options(fd, family) || (shared && set_number(fd, SOL_SOCKET, SO_REUSEPORT, 1)) ||
        bind(fd, &address->any, length)) {
        int err = errno;
        close(fd);
        errno = err;
        return -1;
    }
    return fd;
}

static void log_refused(const struct wire_gid *gid, int err)
{
    char text[INET6_ADDRSTRLEN];

    inet_ntop(AF_INET6, gid->raw, text, sizeof(text));
    if (err == EADDRNOTAVAIL) { /* new, and not yet known to be unique */
        log_debug("wire: %s is not usable yet", text);
        return;
    }
    log_error("UDP port %d of %s: %s%s", ROCE_UDP_PORT, text, strerror(err),
              err == EADDRINUSE ? " (by another user, or by the kernel's own RoCE driver)" : "");
}

/* ---- the table of GIDs ---- */

static void set_port_number(union netif_address *address, uint16_t number)
{
    if (address->any.sa_family == AF_INET)
        address->v4.sin_port = htons(number);
    else
        address->v6.sin6_port = htons(number);
}

static uint16_t port_number(const union netif_address *address)
{
    return ntohs(address->any.sa_family == AF_INET ? address->v4.sin_port : address->v6.sin6_port);
}

static struct wire_gid *find_gid(const uint8_t raw[16])
{
    for (unsigned i = 0; i < wire_port.count; i++)
        if (!memcmp(wire_port.gids[i].raw, raw, 16))
            return &wire_port.gids[i];
    return NULL;
}

/* The kernel gives all packets from one address to the same of the sockets that share a port.
 * Between processes of one host, they would all go to one process, which had to pass on half of
 * them. */
static void open_near(struct wire_gid *gid)
{
    struct near_port *near = &proc_slot(proc_self)->near[gid - wire_port.gids];
    union netif_address address = gid->address;
    socklen_t length = sizeof(address);

    _Static_assert(NEAR_PORTS == HCA_GIDS, "a port for each GID");
    set_port_number(&address, 0);
    gid->near_fd = open_socket(&address, false);
    if (gid->near_fd < 0 || getsockname(gid->near_fd, &address.any, &length))
        return;
    memcpy(near->gid, gid->raw, sizeof(near->gid));
    store_release(&near->port, port_number(&address));
}

static void forget_near(void)
{
    for (unsigned i = 0; i < NEAR_PORTS; i++)
        store_relaxed(&proc_slot(proc_self)->near[i].port, 0);
}

void wire_port_find_near(const uint8_t gid[16], uint32_t qpn, union netif_address *address)
{
    const struct shared_qp *qp = find_gid(gid) ? shared_qp_find(qpn) : NULL;
    uint32_t proc = qp ? qp->proc : MAX_PROCS;

    for (unsigned i = 0; proc < MAX_PROCS && i < NEAR_PORTS; i++) {
        const struct near_port *near = &proc_slot(proc)->near[i];
        uint32_t port = load_acquire(&near->port);

        if (port && !memcmp(near->gid, gid, sizeof(near->gid)))
            set_port_number(address, port);
    }
}

int wire_port_source(const struct wire_gid *from, const union netif_address *to)
{
    return port_number(to) == ROCE_UDP_PORT || from->near_fd < 0 ? from->fd : from->near_fd;
}

/* A port of our own is shared for a moment only: the kernel may give one that is shared to any
 * other socket of this user that asks for some port. */
int wire_port_twin(const struct wire_gid *from, const union netif_address *to)
{
    int source = wire_port_source(from, to), fd;
    union netif_address own;
    socklen_t length = sizeof(own);

    memset(&own, 0, sizeof(own));
    if (getsockname(source, &own.any, &length))
        return -1;
    if (source == from->fd)
        return open_socket(&own, true);
    set_number(source, SOL_SOCKET, SO_REUSEPORT, 1);
    fd = open_socket(&own, true);
    set_number(source, SOL_SOCKET, SO_REUSEPORT, 0);
    if (fd >= 0)
        set_number(fd, SOL_SOCKET, SO_REUSEPORT, 0);
    return fd;
}

/* An address that comes back finds its entry and its socket, which is still bound. Returns 0 or an
 * errno value. */
static int add_address(const union netif_address *address)
{
    struct wire_gid *gid;
    uint8_t raw[16];

    gid_of(address, raw);
    gid = find_gid(raw);
    if (gid) {
        store_relaxed(&gid->gone, false);
        return 0;
    }
    if (wire_port.count == HCA_GIDS)
        return ENOSPC;
    gid = &wire_port.gids[wire_port.count];
    *gid = (struct wire_gid){ .address = *address };
    memcpy(gid->raw, raw, sizeof(raw));
    set_port_number(&gid->address, ROCE_UDP_PORT);
    gid->fd = open_socket(&gid->address, true);
    if (gid->fd < 0) {
        int err = errno;
        log_refused(gid, err);
        return err;
    }
    open_near(gid);
    wire_port.count++;
    return 0;
}

static void mark_lost_addresses(void)
{
    for (unsigned i = 0; i < wire_port.count; i++) {
        bool found = false;

        for (unsigned k = 0; k < wire_port.netif.count && !found; k++) {
            uint8_t raw[16];

            gid_of(&wire_port.netif.addresses[k], raw);
            found = !memcmp(raw, wire_port.gids[i].raw, sizeof(raw));
        }
        store_relaxed(&wire_port.gids[i].gone, !found);
    }
}

/* Without this socket, the table stays as it is. */
static int open_changes(void)
{
    struct sockaddr_nl address = { .nl_family = AF_NETLINK,
                                   .nl_groups = RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR };
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

    if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

void wire_port_follow(void)
{
    char bytes[8192], error[512];
    struct netif netif;
    bool changed = false;

    /* ENOBUFS: changes came faster than we looked. */
    while (wire_port.changes_fd >= 0 &&
           (recv(wire_port.changes_fd, bytes, sizeof(bytes), 0) > 0 || errno == ENOBUFS))
        changed = true;
    if (!changed)
        return;
    if (netif_find(chosen, &netif, error, sizeof(error)))
        wire_port.netif.count = 0;
    else
        wire_port.netif = netif;
    for (unsigned i = 0; i < wire_port.netif.count; i++)
        add_address(&wire_port.netif.addresses[i]);
    mark_lost_addresses();
}

int wire_port_open(void)
{
    struct wire_port *port = &wire_port;
    char error[512];
    int err = 0;

    wire_port_close();
    forget_near();
    read_choice();
    port->changes_fd = open_changes();
    if (netif_find(chosen, &port->netif, error, sizeof(error))) {
        log_error("wire: %s", error);
        wire_port_close();
        return ENODEV;
    }
    for (unsigned i = 0; i < port->netif.count; i++) {
        int refused = add_address(&port->netif.addresses[i]);
        err = refused ? refused : err;
    }
    if (!port->count) {
        log_error("wire: no address of %s can be used: %s", chosen, strerror(err));
        wire_port_close();
        return err;
    }
    port->segmentation = !set_number(port->gids[0].fd, IPPROTO_UDP, UDP_SEGMENT, 0);
    err = wire_forward_open();
    if (err)
        wire_port_close();
    return err;
}

static void close_socket(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void wire_port_close(void)
{
    wire_path_close();
    for (unsigned i = 0; i < wire_port.count; i++) {
        close_socket(&wire_port.gids[i].fd);
        close_socket(&wire_port.gids[i].near_fd);
    }
    close_socket(&wire_port.forward_fd);
    close_socket(&wire_port.changes_fd);
    wire_port.count = 0;
}

bool wire_port_fabric(char *name, size_t size)
{
    char own[NETIF_FABRIC], error[512];
    struct netif netif;

    read_choice();
    if (netif_find(chosen, &netif, error, sizeof(error)))
        return false; /* wire_port_open() will say why */
    netif_fabric(&netif, own);
    return snprintf(name, size, "%s", own) < (int)size;
}

bool wire_port_gid(unsigned index, union ibv_gid *gid)
{
    memset(gid, 0, sizeof(*gid));
    if (index >= wire_port.count || load_relaxed(&wire_port.gids[index].gone))
        return false;
    memcpy(gid->raw, wire_port.gids[index].raw, sizeof(gid->raw));
    return true;
}

/* As the kernel's driver does, so that both ends come to the same value. */
uint32_t wire_port_mtu(void)
{
    uint32_t mtu = PACKET_MAX_PAYLOAD_BYTES;

    while (mtu > 256 && mtu + HEADERS_BYTES > wire_port.netif.mtu)
        mtu /= 2;
    return mtu;
}

bool wire_port_address(const struct wire_gid *from, const uint8_t gid[16],
                       union netif_address *address)
{
    if (roce_gid_is_ipv4(gid) != roce_gid_is_ipv4(from->raw))
        return false;
    memset(address, 0, sizeof(*address));
    if (roce_gid_is_ipv4(gid)) {
        address->v4.sin_family = AF_INET;
        address->v4.sin_port = htons(ROCE_UDP_PORT);
        memcpy(&address->v4.sin_addr, gid + 12, 4);
        return true;
    }
    address->v6.sin6_family = AF_INET6;
    address->v6.sin6_port = htons(ROCE_UDP_PORT);
    memcpy(&address->v6.sin6_addr, gid, 16);
    if (IN6_IS_ADDR_LINKLOCAL(&address->v6.sin6_addr))
        address->v6.sin6_scope_id = wire_port.netif.index;
    return true;
}
