/* SPDX-License-Identifier: BSD-2-Clause */
/* The device under measurement, opened: context, protection domain, port, address, and memory
 * registered with it. */
#ifndef BENCH_ADAPTER_H
#define BENCH_ADAPTER_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>

struct bench;
struct rdma_event_channel;

struct adapter {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_device_attr limits;
    struct ibv_port_attr port_attributes;
    uint8_t port;
    int gid_index;
    union ibv_gid gid;
    struct rdma_event_channel *cm_channel; /* of those who connect by rdma_cm, or NULL */
    bool global; /* addresses need a GRH: the link layer is Ethernet, or the user chose an index */
};

struct region {
    void *address;
    size_t length;
    struct ibv_mr *mr;
};

/* A peer's region. */
struct remote {
    uint64_t address;
    uint32_t rkey;
};

int adapter_open(struct bench *bench, struct adapter *out);
void adapter_close(struct adapter *adapter);

/* The address by which this host reaches the others, IPv4 as IPv6 holds it; false if they are all on
 * this one. */
bool adapter_route_address(const struct bench *bench, union ibv_gid *out);
bool adapter_gid_is_ipv4(const union ibv_gid *gid);

/* Every right to memory that the device knows. */
int adapter_access(const struct adapter *adapter);

/* What to say after "out of memory" where the limit of locked memory may be the reason; or nothing. */
const char *adapter_memory_hint(int error);

/* Zeroed memory that begins at a page boundary, registered for everything the device allows. */
int adapter_region_open(struct bench *bench, size_t length, struct region *out);
void adapter_region_close(struct region *region);

#endif
