/* SPDX-License-Identifier: BSD-2-Clause */
#include "verbs/verbs.h"

#include "check/check.h"

#include "hca/addr.h"
#include "hca/engine.h"
#include "hca/notify.h"
#include "util/log.h"

#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define VENDOR_ID      0x027662
/* perftest uses inline data only with part ids that it knows, whatever the vendor id. This is that
 * of QLogic's FastLinQ, for which it has no other rules: with newer ConnectX ids it posts through
 * ibv_wr_*(), which is slower here, and with older ones it limits the MTU. */
#define VENDOR_PART_ID 32880

/* ---- the list of devices ---- */

static struct hca_device devices[8];
static pthread_once_t devices_described = PTHREAD_ONCE_INIT;

static void describe_device(struct hca_device *d, unsigned index)
{
    d->index = index;
    d->ibv.node_type = IBV_NODE_CA;
    d->ibv.transport_type = IBV_TRANSPORT_IB;
    snprintf(d->ibv.name, sizeof(d->ibv.name), "verbena%u", index);
    snprintf(d->ibv.dev_name, sizeof(d->ibv.dev_name), "uverbs%u", index);
    snprintf(d->ibv.dev_path, sizeof(d->ibv.dev_path), "/sys/class/infiniband_verbs/uverbs%u",
             index);
    snprintf(d->ibv.ibdev_path, sizeof(d->ibv.ibdev_path), "/sys/class/infiniband/verbena%u",
             index);
}

/* Initialised once: threads may read names of devices while others get the list. */
static void describe_devices(void)
{
    for (unsigned i = 0; i < ARRAY_SIZE(devices); i++)
        describe_device(&devices[i], i);
}

EXPORT struct ibv_device **ibv_get_device_list(int *num_devices)
{
    int err = ensure_attached();

    if (num_devices)
        *num_devices = 0;
    if (err)
        return fail(err);
    struct ibv_device **list = calloc(seg->devices + 1, sizeof(*list));
    if (!list)
        return fail(ENOMEM);
    pthread_once(&devices_described, describe_devices);
    for (unsigned i = 0; i < seg->devices && i < ARRAY_SIZE(devices); i++) {
        list[i] = &devices[i].ibv;
        if (num_devices)
            *num_devices = i + 1;
    }
    return list;
}

EXPORT void ibv_free_device_list(struct ibv_device **list)
{
    free(list);
}

EXPORT const char *ibv_get_device_name(struct ibv_device *device)
{
    return device->name;
}

EXPORT __be64 ibv_get_device_guid(struct ibv_device *device)
{
    if (ensure_attached())
        return 0;
    return htobe64(addr_node_guid(segment_config()->node, ((struct hca_device *)device)->index));
}

EXPORT int ibv_get_device_index(struct ibv_device *device)
{
    return ((struct hca_device *)device)->index;
}

/* ---- contexts ---- */

static int query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr,
                      size_t attr_len);
static int query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *in,
                           struct ibv_device_attr_ex *attr, size_t attr_size);
static int query_rt_values(struct ibv_context *context, struct ibv_values_ex *values);

static void fill_tables(struct verbs_context *v)
{
    verbs_fill_unsupported(v);
    v->sz = sizeof(*v);
    v->query_port = query_port;
    v->query_device_ex = query_device_ex;
    v->query_rt_values = query_rt_values;
    v->advise_mr = verbs_advise_mr;
    v->reg_dm_mr = verbs_reg_dm_mr;
    v->alloc_null_mr = verbs_alloc_null_mr;
    v->alloc_dm = verbs_alloc_dm;
    v->free_dm = verbs_free_dm;
    v->alloc_parent_domain = verbs_alloc_parent_domain;
    v->alloc_td = verbs_alloc_td;
    v->dealloc_td = verbs_dealloc_td;
    v->modify_cq = verbs_modify_cq;
    v->create_cq_ex = verbs_create_cq_ex;
    v->create_qp_ex = verbs_create_qp_ex;
    v->open_qp = verbs_open_qp;
    v->create_srq_ex = verbs_create_srq_ex;
    v->get_srq_num = verbs_get_srq_num;
    v->open_xrcd = verbs_open_xrcd;
    v->close_xrcd = verbs_close_xrcd;
    v->context.ops.alloc_mw = verbs_alloc_mw;
    v->context.ops.bind_mw = verbs_bind_mw;
    v->context.ops.dealloc_mw = verbs_dealloc_mw;
    v->context.ops.poll_cq = check_sanitizes ? verbs_poll_cq_checked : verbs_poll_cq;
    v->context.ops.req_notify_cq = verbs_req_notify_cq;
    v->context.ops.post_srq_recv = check_records()  ? verbs_post_srq_recv_checked
                                   : check_explains ? verbs_post_srq_recv_explained
                                                    : verbs_post_srq_recv;
    v->context.ops.post_send = check_records() ? verbs_post_send_checked : verbs_post_send;
    v->context.ops.post_recv = check_records()  ? verbs_post_recv_checked
                               : check_explains ? verbs_post_recv_explained
                                                : verbs_post_recv;
}

EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    static int started_in = -1;
    int err = ensure_attached();

    if (err || (err = check_call(VERB_OPEN_DEVICE)))
        return fail(err);
    if (started_in != proc_self) {
        if ((err = hca_engine->start()))
            return fail(err);
        started_in = proc_self;
    }
    struct hca_context *c = calloc(1, sizeof(*c));
    if (!c)
        return fail(ENOMEM);
    c->device = (struct hca_device *)device;
    c->owner = proc_self;
    c->node = segment_config()->node;
    c->verbs.context.async_fd = notify_create(&c->async_id);
    c->verbs.context.cmd_fd = eventfd(0, EFD_CLOEXEC);
    if (c->verbs.context.async_fd < 0 || c->verbs.context.cmd_fd < 0) {
        err = errno;
        notify_close(c->verbs.context.async_fd, c->async_id);
        free(c);
        return fail(err);
    }
    c->verbs.context.device = device;
    c->verbs.context.num_comp_vectors = HCA_COMP_VECTORS;
    c->verbs.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
    pthread_mutex_init(&c->verbs.context.mutex, NULL);
    fill_tables(&c->verbs);
    verbs_list_device(c);
    verbs_watch_context(c);
    return &c->verbs.context;
}

EXPORT int ibv_close_device(struct ibv_context *context)
{
    struct hca_context *c = to_context(context);

    if (unlikely(check_on))
        check_closes(context);
    verbs_unwatch_context(c);
    verbs_unlist_device(c);
    notify_close(context->async_fd, c->async_id);
    close(context->cmd_fd);
    free(c);
    return 0;
}

/* ---- device and port attributes ---- */

/* The caller's headers may have fewer fields than ours, or more. */
static void answer_sized(void *to, size_t size, const void *full, size_t full_size)
{
    size_t known = size < full_size ? size : full_size;

    memcpy(to, full, known);
    memset((char *)to + known, 0, size - known);
}

EXPORT int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    struct hca_context *c = to_context(context);

    memset(attr, 0, sizeof(*attr));
    strcpy(attr->fw_ver, VERBENA_VERSION);
    attr->node_guid = htobe64(addr_node_guid(c->node, c->device->index));
    attr->sys_image_guid = attr->node_guid;
    attr->max_mr_size = UINT64_MAX;
    attr->page_size_cap = 0xfffff000;
    attr->vendor_id = VENDOR_ID;
    attr->vendor_part_id = VENDOR_PART_ID;
    attr->hw_ver = 1;
    attr->max_qp = (1 << QP_INDEX_BITS) - 2;
    attr->max_qp_wr = HCA_MAX_WR;
    attr->device_cap_flags = IBV_DEVICE_BAD_PKEY_CNTR | IBV_DEVICE_BAD_QKEY_CNTR |
                             IBV_DEVICE_CHANGE_PHY_PORT | IBV_DEVICE_CURR_QP_STATE_MOD |
                             IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID |
                             IBV_DEVICE_RC_RNR_NAK_GEN |
                             IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_XRC |
                             IBV_DEVICE_MEM_WINDOW_TYPE_2B;
    attr->max_sge = HCA_MAX_SGE;
    attr->max_sge_rd = HCA_MAX_SGE;
    attr->max_cq = 1 << 20;
    attr->max_cqe = HCA_MAX_CQE;
    attr->max_mr = 1 << MR_INDEX_BITS;
    attr->max_pd = 1 << 20;
    attr->max_qp_rd_atom = HCA_MAX_RD_ATOMIC;
    attr->max_res_rd_atom = HCA_MAX_RD_ATOMIC << QP_INDEX_BITS;
    attr->max_qp_init_rd_atom = HCA_MAX_RD_ATOMIC;
    attr->atomic_cap = IBV_ATOMIC_HCA;
    attr->max_mw = 1 << MR_INDEX_BITS;
    if (hca_engine->multicast) {
        attr->max_mcast_grp = MCAST_ENTRIES;
        attr->max_mcast_qp_attach = 256;
        attr->max_total_mcast_qp_attach = MCAST_ENTRIES;
    }
    attr->max_ah = 1 << 24;
    attr->max_srq = (1 << SRQ_INDEX_BITS) - 2;
    attr->max_srq_wr = HCA_MAX_WR;
    attr->max_srq_sge = HCA_MAX_SGE;
    attr->max_pkeys = 1;
    attr->local_ca_ack_delay = 0;
    attr->phys_port_cnt = seg->ports;
    return 0;
}

