/* SPDX-License-Identifier: BSD-2-Clause */
#include "hca/addr.h"

#include "util/log.h"

#include <arpa/inet.h>
#include <stdio.h>

uint16_t addr_lid_of(const struct ibv_ah_attr *av)
{
    static const union ibv_gid none;
    unsigned node, device, port;

    if (av->is_global && memcmp(&av->grh.dgid, &none, sizeof(none))) {
        uint16_t lid = addr_lid_from_gid(&av->grh.dgid);
        return !av->dlid || av->dlid == lid ? lid : 0;
    }
    return addr_from_lid(av->dlid, &node, &device, &port) ? av->dlid : 0;
}

void addr_warn_if_foreign(const struct ibv_ah_attr *av, const char *user)
{
    char port[INET6_ADDRSTRLEN + 8];

    if (addr_lid_of(av))
        return;
    if (av->dlid) {
        snprintf(port, sizeof(port), "LID 0x%x", av->dlid);
    } else {
        strcpy(port, "GID ");
        inet_ntop(AF_INET6, av->grh.dgid.raw, port + 4, sizeof(port) - 4);
    }
    log_warn("%s: no port with %s on fabric '%s' (%s): the peer may be on another fabric; programs "
             "meet when they run with the same --fabric, as the same user, on the same %s",
             user, port, segment_config()->name, segment_path(), segment_config()->dir);
}
