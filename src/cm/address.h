/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CM_ADDRESS_H
#define CM_ADDRESS_H

/*
 * Socket addresses of the fabric. Every address of this machine leads into the fabric;
 * 127.42.R.(K+1) is port R (counted over all adapters) of node K; K+1 above 255 carries into the 42.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct cm_address {
    uint8_t ip[16]; /* IPv4 mapped into IPv6; the GID of an AF_IB address */
    uint32_t scope;
    uint16_t port; /* host order */
    uint16_t family;
};

#define ANY_NODE (-1)

struct cm_dev_addr {
    int node;            /* ANY_NODE: all nodes have the address */
    unsigned port_index; /* counted over all adapters of the node */
    unsigned gid_index;  /* over Ethernet */
};

bool address_from_sockaddr(struct cm_address *address, const struct sockaddr *sa);
void address_to_sockaddr(const struct cm_address *address, struct sockaddr_storage *storage,
                         uint16_t port_space);
socklen_t address_sockaddr_len(const struct cm_address *address);

bool address_is_any(const struct cm_address *address);
bool address_is_v4(const struct cm_address *address);
bool address_is_multicast(const struct cm_address *address);
bool address_equal_ip(const struct cm_address *a, const struct cm_address *b);
void address_set_loopback(struct cm_address *address);

/* The node and port that have an address. False: neither the fabric nor this machine has it. Over
 * Ethernet: the port's GID with this address. */
bool address_to_dev_addr(const struct cm_address *address, struct cm_dev_addr *dev_addr);
/* The same for a destination, which over Ethernet is on any host. */
bool address_is_reachable(const struct cm_address *address, struct cm_dev_addr *dev_addr);

/* The source address that `node` uses to reach `to`. */
void address_pick_source(struct cm_address *source, const struct cm_address *to, unsigned node);

#endif