static int query_device_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *in,
                           struct ibv_device_attr_ex *attr, size_t attr_size)
{
    const uint32_t odp = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE |
                         IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC | IBV_ODP_SUPPORT_SRQ_RECV;
    struct ibv_device_attr_ex full = { 0 };

    if ((in && in->comp_mask) || attr_size < sizeof(full.orig_attr))
        return EINVAL;
    ibv_query_device(context, &full.orig_attr);
    full.odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
    full.odp_caps.per_transport_caps.rc_odp_caps = odp;
    full.odp_caps.per_transport_caps.uc_odp_caps = odp;
    full.odp_caps.per_transport_caps.ud_odp_caps = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV |
                                                   IBV_ODP_SUPPORT_SRQ_RECV;
    full.xrc_odp_caps = odp;
    full.completion_timestamp_mask = UINT64_MAX;
    full.hca_core_clock = 1000000; /* kHz: timestamps count nanoseconds */
    full.device_cap_flags_ex = full.orig_attr.device_cap_flags;
    full.max_dm_size = dm_limit();
    full.phys_port_cnt_ex = full.orig_attr.phys_port_cnt;
    answer_sized(attr, attr_size, &full, sizeof(full));
    return 0;
}

static int query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
    uint32_t want = values->comp_mask;

    values->comp_mask = want & IBV_VALUES_MASK_RAW_CLOCK;
    if (want & IBV_VALUES_MASK_RAW_CLOCK)
        clock_gettime(CLOCK_MONOTONIC, &values->raw_clock);
    return want & ~IBV_VALUES_MASK_RAW_CLOCK ? EINVAL : 0;
}

static int query_port(struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr,
                      size_t attr_len)
{
    struct hca_context *c = to_context(context);
    struct ibv_port_attr full = {
        .state = IBV_PORT_ACTIVE,
        .max_mtu = hca_link_mtu(),
        .active_mtu = hca_link_mtu(),
        .gid_tbl_len = HCA_GIDS,
        .port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_SYS_IMAGE_GUID_SUP,
        .max_msg_sz = 1u << 31,
        .pkey_tbl_len = 1,
        .sm_lid = seg->first_lid,
        .max_vl_num = 4,
        .active_width = 2, /* 4x */
        .active_speed = 64, /* HDR */
        .phys_state = 5,
        .link_layer = IBV_LINK_LAYER_INFINIBAND,
    };

    if (port_num < 1 || port_num > seg->ports)
        return EINVAL;
    full.lid = addr_lid(c->node, c->device->index, port_num);
    if (addr_port_is_down(full.lid)) {
        full.state = IBV_PORT_DOWN;
        full.phys_state = 2; /* polling for the other end */
    }
    if (hca_is_ethernet()) {
        full.link_layer = IBV_LINK_LAYER_ETHERNET;
        full.lid = full.sm_lid = 0;
        full.flags = IBV_QPF_GRH_REQUIRED;
    }
    answer_sized(attr, attr_len, &full, sizeof(full));
    return 0;
}

