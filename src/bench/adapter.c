#include "adapter.h"
#include "bench.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

static struct ibv_context *open_named(struct bench *bench, const char *name)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *context = NULL;
    bool found = false;

    for (int i = 0; list && list[i] && !found; i++) {
        if (name && strcmp(ibv_get_device_name(list[i]), name))
            continue;
        found = true;
        context = ibv_open_device(list[i]);
        if (!context)
            bench_fail(bench, "%s cannot be opened: %s", ibv_get_device_name(list[i]),
                       strerror(errno));
    }
    if (!found)
        bench_fail(bench, name ? "there is no device %s" : "there is no verbs device%s",
                   name ? name : "");
    if (list)
        ibv_free_device_list(list);
    return context;
}

/* On Ethernet the entries differ in kind: RoCEv2 over IPv4 passes routers and is what a user means
 * who does not say; then RoCEv2 over IPv6, then whatever comes first. */
static int choose_gid(struct ibv_context *context, uint8_t port, int length)
{
    int best = 0, best_rank = 0;

    for (int i = 0; i < length; i++) {
        struct ibv_gid_entry entry;
        bool ipv4;
        int rank;

        if (ibv_query_gid_ex(context, port, i, &entry, 0))
            continue;
        ipv4 = !memcmp(entry.gid.raw, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);
        rank = 1 + (entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? 2 : 0) + ipv4;
        if (rank > best_rank) {
            best_rank = rank;
            best = i;
        }
    }
    return best;
}

int adapter_use_port(struct bench *bench, struct adapter *adapter, uint8_t port)
{
    struct ibv_port_attr *attributes = &adapter->port_attributes;
    uint64_t wanted = bench->settings->gid_index;
    int error;

    if (port > adapter->limits.phys_port_cnt)
        return bench_fail(
            bench, "%s has %u port%s, not %u", ibv_get_device_name(adapter->context->device),
            adapter->limits.phys_port_cnt, adapter->limits.phys_port_cnt == 1 ? "" : "s", port);
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
        adapter->gid_index = attributes->link_layer == IBV_LINK_LAYER_ETHERNET
                                 ? choose_gid(adapter->context, port, attributes->gid_tbl_len)
                                 : 0;
    if (adapter->gid_index >= attributes->gid_tbl_len)
        return bench_fail(bench, "port %u has no address of index %d: its table has %d entries",
                          port, adapter->gid_index, attributes->gid_tbl_len);
    if (ibv_query_gid(adapter->context, port, adapter->gid_index, &adapter->gid))
        return bench_fail(bench, "ibv_query_gid: %s", strerror(errno));
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
    if (adapter_use_port(bench, &adapter, bench->settings->port))
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
    ibv_dealloc_pd(adapter->pd);
    ibv_close_device(adapter->context);
}

int adapter_access(const struct adapter *adapter)
{
    int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

    return adapter->limits.atomic_cap == IBV_ATOMIC_NONE ? access
                                                         : access | IBV_ACCESS_REMOTE_ATOMIC;
}

int region_open(struct bench *bench, size_t length, struct region *out)
{
    struct adapter *adapter = bench->adapter;
    void *address;

    address = mmap(NULL, length ? length : 1, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (address == MAP_FAILED)
        return bench_fail(bench, "no %zu bytes of memory: %s", length, strerror(errno));
    out->mr = ibv_reg_mr(adapter->pd, address, length ? length : 1, adapter_access(adapter));
    if (!out->mr) {
        int cause = errno;

        munmap(address, length ? length : 1);
        return bench_fail(bench, "ibv_reg_mr of %zu bytes: %s%s", length, strerror(cause),
                          cause == ENOMEM ? "; see 'ulimit -l' and 'verbena doctor'" : "");
    }
    out->address = address;
    out->length = length ? length : 1;
    return BENCH_OK;
}

void region_close(struct region *region)
{
    if (!region->mr)
        return;
    ibv_dereg_mr(region->mr);
    munmap(region->address, region->length);
    region->mr = NULL;
}
