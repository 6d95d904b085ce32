/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/adapter.h"
#include "bench/bench.h"

#include <errno.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

static bool port_is_active(struct ibv_device *device, uint8_t port)
{
    struct ibv_context *context = ibv_open_device(device);
    struct ibv_port_attr attributes;
    bool active;

    if (!context)
        return false;
    active = !ibv_query_port(context, port, &attributes) && attributes.state == IBV_PORT_ACTIVE;
    ibv_close_device(context);
    return active;
}

/* Returns the first of several devices whose port is active, or NULL. */
static const char *first_active(struct ibv_device **list, uint8_t port)
{
    if (!list || !list[0] || !list[1])
        return NULL;
    for (int i = 0; list[i]; i++) {
        if (port_is_active(list[i], port))
            return ibv_get_device_name(list[i]);
    }
    return NULL;
}

static struct ibv_context *open_named(struct bench *bench, const char *name)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *context = NULL;
    bool found = false;

    if (!name)
        name = first_active(list, bench->settings->port);
    for (int i = 0; list && list[i] && !found; i++) {
        if (name && strcmp(ibv_get_device_name(list[i]), name))
            continue;
        found = true;
        context = ibv_open_device(list[i]);
        if (!context)
            bench_fail(bench, "cannot open %s: %s", ibv_get_device_name(list[i]), strerror(errno));
    }
    if (!found)
        bench_fail(bench, name ? "no such device: %s" : "no verbs device found%s",
                   name ? name : "");
    if (list)
        ibv_free_device_list(list);
    return context;
}

bool adapter_route_address(const struct bench *bench, union ibv_gid *out)
{
    struct sockaddr_in6 address;
    socklen_t size = sizeof(address);

    for (int i = 0; i < bench->control->ranks; i++) {
        int fd = bench->control->fd[i];

        if (i == bench->rank || (bench->rank && i))
            continue;
        if (fd < 0 || getsockname(fd, (struct sockaddr *)&address, &size))
            continue;
        if (address.sin6_family == AF_INET6) {
            memcpy(out->raw, &address.sin6_addr, sizeof(out->raw));
            return true;
        }
        if (address.sin6_family == AF_INET) {
            const struct sockaddr_in *ipv4 = (struct sockaddr_in *)&address;

            memset(out->raw, 0, 10);
            memset(out->raw + 10, 0xff, 2);
            memcpy(out->raw + 12, &ipv4->sin_addr, 4);
            return true;
        }
    }
    return false;
}

bool adapter_gid_is_ipv4(const union ibv_gid *gid)
{
    return !memcmp(gid->raw, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);
}

static bool is_link_local(const union ibv_gid *gid)
{
    return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80;
}

/* On Ethernet, GIDs differ in type. Prefers RoCEv2, which is routable; then the local address of
 * the route to the other host, IPv4, IPv6, and last a link-local address. */
static int choose_gid(struct bench *bench, struct ibv_context *context, uint8_t port, int length)
{
    union ibv_gid route;
    bool routed = adapter_route_address(bench, &route);
    int best = 0, best_rank = 0;

    for (int i = 0; i < length; i++) {
        struct ibv_gid_entry entry;
        int rank = 1;

        if (ibv_query_gid_ex(context, port, i, &entry, 0))
            continue;
        rank += entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? 8 : 0;
        rank += routed && !memcmp(&route, &entry.gid, sizeof(route)) ? 4 : 0;
        rank += adapter_gid_is_ipv4(&entry.gid) ? 2 : !is_link_local(&entry.gid);
        if (rank > best_rank) {
            best_rank = rank;
            best = i;
        }
    }
    return best;
}