#undef ibv_query_port
EXPORT int ibv_query_port(struct ibv_context *context, uint8_t port_num,
                          struct _compat_ibv_port_attr *attr)
{
    return query_port(context, port_num, (struct ibv_port_attr *)attr,
                      offsetof(struct ibv_port_attr, port_cap_flags2));
}

/* ---- addresses ---- */

EXPORT int ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index,
                         union ibv_gid *gid)
{
    struct hca_context *c = to_context(context);

    if (port_num < 1 || port_num > seg->ports || index < 0 || index >= HCA_GIDS) {
        errno = EINVAL;
        return -1;
    }
    memset(gid, 0, sizeof(*gid));
    if (hca_is_ethernet())
        hca_engine->gid(index, gid);
    else if (index == 0)
        addr_gid(c->node, c->device->index, port_num, gid);
    return 0;
}

static bool has_gid(unsigned index)
{
    union ibv_gid gid;

    return hca_is_ethernet() ? hca_engine->gid(index, &gid) : index == 0;
}

EXPORT int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
                             struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
    struct ibv_gid_entry full = { .gid_index = gid_index, .port_num = port_num,
                                  .gid_type = hca_is_ethernet() ? IBV_GID_TYPE_ROCE_V2
                                                                : IBV_GID_TYPE_IB };

    if (flags)
        return EOPNOTSUPP;
    if (port_num > UINT8_MAX || gid_index >= HCA_GIDS ||
        ibv_query_gid(context, port_num, gid_index, &full.gid))
        return EINVAL;
    if (!has_gid(gid_index))
        return ENODATA;
    answer_sized(entry, entry_size, &full, sizeof(full));
    return 0;
}

EXPORT ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
                                    size_t max_entries, uint32_t flags, size_t entry_size)
{
    size_t count = 0;

    if (flags)
        return -EOPNOTSUPP;
    for (unsigned port = 1; port <= seg->ports; port++)
        for (unsigned index = 0; index < HCA_GIDS; index++) {
            if (!has_gid(index))
                continue;
            if (count == max_entries)
                return -EINVAL;
            _ibv_query_gid_ex(context, port, index,
                              (struct ibv_gid_entry *)((char *)entries + count * entry_size), 0,
                              entry_size);
            count++;
        }
    return count;
}

EXPORT int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
                              unsigned int *type);
EXPORT int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index,
                              unsigned int *type)
{
    if (port_num < 1 || port_num > seg->ports || index >= HCA_GIDS) {
        errno = EINVAL;
        return -1;
    }
    *type = hca_is_ethernet(); /* 0: InfiniBand, or RoCE version 1; 1: RoCE version 2 */
    return 0;
}

EXPORT int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey)
{
    if (port_num < 1 || port_num > seg->ports || index != 0) {
        errno = EINVAL;
        return -1;
    }
    *pkey = htobe16(HCA_PKEY);
    return 0;
}

EXPORT int ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num, __be16 pkey)
{
    if (port_num >= 1 && port_num <= seg->ports && pkey == htobe16(HCA_PKEY))
        return 0;
    errno = EINVAL;
    return -1;
}

/* ---- other calls of libibverbs ---- */

EXPORT int ibv_fork_init(void)
{
    return 0; /* the adapter uses virtual addresses: copy-on-write after fork is harmless */
}

EXPORT enum ibv_fork_status ibv_is_fork_initialized(void)
{
    return IBV_FORK_UNNEEDED;
}

EXPORT int ibv_dontfork_range(void *base, size_t size);
EXPORT int ibv_dontfork_range(void *base, size_t size)
{
    return 0;
}

EXPORT int ibv_dofork_range(void *base, size_t size);
EXPORT int ibv_dofork_range(void *base, size_t size)
{
    return 0;
}

EXPORT const char *ibv_get_sysfs_path(void);
EXPORT const char *ibv_get_sysfs_path(void)
{
    return "/sys";
}

EXPORT int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);
EXPORT int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
    char path[512];

    if (!size || snprintf(path, sizeof(path), "%s/%s", dir, file) >= (int)sizeof(path))
        return -1;
    FILE *f = fopen(path, "re");
    if (!f)
        return -1;
    size_t n = fread(buf, 1, size - 1, f);
    fclose(f);
    if (n && buf[n - 1] == '\n')
        n--;
    buf[n] = 0;
    return n;
}
