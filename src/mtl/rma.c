/* SPDX-License-Identifier: BSD-2-Clause */
#include "mtl/rma.h"

#include "mtl/log.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#define BUCKETS 256
#define BUFFERS 64

static struct rma_peer *table[BUCKETS];
static bool in_use;

static struct {
    char *memory;
    struct ibv_mr *regions[DEVICES_MAX];
    uint32_t free_count;
    void *free[BUFFERS];
} buffers;

bool rma_in_use(void)
{
    return in_use;
}

bool rma_supported(void)
{
    struct ibv_device_attr attr;

    return devices.count && !ibv_query_device(devices.device[0].context, &attr) &&
           attr.atomic_cap != IBV_ATOMIC_NONE;
}

/* ---- memory ---- */

int rma_register(void *start, size_t length, struct ibv_mr *regions[DEVICES_MAX])
{
    int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                 IBV_ACCESS_REMOTE_ATOMIC;

    for (uint32_t i = 0; i < devices.count; i++) {
        struct ibv_pd *pd = devices.device[i].pd;
        int err;

        regions[i] = ibv_reg_mr(pd, start, length, access);
        /* Others can still read a window in read-only memory. */
        if (!regions[i])
            regions[i] = ibv_reg_mr(pd, start, length, IBV_ACCESS_REMOTE_READ);
        if (regions[i])
            continue;
        err = errno;
        mtl_log("cannot register %zu bytes of a window: %s (check ulimit -l; on the software "
                "adapter, verbena doctor)",
                length, strerror(err));
        rma_deregister(regions);
        return err;
    }
    return 0;
}

void rma_deregister(struct ibv_mr *regions[DEVICES_MAX])
{
    for (uint32_t i = 0; i < devices.count; i++) {
        if (regions[i])
            ibv_dereg_mr(regions[i]);
        regions[i] = NULL;
    }
}

int rma_buffers_open(void)
{
    size_t size = (size_t)BUFFERS * RMA_BUFFER_SIZE;
    int err;

    if (buffers.memory)
        return 0;
    buffers.memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (buffers.memory == MAP_FAILED) {
        buffers.memory = NULL;
        return ENOMEM;
    }
    err = rma_register(buffers.memory, size, buffers.regions);
    if (err) {
        munmap(buffers.memory, size);
        buffers.memory = NULL;
        return err;
    }
    for (uint32_t i = BUFFERS; i > 0; i--)
        rma_buffer_put(buffers.memory + (size_t)(i - 1) * RMA_BUFFER_SIZE);
    return 0;
}

void *rma_buffer_get(void)
{
    while (!buffers.free_count)
        rma_wait();
    return buffers.free[--buffers.free_count];
}

void rma_buffer_put(void *buffer)
{
    buffers.free[buffers.free_count++] = buffer;
}

struct ibv_mr *const *rma_buffer_regions(void)
{
    return buffers.regions;
}

/* ---- peers ---- */

static struct rma_peer **bucket_of(const opal_process_name_t *name)
{
    return &table[(name->jobid * 31 + name->vpid) % BUCKETS];
}

static void peer_free(struct rma_peer *peer)
{
    for (uint32_t i = 0; i < peer->rail_count; i++) {
        if (peer->rail[i].qp)
            ibv_destroy_qp(peer->rail[i].qp);
    }
    free(peer);
}

static int open_rail(struct rma_rail *rail)
{
    struct device *device = rail->path->device;
    struct ibv_qp_init_attr init = {
        .send_cq = device->cq,
        .recv_cq = device->cq,
        .cap = { .max_send_wr = RMA_DEPTH,
                 .max_recv_wr = 1,
                 .max_send_sge = 1,
                 .max_recv_sge = 1,
                 .max_inline_data = mtl.parameters.inline_limit },
        .qp_type = IBV_QPT_RC,
    };
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = rail->path->port,
        .qp_access_flags =
            IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
    };

    if (device_reserve(device, RMA_DEPTH))
        return ENOMEM;
    rail->qp = ibv_create_qp(device->pd, &init);
    if (!rail->qp) {
        mtl_log("cannot create a queue pair for windows on %s: %s",
                ibv_get_device_name(device->context->device), strerror(errno));
        return errno;
    }
    return ibv_modify_qp(rail->qp, &attr,
                         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

static struct rma_peer *make(struct endpoint *endpoint)
{
    struct rma_peer *peer = calloc(1, sizeof(*peer)), **bucket = bucket_of(&endpoint->name);
    uint32_t paths = endpoint->address.path_count, rails;

    if (!peer)
        return NULL;
    if (paths > devices.path_count)
        paths = devices.path_count;
    rails = paths * (endpoint->address.qps < (uint32_t)mtl.parameters.qps ? endpoint->address.qps
                                                                          : mtl.parameters.qps);
    peer->endpoint = endpoint;
    rails_set_init(&peer->set, &mtl.traffic);
    while (peer->rail_count < rails && peer->rail_count < RAILS_MAX) {
        uint32_t index = peer->rail_count++;
        struct rma_rail *rail = &peer->rail[index];

        *rail =
            (struct rma_rail){ .peer = peer, .path = &devices.path[index % paths], .index = index };
        rails_add(&peer->set, rail->path->device->index, rail->path->port, index / paths);
        if (open_rail(rail)) {
            peer_free(peer);
            return NULL;
        }
    }
    peer->next = *bucket;
    *bucket = peer;
    in_use = true;
    return peer;
}

struct rma_peer *rma_peer_of(struct ompi_proc_t *proc)
{
    struct endpoint *endpoint = endpoint_of_proc(proc);
    struct rma_peer *peer;

    if (!endpoint)
        return NULL;
    peer = *bucket_of(&endpoint->name);
    while (peer && peer->endpoint != endpoint)
        peer = peer->next;
    return peer ? peer : make(endpoint);
}

void rma_say_hello(const struct rma_peer *peer, struct rma_hello *hello)
{
    hello->rail_count = peer->rail_count;
    for (uint32_t i = 0; i < peer->rail_count; i++)
        hello->qps[i] = peer->rail[i].qp->qp_num;
}

int rma_connect(struct rma_peer *peer, const struct rma_hello *hello)
{
    const struct address *address = &peer->endpoint->address;

    if (peer->connected)
        return 0;
    if (hello->rail_count != peer->rail_count) {
        mtl_log("process %u has %u rails for windows, this process has %u: give both the same "
                "mtl_verbena_qps, mtl_verbena_ports and mtl_verbena_devices",
                peer->endpoint->name.vpid, hello->rail_count, peer->rail_count);
        return EINVAL;
    }
    for (uint32_t i = 0; i < peer->rail_count; i++) {
        struct rma_rail *rail = &peer->rail[i];
        int err = device_connect_qp(rail->path, &address->path[rail->path - devices.path], rail->qp,
                                    hello->qps[i]);

        if (err)
            return err;
        rail->up = true;
    }
    peer->connected = true;
    return 0;
}

void rma_free(void)
{
    for (int i = 0; i < BUCKETS; i++) {
        for (struct rma_peer *peer = table[i], *next; peer; peer = next) {
            next = peer->next;
            peer_free(peer);
        }
        table[i] = NULL;
    }
    rma_ops_free();
    if (buffers.memory) {
        rma_deregister(buffers.regions);
        munmap(buffers.memory, (size_t)BUFFERS * RMA_BUFFER_SIZE);
    }
    buffers.memory = NULL;
    buffers.free_count = 0;
    in_use = false;
}
