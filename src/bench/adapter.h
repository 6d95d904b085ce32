/* SPDX-License-Identifier: BSD-2-Clause */
/* The opened device under test: context, protection domain, port, GID and registered memory. */
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
    struct rdma_event_channel *cm_channel; /* for --connect-by rdma_cm, or NULL */
    bool global; /* a GRH is needed: the link layer is Ethernet, or the user chose a GID index */
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

/* Gets the local IP address of the route to the other hosts, IPv4 as an IPv4-mapped address. Returns
 * false if all ranks are on this host. */
bool adapter_route_address(const struct bench *bench, union ibv_gid *out);
bool adapter_gid_is_ipv4(const union ibv_gid *gid);

/* All access flags that the device supports. */
int adapter_access(const struct adapter *adapter);

/* A hint to append to an error message if the limit of locked memory may be the cause, or "". */
const char *adapter_memory_hint(int error);

/* Allocates zeroed, page-aligned memory and registers it with all access flags. */
int adapter_region_open(struct bench *bench, size_t length, struct region *out);
void adapter_region_close(struct region *region);

#endif
