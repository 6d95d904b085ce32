#ifndef HCA_ADDR_H
#define HCA_ADDR_H

/* Addresses of a fabric follow from where a port stands: (node, device, port) <-> LID, GUID, GID. */

#include "hca/segment.h"

#include <endian.h>
#include <infiniband/verbs.h>
#include <string.h>

#define VERBENA_OUI 0x02766272ull /* locally administered */

static inline uint16_t addr_lid(unsigned node, unsigned device, unsigned port)
{
    return 1 + (node * seg->devices + device) * seg->ports + (port - 1);
}

static inline bool addr_from_lid(uint16_t lid, unsigned *node, unsigned *device, unsigned *port)
{
    unsigned i = lid - 1u;

    *port = i % seg->ports + 1;
    *device = i / seg->ports % seg->devices;
    *node = i / seg->ports / seg->devices;
    return lid && *node < seg->nodes;
}

static inline uint64_t addr_node_guid(unsigned node, unsigned device)
{
    return VERBENA_OUI << 32 | node << 16 | device << 8;
}

static inline uint64_t addr_port_guid(unsigned node, unsigned device, unsigned port)
{
    return addr_node_guid(node, device) | port;
}

static inline void addr_gid(unsigned node, unsigned device, unsigned port, union ibv_gid *gid)
{
    gid->global.subnet_prefix = htobe64(0xfe80000000000000ull);
    gid->global.interface_id = htobe64(addr_port_guid(node, device, port));
}

/* 0 when the GID is none of this fabric's. */
static inline uint16_t addr_lid_from_gid(const union ibv_gid *gid)
{
    uint64_t guid = be64toh(gid->global.interface_id);
    unsigned node = guid >> 16 & 0xffff, device = guid >> 8 & 0xff, port = guid & 0xff;

    if (guid >> 32 != VERBENA_OUI || node >= seg->nodes || device >= seg->devices || port < 1 ||
        port > seg->ports)
        return 0;
    return addr_lid(node, device, port);
}

#define ADDR_MCAST_LID 0xc000

static inline bool addr_port_is_down(uint16_t lid)
{
    return unlikely(load_relaxed(&seg->ports_down)) && lid < MAX_LIDS &&
           load_relaxed(&seg->port_down[lid / 32]) & 1u << lid % 32;
}

#endif
