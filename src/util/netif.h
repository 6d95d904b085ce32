/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UTIL_NETIF_H
#define UTIL_NETIF_H

/* A network interface and its addresses. */

#include <net/if.h>
#include <netinet/in.h>
#include <stddef.h>

#define NETIF_ADDRESSES 8
#define NETIF_FABRIC    64

union netif_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

struct netif {
    char name[IF_NAMESIZE];
    unsigned index;
    unsigned mtu;
    unsigned count;
    union netif_address addresses[NETIF_ADDRESSES]; /* IPv4 first */
};

/* `text` names an interface, or is one address of this host, or a network (10.0.0.0/24) in which the
 * host has addresses; then only these count. Returns 0, or -1 with the reason in `error`. */
int netif_find(const char *text, struct netif *netif, char *error, size_t size);

/* The name of the fabric of all processes that share an interface: unique for the interface in its
 * network namespace. */
void netif_fabric(const struct netif *netif, char name[NETIF_FABRIC]);

#endif
