/* SPDX-License-Identifier: BSD-2-Clause */
#include "mtl/device.h"

#include "mtl/log.h"
#include "mtl/mtl.h"
#include "mtl/progress.h"

#include <errno.h>
#include <stdlib.h>

#define INITIAL_CQ_SIZE 1024

struct devices devices;

/* The list holds names, or the number of devices to use. */
static bool is_wanted(const char *list, const char *name)
{
    size_t length = strlen(name);
    char *end;
    unsigned long limit;

    if (!list || !*list)
        return true;
    limit = strtoul(list, &end, 10);
    if (!*end)
        return devices.count < limit;
    for (const char *word = list; word; word = strchr(word, ',')) {
        word += *word == ',';
        if (!strncmp(word, name, length) && (!word[length] || word[length] == ','))
            return true;
    }
    return false;
}

static bool has_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
    return !ibv_query_gid(context, port, index, gid) && gid->global.interface_id;
}

/* On RoCE: version 2 before version 1, then IPv4 before IPv6 before link-local addresses. */
static int rank_of_gid(const struct ibv_gid_entry *entry)
{
    bool ipv4 = !memcmp(entry->gid.raw, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);
    bool link_local = entry->gid.raw[0] == 0xfe && (entry->gid.raw[1] & 0xc0) == 0x80;

    return (entry->gid_type == IBV_GID_TYPE_ROCE_V2 ? 4 : 1) + (ipv4 ? 2 : !link_local);
}

static int choose_gid(struct ibv_context *context, uint8_t port, const struct ibv_port_attr *attr,
                      union ibv_gid *gid)
{
    int best = mtl.parameters.gid_index, best_rank = 0;

    if (best < 0 && attr->link_layer == IBV_LINK_LAYER_ETHERNET)
        for (int i = 0; i < attr->gid_tbl_len; i++) {
            struct ibv_gid_entry entry;

            if (ibv_query_gid_ex(context, port, i, &entry, 0) || rank_of_gid(&entry) <= best_rank)
                continue;
            best = i;
            best_rank = rank_of_gid(&entry);
        }
    best = best < 0 ? 0 : best;
    return has_gid(context, port, best, gid) ? best : -1;
}

static enum ibv_mtu mtu_of_bytes(int bytes)
{
    enum ibv_mtu mtu = IBV_MTU_256;

    while (mtu < IBV_MTU_4096 && 256 << mtu <= bytes)
        mtu++;
    return mtu;
}

static bool add_path(struct device *device, uint8_t port)
{
    struct path *path = &devices.path[devices.path_count];
    struct ibv_port_attr attr;
    int gid_index;

    if (devices.path_count == PATHS_MAX || ibv_query_port(device->context, port, &attr) ||
        attr.state != IBV_PORT_ACTIVE)
        return false;
    path->device = device;
    path->port = port;
    path->lid = attr.lid;
    path->mtu = attr.active_mtu;
    if (mtl.parameters.mtu && mtu_of_bytes(mtl.parameters.mtu) < attr.active_mtu)
        path->mtu = mtu_of_bytes(mtl.parameters.mtu);
    path->global = attr.link_layer == IBV_LINK_LAYER_ETHERNET;
    gid_index = choose_gid(device->context, port, &attr, &path->gid);
    if (gid_index < 0 && path->global)
        return false;
    path->gid_index = gid_index < 0 ? 0 : gid_index;
    devices.path_count++;
    return true;
}

/* The component keeps threads apart, so queue pairs need no locks of their own. Not every adapter has
 * thread domains. */
static void make_thread_domain(struct device *device)
{
    struct ibv_td_init_attr none = { 0 };
    struct ibv_parent_domain_init_attr attr = { .pd = device->pd };

    attr.td = device->td = device->pd && !vtime.on ? ibv_alloc_td(device->context, &none) : NULL;
    device->domain = device->td ? ibv_alloc_parent_domain(device->context, &attr) : NULL;
}

static int open_device(struct ibv_device *found)
{
    struct device *device = &devices.device[devices.count];
    struct ibv_device_attr attr;
    int ports = 0;

    device->index = devices.count;
    device->context = ibv_open_device(found);
    if (!device->context) {
        mtl_log("cannot open %s: %s", ibv_get_device_name(found), strerror(errno));
        return errno;
    }
    if (ibv_query_device(device->context, &attr))
        goto close;
    for (int port = 1; port <= attr.phys_port_cnt; port++) {
        if (mtl.parameters.ports && ports == mtl.parameters.ports)
            break;
        ports += add_path(device, port);
    }
    if (!ports)
        goto close;
    device->pd = ibv_alloc_pd(device->context);
    make_thread_domain(device);
    device->channel = progress_channel(device->context);
    device->cq = ibv_create_cq(device->context, INITIAL_CQ_SIZE, NULL, device->channel, 0);
    if (!device->pd || !device->cq) {
        mtl_log("%s: cannot create a protection domain or completion queue: %s",
                ibv_get_device_name(found), strerror(errno));
        devices.count++;
        return errno;
    }
    device->cq_size = INITIAL_CQ_SIZE;
    device->cq_reserved = 0;
    devices.count++;
    return 0;
close:
    ibv_close_device(device->context);
    return 0;
}

