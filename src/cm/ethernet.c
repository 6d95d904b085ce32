/* SPDX-License-Identifier: BSD-2-Clause */
#include "cm/ethernet.h"

#include "hca/engine.h"

#include <arpa/inet.h>
#include <string.h>
#include <unistd.h>

#define ANY_PORT 4791 /* asking for a route sends nothing */

bool ethernet_find(const struct cm_address *address, unsigned *gid_index)
{
    union ibv_gid gid;

    for (unsigned i = 0; i < HCA_GIDS; i++)
        if (hca_engine->gid(i, &gid) && !memcmp(gid.raw, address->ip, sizeof(gid.raw))) {
            *gid_index = i;
            return true;
        }
    return false;
}

/* The address from which the kernel would send to `to`. */
static bool routed_source(struct cm_address *source, const struct cm_address *to)
{
    struct cm_address probe = *to;
    struct sockaddr_storage storage;
    socklen_t length = address_sockaddr_len(to);
    unsigned unused;

    probe.port = ANY_PORT;
    address_to_sockaddr(&probe, &storage, 0);
    int fd = socket(to->family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    bool good = !connect(fd, (struct sockaddr *)&storage, length) &&
                !getsockname(fd, (struct sockaddr *)&storage, &length);
    close(fd);
    return good && address_from_sockaddr(source, (struct sockaddr *)&storage) &&
           ethernet_find(source, &unused);
}

static bool is_loopback(const struct cm_address *address)
{
    static const uint8_t ipv6[16] = { [15] = 1 };

    return address_is_v4(address) ? address->ip[12] == 127 : !memcmp(address->ip, ipv6, 16);
}

/* The first GID of the family: --wire with an address may have chosen another one than the kernel
 * would. */
static bool first_source(struct cm_address *source, const struct cm_address *like)
{
    union ibv_gid gid;

    for (unsigned i = 0; i < HCA_GIDS; i++) {
        if (!hca_engine->gid(i, &gid))
            continue;
        memcpy(source->ip, gid.raw, sizeof(gid.raw));
        source->family = address_is_v4(source) ? AF_INET : AF_INET6;
        if (source->family == like->family)
            return true;
    }
    return false;
}

bool ethernet_pick_source(struct cm_address *source, const struct cm_address *to)
{
    memset(source, 0, sizeof(*source));
    if (!routed_source(source, to) && !first_source(source, to))
        return false;
    source->port = 0;
    return true;
}

void ethernet_set_own(struct cm_address *address)
{
    struct cm_address own;

    memset(&own, 0, sizeof(own));
    if (first_source(&own, address))
        memcpy(address->ip, own.ip, sizeof(own.ip));
}

void ethernet_replace_loopback(struct cm_address *address)
{
    unsigned unused;

    if (hca_is_ethernet() && is_loopback(address) && !ethernet_find(address, &unused))
        ethernet_set_own(address);
}
