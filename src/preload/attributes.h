/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PRELOAD_ATTRIBUTES_H
#define PRELOAD_ATTRIBUTES_H

/* Device and port attributes in sysfs, queried from the adapter when a file is opened. */

#include "preload/paths.h"

#include "verbena.h"

struct preload_attrs {
    struct ibv_device_attr device;
    struct ibv_port_attr port;
    union ibv_gid gid;
    __be16 pkey;
    struct verbena_port_counters counters;
};

/* Queries the adapter. False with errno on failure. */
bool preload_query(const struct preload_node *node, struct preload_attrs *attrs);

/* Each writes the content of one file and returns its length. */
int preload_show_fw_ver(const struct preload_attrs *attrs, char *out, size_t size);
int preload_show_hw_rev(const struct preload_attrs *attrs, char *out, size_t size);
int preload_show_node_guid(const struct preload_attrs *attrs, char *out, size_t size);
int preload_show_sys_image_guid(const struct preload_attrs *attrs, char *out, size_t size);
int preload_show_state(const struct preload_attrs *attrs, char *out, size_t size);
int preload_show_phys_state(const struct preload_attrs *attrs, char *out, size_t size);
int preload_show_link_layer(const struct preload_attrs *attrs, char *out, size_t size);
/* These two fail for an empty entry, as the kernel's do. */
int preload_show_gid_type(const struct preload_attrs *attrs, char *out, size_t size);
int preload_show_gid_ndev(const struct preload_attrs *attrs, char *out, size_t size);
int preload_show_lid(const struct preload_attrs *attrs, char *out, size_t size);
int preload_show_lid_mask_count(const struct preload_attrs *attrs, char *out, size_t size);
int preload_show_sm_lid(const struct preload_attrs *attrs, char *out, size_t size);
int preload_show_sm_sl(const struct preload_attrs *attrs, char *out, size_t size);
int preload_show_cap_mask(const struct preload_attrs *attrs, char *out, size_t size);
int preload_show_rate(const struct preload_attrs *attrs, char *out, size_t size);
int preload_show_gid(const struct preload_attrs *attrs, char *out, size_t size);
int preload_show_pkey(const struct preload_attrs *attrs, char *out, size_t size);
int preload_show_xmit_data(const struct preload_attrs *attrs, char *out, size_t size);
int preload_show_rcv_data(const struct preload_attrs *attrs, char *out, size_t size);
int preload_show_xmit_packets(const struct preload_attrs *attrs, char *out, size_t size);
int preload_show_rcv_packets(const struct preload_attrs *attrs, char *out, size_t size);

#endif
