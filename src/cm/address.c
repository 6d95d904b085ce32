/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/address.h"

#include "cm/ethernet.h"
#include "cm/exported.h"
#include "hca/addr.h"
#include "hca/engine.h"
#include "hca/segment.h"

#include <arpa/inet.h>
#include <infiniband/ib.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

static const uint8_t v4_prefix[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

bool address_from_sockaddr(struct cm_address *address, const struct sockaddr *sa)
{
    const struct sockaddr_in *in = (const void *)sa;
    const struct sockaddr_in6 *in6 = (const void *)sa;
    const struct sockaddr_ib *ib = (const void *)sa;

    memset(address, 0, sizeof(*address));
    address->family = sa->sa_family;
    switch (sa->sa_family) {
    case AF_INET:
        memcpy(address->ip, v4_prefix, sizeof(v4_prefix));
        memcpy(address->ip + 12, &in->sin_addr, 4);
        address->port = ntohs(in->sin_port);
        return true;
    case AF_INET6:
        memcpy(address->ip, &in6->sin6_addr, 16);
        address->port = ntohs(in6->sin6_port);
        address->scope = in6->sin6_scope_id;
        return true;
    case AF_IB:
        memcpy(address->ip, &ib->sib_addr, 16);
        address->port = be64toh(ib->sib_sid) & RDMA_IB_IP_PORT_MASK;
        return true;
    default:
        return false;
    }
}

void address_to_sockaddr(const struct cm_address *address, struct sockaddr_storage *storage,
                         uint16_t port_space)
{
    struct sockaddr_in *in = (void *)storage;
    struct sockaddr_in6 *in6 = (void *)storage;
    struct sockaddr_ib *ib = (void *)storage;

    memset(storage, 0, sizeof(*storage));
    storage->ss_family = address->family;
    switch (address->family) {
    case AF_INET:
        memcpy(&in->sin_addr, address->ip + 12, 4);
        in->sin_port = htons(address->port);
        break;
    case AF_INET6:
        memcpy(&in6->sin6_addr, address->ip, 16);
        in6->sin6_port = htons(address->port);
        in6->sin6_scope_id = address->scope;
        break;
    case AF_IB:
        memcpy(&ib->sib_addr, address->ip, 16);
        ib->sib_pkey = 0xffff;
        ib->sib_sid = htobe64((uint64_t)port_space << 16 | address->port);
        ib->sib_sid_mask = ~0ull;
        break;
    }
}

socklen_t address_sockaddr_len(const struct cm_address *address)
{
    switch (address->family) {
    case AF_INET:
        return sizeof(struct sockaddr_in);
    case AF_INET6:
        return sizeof(struct sockaddr_in6);
    default:
        return sizeof(struct sockaddr_ib);
    }
}

bool address_is_v4(const struct cm_address *address)
{
    return memcmp(address->ip, v4_prefix, sizeof(v4_prefix)) == 0;
}

bool address_is_any(const struct cm_address *address)
{
    static const uint8_t zeros[16];
    size_t from = address_is_v4(address) ? 12 : 0;

    return memcmp(address->ip + from, zeros, 16 - from) == 0;
}

bool address_is_multicast(const struct cm_address *address)
{
    return address_is_v4(address) ? address->ip[12] >> 4 == 0xe : address->ip[0] == 0xff;
}

bool address_equal_ip(const struct cm_address *a, const struct cm_address *b)
{
    return memcmp(a->ip, b->ip, sizeof(a->ip)) == 0;
}

void address_set_loopback(struct cm_address *address)
{
    if (hca_is_ethernet()) {
        ethernet_set_own(address);
        return;
    }
    static const uint8_t loopback4[4] = { 127, 0, 0, 1 };

    if (address->family == AF_INET) {
        memcpy(address->ip, v4_prefix, sizeof(v4_prefix));
        memcpy(address->ip + 12, loopback4, 4);
    } else {
        memset(address->ip, 0, 16);
        address->ip[15] = 1;
    }
}

#define FIRST_NODES 42 /* the second byte of the addresses of the first nodes */

static bool is_node_address(const struct cm_address *address)
{
    return address_is_v4(address) && address->ip[12] == 127 && address->ip[13] >= FIRST_NODES &&
           address->ip[13] <= FIRST_NODES + (seg->nodes >> 8);
}

static int node_of_address(const struct cm_address *address)
{
    return ((address->ip[13] - FIRST_NODES) << 8 | address->ip[15]) - 1;
}

/* The kernel binds a socket only to addresses of this machine. */
static bool is_own_address(const struct cm_address *address)
{
    struct sockaddr_storage storage;
    struct cm_address probe = *address;

    probe.port = 0;
    address_to_sockaddr(&probe, &storage, 0);
    int fd = socket(probe.family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    int rc = bind(fd, (struct sockaddr *)&storage, address_sockaddr_len(&probe));
    close(fd);
    return rc == 0;
}

static bool gid_to_dev_addr(const struct cm_address *address, struct cm_dev_addr *dev_addr)
{
    union ibv_gid gid;
    unsigned node, device, port;

    memcpy(gid.raw, address->ip, 16);
    uint16_t lid = addr_lid_from_gid(&gid);
    if (!lid || !addr_from_lid(lid, &node, &device, &port))
        return false;
    dev_addr->node = node;
    dev_addr->port_index = device * seg->ports + port - 1;
    return true;
}

bool address_to_dev_addr(const struct cm_address *address, struct cm_dev_addr *dev_addr)
{
    static const uint8_t ib_loopback[16] = { [15] = 1 };

    *dev_addr = (struct cm_dev_addr){ .node = ANY_NODE };
    if (hca_is_ethernet())
        return ethernet_find(address, &dev_addr->gid_index);
    if (is_node_address(address)) {
        dev_addr->node = node_of_address(address);
        dev_addr->port_index = address->ip[14];
        return dev_addr->node >= 0 && dev_addr->node < (int)seg->nodes &&
               dev_addr->port_index < seg->devices * seg->ports;
    }
    if (address->family == AF_IB)
        return memcmp(address->ip, ib_loopback, 16) == 0 || gid_to_dev_addr(address, dev_addr);
    return is_own_address(address);
}

bool address_is_reachable(const struct cm_address *address, struct cm_dev_addr *dev_addr)
{
    struct cm_address source;

    if (!hca_is_ethernet())
        return address_to_dev_addr(address, dev_addr);
    return ethernet_pick_source(&source, address) && address_to_dev_addr(&source, dev_addr);
}

void address_pick_source(struct cm_address *source, const struct cm_address *to, unsigned node)
{
    struct cm_dev_addr dev_addr = { .port_index = 0 };
    union ibv_gid gid;

    *source = *to;
    source->port = 0;
    if (hca_is_ethernet()) {
        ethernet_pick_source(source, to);
        return;
    }
    address_to_dev_addr(to, &dev_addr);
    if (is_node_address(to)) {
        source->ip[13] = FIRST_NODES + ((node + 1) >> 8);
        source->ip[15] = node + 1;
    } else if (to->family == AF_IB) {
        addr_gid(node, dev_addr.port_index / seg->ports, dev_addr.port_index % seg->ports + 1,
                 &gid);
        memcpy(source->ip, gid.raw, 16);
    } else if (address_is_any(to) || address_is_multicast(to)) {
        address_set_loopback(source);
    }
}
