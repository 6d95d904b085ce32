/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef HCA_ADDR_H
#define HCA_ADDR_H

/* A port's addresses follow from its position: (node, device, port) <-> LID, GUID, GID. Each fabric
 * has its own range of LIDs and its own part of the GUID. */

#include "hca/segment.h"

#include <endian.h>
#include <infiniband/verbs.h>
#include <string.h>

#define VERBENA_OUI    0x027662ull /* locally administered */

static inline uint16_t addr_lid(unsigned node, unsigned device, unsigned port)
{
    return seg->first_lid + (node * seg->devices + device) * seg->ports + (port - 1);
}

static inline bool addr_from_lid(uint16_t lid, unsigned *node, unsigned *device, unsigned *port)
{
    unsigned i = (unsigned)lid - seg->first_lid;

    *port = i % seg->ports + 1;
    *device = i / seg->ports % seg->devices;
    *node = i / seg->ports / seg->devices;
    return lid >= seg->first_lid && *node < seg->nodes;
}

_Static_assert(FABRIC_NODES_MAX <= 1 << 12, "a GUID holds any node");
static inline uint64_t addr_node_guid(unsigned node, unsigned device)
{
    return VERBENA_OUI << 40 | (uint64_t)seg->guid_part << 24 | (node & 0xff) << 16 |
           node >> 8 << 12 | device << 8;
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

/* 0: the GID does not belong to this fabric. */
static inline uint16_t addr_lid_from_gid(const union ibv_gid *gid)
{
    uint64_t guid = be64toh(gid->global.interface_id);
    unsigned node = (guid >> 16 & 0xff) | (guid >> 12 & 0xf) << 8;
    unsigned device = guid >> 8 & 0xf, port = guid & 0xff;

    if (guid >> 24 != addr_node_guid(0, 0) >> 24 || node >= seg->nodes ||
        device >= seg->devices || port < 1 || port > seg->ports)
        return 0;
    return addr_lid(node, device, port);
}

#define ADDR_MCAST_LID 0xc000

/* The LID that an address vector leads to; 0: no port of this fabric. */
uint16_t addr_lid_of(const struct ibv_ah_attr *av);

/* Warns if an address vector leads to no port: most likely the peer is on another fabric. */
void addr_warn_if_foreign(const struct ibv_ah_attr *av, const char *user);

/* The index of a port's bit in seg->port_down. */
static inline unsigned addr_port_bit(uint16_t lid)
{
    return (unsigned)lid - seg->first_lid;
}

static inline bool addr_port_is_down(uint16_t lid)
{
    unsigned bit = addr_port_bit(lid);

    return unlikely(load_relaxed(&seg->ports_down)) && bit < MAX_FABRIC_PORTS &&
           load_relaxed(&seg->port_down[bit / 32]) & 1u << bit % 32;
}

#endif
