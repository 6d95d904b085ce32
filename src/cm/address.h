#ifndef CM_ADDRESS_H
#define CM_ADDRESS_H

/*
 * Socket addresses as the fabric sees them. Every address of this machine leads into the fabric;
 * 127.42.R.(K+1) names port R (counted over all adapters) of node K alone.
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

struct cm_place {
    int node; /* ANY_NODE: the address is common to all nodes */
    unsigned rail;
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

/* Where an address stands; false when it is neither the fabric's nor this machine's. */
bool address_locate(const struct cm_address *address, struct cm_place *place);

/* The address that `node` uses towards `to`. */
void address_pick_source(struct cm_address *source, const struct cm_address *to, unsigned node);

#endif