static int use_port(struct bench *bench, struct adapter *adapter, uint8_t port)
{
    struct ibv_port_attr *attributes = &adapter->port_attributes;
    uint64_t wanted = bench->settings->gid_index;
    static const union ibv_gid nothing;
    int error;

    if (port > adapter->limits.phys_port_cnt)
        return bench_fail(bench, "%s has %u port%s: there is no port %u",
                          ibv_get_device_name(adapter->context->device),
                          adapter->limits.phys_port_cnt,
                          adapter->limits.phys_port_cnt == 1 ? "" : "s", port);
    error = ibv_query_port(adapter->context, port, attributes);
    if (error)
        return bench_fail(bench, "ibv_query_port: %s", strerror(error));
    if (attributes->state != IBV_PORT_ACTIVE)
        return bench_fail(bench, "port %u is %s, not active", port,
                          ibv_port_state_str(attributes->state));
    adapter->port = port;
    adapter->global = attributes->link_layer == IBV_LINK_LAYER_ETHERNET || wanted != GID_INDEX_AUTO;
    adapter->gid_index = wanted;
    if (wanted == GID_INDEX_AUTO)
        adapter->gid_index =
            attributes->link_layer == IBV_LINK_LAYER_ETHERNET
                ? choose_gid(bench, adapter->context, port, attributes->gid_tbl_len)
                : 0;
    if (adapter->gid_index >= attributes->gid_tbl_len)
        return bench_fail(bench, "port %u has no GID of index %d: its table has %d entries", port,
                          adapter->gid_index, attributes->gid_tbl_len);
    if (ibv_query_gid(adapter->context, port, adapter->gid_index, &adapter->gid) ||
        (adapter->global && !memcmp(&adapter->gid, &nothing, sizeof(nothing))))
        return bench_fail(bench, "port %u has no GID of index %d; 'ibv_devinfo -v' lists its GIDs",
                          port, adapter->gid_index);
    return BENCH_OK;
}

int adapter_open(struct bench *bench, struct adapter *out)
{
    struct adapter adapter = { .context = open_named(bench, bench->settings->device) };

    int error;

    if (!adapter.context)
        return BENCH_FAILED;
    error = ibv_query_device(adapter.context, &adapter.limits);
    if (error) {
        bench_fail(bench, "ibv_query_device: %s", strerror(error));
        goto close;
    }
    if (use_port(bench, &adapter, bench->settings->port))
        goto close;
    adapter.pd = ibv_alloc_pd(adapter.context);
    if (!adapter.pd) {
        bench_fail(bench, "ibv_alloc_pd: %s", strerror(errno));
        goto close;
    }
    *out = adapter;
    return BENCH_OK;
close:
    ibv_close_device(adapter.context);
    return BENCH_FAILED;
}

void adapter_close(struct adapter *adapter)
{
    if (adapter->cm_channel)
        rdma_destroy_event_channel(adapter->cm_channel);
    ibv_dealloc_pd(adapter->pd);
    ibv_close_device(adapter->context);
}

int adapter_access(const struct adapter *adapter)
{
    int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

    return adapter->limits.atomic_cap == IBV_ATOMIC_NONE ? access
                                                         : access | IBV_ACCESS_REMOTE_ATOMIC;
}

const char *adapter_memory_hint(int error)
{
    static char text[160];
    struct rlimit limit;

    if (error == ENOMEM && getenv("VERBENA_FABRIC")) /* the software adapter locks nothing */
        return "; the fabric's shared memory is full: 'verbena doctor' shows how large it can grow";
    if (error != ENOMEM || getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur == RLIM_INFINITY)
        return "";
    snprintf(text, sizeof(text),
             "; this process may lock %llu KiB ('ulimit -l'): raise the limit, permanently with "
             "memlock in /etc/security/limits.conf",
             (unsigned long long)limit.rlim_cur / 1024);
    return text;
}

int adapter_region_open(struct bench *bench, size_t length, struct region *out)
{
    struct adapter *adapter = bench->adapter;
    void *address;

    address = mmap(NULL, length ? length : 1, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (address == MAP_FAILED)
        return bench_fail(bench, "cannot allocate %zu bytes: %s", length, strerror(errno));
    out->mr = ibv_reg_mr(adapter->pd, address, length ? length : 1, adapter_access(adapter));
    if (!out->mr) {
        int cause = errno;

        munmap(address, length ? length : 1);
        return bench_fail(bench, "ibv_reg_mr of %zu bytes: %s%s", length, strerror(cause),
                          adapter_memory_hint(cause));
    }
    out->address = address;
    out->length = length ? length : 1;
    return BENCH_OK;
}

void adapter_region_close(struct region *region)
{
    if (!region->mr)
        return;
    ibv_dereg_mr(region->mr);
    munmap(region->address, region->length);
    region->mr = NULL;
}