int devices_open(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    int err = 0;

    if (!list) {
        mtl_log("cannot list RDMA devices: %s", strerror(errno));
        return errno;
    }
    devices = (struct devices){ .count = 0 };
    for (int i = 0; list[i] && !err && devices.count < DEVICES_MAX; i++) {
        if (is_wanted(mtl.parameters.devices, ibv_get_device_name(list[i])))
            err = open_device(list[i]);
    }
    ibv_free_device_list(list);
    if (!err && !devices.path_count) {
        mtl_log("no RDMA device with an active port found; check ibv_devinfo and the parameters "
                "mtl_verbena_devices and mtl_verbena_gid_index");
        err = ENODEV;
    }
    if (err)
        devices_close();
    return err;
}

void devices_close(void)
{
    for (uint32_t i = 0; i < devices.count; i++) {
        struct device *device = &devices.device[i];

        if (device->cq)
            ibv_destroy_cq(device->cq);
        if (device->channel)
            ibv_destroy_comp_channel(device->channel);
        if (device->domain)
            ibv_dealloc_pd(device->domain);
        if (device->td)
            ibv_dealloc_td(device->td);
        if (device->pd)
            ibv_dealloc_pd(device->pd);
        ibv_close_device(device->context);
    }
    devices.count = devices.path_count = 0;
}

int device_reserve(struct device *device, uint32_t completions)
{
    uint32_t size = device->cq_size;
    int err;

    while (size < device->cq_reserved + completions)
        size *= 2;
    if (size != device->cq_size) {
        err = ibv_resize_cq(device->cq, size);
        if (err) {
            mtl_log("%s: cannot resize the completion queue to %u entries: %s",
                    ibv_get_device_name(device->context->device), size, strerror(err));
            return err;
        }
        device->cq_size = size;
    }
    device->cq_reserved += completions;
    return 0;
}

bool device_path_is_active(const struct path *path)
{
    struct ibv_port_attr attr;

    return !ibv_query_port(path->device->context, path->port, &attr) &&
           attr.state == IBV_PORT_ACTIVE;
}

void device_path_ah_attr(const struct path *path, const struct path_address *to,
                         struct ibv_ah_attr *ah_attr)
{
    *ah_attr = (struct ibv_ah_attr){
        .dlid = to->lid,
        .port_num = path->port,
        .is_global = path->global,
        .grh = { .dgid = to->gid, .sgid_index = path->gid_index, .hop_limit = 64 },
    };
}

struct ibv_qp *device_create_qp(const struct path *path, uint32_t sends, uint32_t receives,
                                int access)
{
    const struct device *device = path->device;
    struct ibv_qp_init_attr init = {
        .send_cq = device->cq,
        .recv_cq = device->cq,
        .cap = { .max_send_wr = sends,
                 .max_recv_wr = receives,
                 .max_send_sge = 1,
                 .max_recv_sge = 1,
                 .max_inline_data = mtl.parameters.inline_limit },
        .qp_type = IBV_QPT_RC,
    };
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = path->port,
        .qp_access_flags = access,
    };
    struct ibv_qp *qp = ibv_create_qp(device->domain ? device->domain : device->pd, &init);
    int err;

    if (!qp) {
        mtl_log("cannot create a queue pair with %u send and %u receive entries on %s: %s", sends,
                receives, ibv_get_device_name(device->context->device), strerror(errno));
        return NULL;
    }
    err = ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    if (!err)
        return qp;
    mtl_log("cannot use queue pair %u on %s port %u: %s", qp->qp_num,
            ibv_get_device_name(device->context->device), path->port, strerror(err));
    ibv_destroy_qp(qp);
    return NULL;
}

int device_connect_qp(const struct path *path, const struct path_address *to, struct ibv_qp *qp,
                      uint32_t qp_num)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = to->mtu < path->mtu ? to->mtu : path->mtu,
        .dest_qp_num = qp_num,
        .rq_psn = qp_num & 0xffffff,
        .max_dest_rd_atomic = 4,
        .min_rnr_timer = 12,
    };
    int err;

    device_path_ah_attr(path, to, &attr.ah_attr);
    err = ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                            IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS,
        .sq_psn = qp->qp_num & 0xffffff,
        .max_rd_atomic = 4,
        .timeout = mtl.parameters.timeout,
        .retry_cnt = mtl.parameters.retry_count,
        .rnr_retry = 7,
    };
    if (!err)
        err = ibv_modify_qp(qp, &attr,
                            IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC |
                                IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY);
    if (err)
        mtl_log("cannot connect queue pair %u to %u: %s", qp->qp_num, qp_num, strerror(err));
    return err;
}
