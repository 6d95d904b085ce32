/* SPDX-License-Identifier: BSD-2-Clause */
#include "preload/attributes.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/link.h"
#include "util/netif.h"

static bool query_context(struct ibv_context *context, const struct preload_node *node,
                          struct preload_attrs *attrs)
{
    unsigned port = node->port;

    return !ibv_query_device(context, &attrs->device) &&
           !ibv_query_port(context, port, &attrs->port) &&
           !ibv_query_gid(context, port, node->gid, &attrs->gid) &&
           !ibv_query_pkey(context, port, 0, &attrs->pkey) &&
           !verbena_query_port_counters(context, port, &attrs->counters);
}

bool preload_query(const struct preload_node *node, struct preload_attrs *attrs)
{
    int count;
    struct ibv_device **list = ibv_get_device_list(&count);
    struct ibv_context *context;
    bool answered;

    if (!list)
        return false;
    errno = ENODEV;
    context = (int)node->device < count ? ibv_open_device(list[node->device]) : NULL;
    ibv_free_device_list(list);
    if (!context)
        return false;
    answered = query_context(context, node, attrs);
    ibv_close_device(context);
    if (!answered)
        errno = EIO;
    return answered;
}

/* ---- the device ---- */

static int show_guid(__be64 network, char *out, size_t size)
{
    uint64_t guid = be64toh(network);

    return snprintf(out, size, "%04x:%04x:%04x:%04x\n", (unsigned)(guid >> 48),
                    (unsigned)(guid >> 32 & 0xffff), (unsigned)(guid >> 16 & 0xffff),
                    (unsigned)(guid & 0xffff));
}

int preload_show_fw_ver(const struct preload_attrs *attrs, char *out, size_t size)
{
    return snprintf(out, size, "%s\n", attrs->device.fw_ver);
}

int preload_show_hw_rev(const struct preload_attrs *attrs, char *out, size_t size)
{
    return snprintf(out, size, "%x\n", attrs->device.hw_ver);
}

int preload_show_node_guid(const struct preload_attrs *attrs, char *out, size_t size)
{
    return show_guid(attrs->device.node_guid, out, size);
}

int preload_show_sys_image_guid(const struct preload_attrs *attrs, char *out, size_t size)
{
    return show_guid(attrs->device.sys_image_guid, out, size);
}

/* ---- a port ---- */

static int show_named(unsigned number, const char *const *names, size_t count, char *out,
                      size_t size)
{
    return snprintf(out, size, "%u: %s\n", number,
                    number < count && names[number] ? names[number] : "<unknown>");
}

int preload_show_state(const struct preload_attrs *attrs, char *out, size_t size)
{
    static const char *const names[] = {
        [IBV_PORT_NOP] = "NOP",     [IBV_PORT_DOWN] = "DOWN",     [IBV_PORT_INIT] = "INIT",
        [IBV_PORT_ARMED] = "ARMED", [IBV_PORT_ACTIVE] = "ACTIVE",
    };

    return show_named(attrs->port.state, names, ARRAY_SIZE(names), out, size);
}

int preload_show_phys_state(const struct preload_attrs *attrs, char *out, size_t size)
{
    static const char *const names[] = {
        [1] = "Sleep", [2] = "Polling", [3] = "Disabled", [5] = "LinkUp"
    };

    return show_named(attrs->port.phys_state, names, ARRAY_SIZE(names), out, size);
}

int preload_show_link_layer(const struct preload_attrs *attrs, char *out, size_t size)
{
    return snprintf(out, size, "%s\n",
                    attrs->port.link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand");
}

static bool is_used(const union ibv_gid *gid)
{
    if (gid->global.subnet_prefix || gid->global.interface_id)
        return true;
    errno = EINVAL;
    return false;
}

int preload_show_gid_type(const struct preload_attrs *attrs, char *out, size_t size)
{
    if (!is_used(&attrs->gid))
        return -1;
    return snprintf(out, size, "%s\n",
                    attrs->port.link_layer == IBV_LINK_LAYER_ETHERNET ? "RoCE v2" : "IB/RoCE v1");
}

/* No GID of InfiniBand is an interface's. */
int preload_show_gid_ndev(const struct preload_attrs *attrs, char *out, size_t size)
{
    const char *wire = getenv("VERBENA_WIRE");
    struct netif netif;
    char error[512];

    if (!is_used(&attrs->gid))
        return -1;
    if (attrs->port.link_layer != IBV_LINK_LAYER_ETHERNET || !wire ||
        netif_find(wire, &netif, error, sizeof(error)))
        return 0;
    return snprintf(out, size, "%s\n", netif.name);
}

int preload_show_lid(const struct preload_attrs *attrs, char *out, size_t size)
{
    return snprintf(out, size, "0x%x\n", attrs->port.lid);
}

int preload_show_lid_mask_count(const struct preload_attrs *attrs, char *out, size_t size)
{
    return snprintf(out, size, "%u\n", attrs->port.lmc);
}

int preload_show_sm_lid(const struct preload_attrs *attrs, char *out, size_t size)
{
    return snprintf(out, size, "0x%x\n", attrs->port.sm_lid);
}

int preload_show_sm_sl(const struct preload_attrs *attrs, char *out, size_t size)
{
    return snprintf(out, size, "%u\n", attrs->port.sm_sl);
}

int preload_show_cap_mask(const struct preload_attrs *attrs, char *out, size_t size)
{
    return snprintf(out, size, "0x%08x\n", attrs->port.port_cap_flags);
}

int preload_show_rate(const struct preload_attrs *attrs, char *out, size_t size)
{
    const struct link_speed *speed = link_speed(attrs->port.active_speed);
    unsigned lanes = link_lanes(attrs->port.active_width), rate = lanes * speed->lane;

    return snprintf(out, size, "%u%s Gb/sec (%uX %s)\n", rate / 10, rate % 10 ? ".5" : "", lanes,
                    speed->name);
}

int preload_show_gid(const struct preload_attrs *attrs, char *out, size_t size)
{
    const uint8_t *raw = attrs->gid.raw;
    int length = 0;

    for (unsigned i = 0; i < sizeof(attrs->gid.raw); i += 2)
        length += snprintf(out + length, size - length, "%02x%02x%c", raw[i], raw[i + 1],
                           i < 14 ? ':' : '\n');
    return length;
}

int preload_show_pkey(const struct preload_attrs *attrs, char *out, size_t size)
{
    return snprintf(out, size, "0x%04x\n", be16toh(attrs->pkey));
}

/* ---- counters of a port ---- */

static int show_count(uint64_t count, char *out, size_t size)
{
    return snprintf(out, size, "%llu\n", (unsigned long long)count);
}

/* The specification counts data in words of four octets. */
int preload_show_xmit_data(const struct preload_attrs *attrs, char *out, size_t size)
{
    return show_count(attrs->counters.xmit_bytes / 4, out, size);
}

int preload_show_rcv_data(const struct preload_attrs *attrs, char *out, size_t size)
{
    return show_count(attrs->counters.rcv_bytes / 4, out, size);
}

int preload_show_xmit_packets(const struct preload_attrs *attrs, char *out, size_t size)
{
    return show_count(attrs->counters.xmit_packets, out, size);
}

int preload_show_rcv_packets(const struct preload_attrs *attrs, char *out, size_t size)
{
    return show_count(attrs->counters.rcv_packets, out, size);
}
