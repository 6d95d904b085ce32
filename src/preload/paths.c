/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <string.h>

#include "preload/attributes.h"

#define ARRAY_LENGTH(array) (sizeof(array) / sizeof((array)[0]))

#define MAX_DEVICES         8
#define MAX_PORTS           4

#define HCA                 "/sys/class/infiniband/verbena%d"
#define PORT                HCA "/ports/%p"

#define DIRECTORY(path)                            \
    {                                              \
        .pattern = path, .kind = PRELOAD_DIRECTORY \
    }
#define DEVICE(path)                            \
    {                                           \
        .pattern = path, .kind = PRELOAD_DEVICE \
    }
#define TEXT(path, text)                                       \
    {                                                          \
        .pattern = path, .kind = PRELOAD_FILE, .content = text \
    }
#define SHOWN(path, function)                                   \
    {                                                           \
        .pattern = path, .kind = PRELOAD_FILE, .show = function \
    }

/*
 * '%d' stands for a device number from 0, '%p' for a port number from 1, '%g' for a GID's index.
 * The network interface is the one whose addresses rdma_cm accepts. A file has fixed content, or
 * one that the adapter tells. The error counters are of errors that memory does not make.
 */
static const struct row {
    const char *pattern;
    enum preload_kind kind;
    const char *content;
    int (*show)(const struct preload_attrs *attrs, char *out, size_t size);
} rows[] = {
    DIRECTORY("/sys/class/infiniband"),
    DIRECTORY(HCA),
    TEXT(HCA "/node_type", "1: CA\n"),
    TEXT(HCA "/board_id", "verbena-live\n"),
    TEXT(HCA "/hca_type", "verbena\n"),
    TEXT(HCA "/node_desc", "verbena%d\n"),
    SHOWN(HCA "/fw_ver", preload_show_fw_ver),
    SHOWN(HCA "/hw_rev", preload_show_hw_rev),
    SHOWN(HCA "/node_guid", preload_show_node_guid),
    SHOWN(HCA "/sys_image_guid", preload_show_sys_image_guid),
    DIRECTORY(HCA "/device"),
    TEXT(HCA "/device/numa_node", "-1\n"),
    DIRECTORY(HCA "/device/net"),
    DIRECTORY(HCA "/device/net/lo"),
    DIRECTORY(HCA "/ports"),
    DIRECTORY(PORT),
    SHOWN(PORT "/state", preload_show_state),
    SHOWN(PORT "/phys_state", preload_show_phys_state),
    SHOWN(PORT "/link_layer", preload_show_link_layer),
    SHOWN(PORT "/lid", preload_show_lid),
    SHOWN(PORT "/lid_mask_count", preload_show_lid_mask_count),
    SHOWN(PORT "/sm_lid", preload_show_sm_lid),
    SHOWN(PORT "/sm_sl", preload_show_sm_sl),
    SHOWN(PORT "/cap_mask", preload_show_cap_mask),
    SHOWN(PORT "/rate", preload_show_rate),
    DIRECTORY(PORT "/gids"),
    SHOWN(PORT "/gids/%g", preload_show_gid),
    DIRECTORY(PORT "/gid_attrs"),
    DIRECTORY(PORT "/gid_attrs/types"),
    SHOWN(PORT "/gid_attrs/types/%g", preload_show_gid_type),
    DIRECTORY(PORT "/gid_attrs/ndevs"),
    SHOWN(PORT "/gid_attrs/ndevs/%g", preload_show_gid_ndev),
    DIRECTORY(PORT "/pkeys"),
    SHOWN(PORT "/pkeys/0", preload_show_pkey),
    DIRECTORY(PORT "/counters"),
    SHOWN(PORT "/counters/port_xmit_data", preload_show_xmit_data),
    SHOWN(PORT "/counters/port_rcv_data", preload_show_rcv_data),
    SHOWN(PORT "/counters/port_xmit_packets", preload_show_xmit_packets),
    SHOWN(PORT "/counters/port_rcv_packets", preload_show_rcv_packets),
    TEXT(PORT "/counters/symbol_error", "0\n"),
    TEXT(PORT "/counters/link_error_recovery", "0\n"),
    TEXT(PORT "/counters/port_rcv_errors", "0\n"),
    TEXT(PORT "/counters/port_rcv_remote_physical_errors", "0\n"),
    TEXT(PORT "/counters/port_rcv_switch_relay_errors", "0\n"),
    TEXT(PORT "/counters/port_xmit_constraint_errors", "0\n"),
    TEXT(PORT "/counters/port_rcv_constraint_errors", "0\n"),
    TEXT(PORT "/counters/local_link_integrity_errors", "0\n"),
    TEXT(PORT "/counters/excessive_buffer_overrun_errors", "0\n"),
    TEXT(PORT "/counters/VL15_dropped", "0\n"),
    DIRECTORY("/sys/class/infiniband_mad"),
    TEXT("/sys/class/infiniband_mad/abi_version", "5\n"),
    DIRECTORY("/sys/class/infiniband_verbs"),
    TEXT("/sys/class/infiniband_verbs/abi_version", "6\n"),
    DIRECTORY("/sys/class/infiniband_verbs/uverbs%d"),
    TEXT("/sys/class/infiniband_verbs/uverbs%d/abi_version", "1\n"),
    TEXT("/sys/class/infiniband_verbs/uverbs%d/ibdev", "verbena%d\n"),
    DIRECTORY("/dev/infiniband"),
    DEVICE("/dev/infiniband/rdma_cm"),
    DEVICE("/dev/infiniband/uverbs%d"),
};

static unsigned count_from_environment(const char *variable, unsigned most)
{
    const char *text = getenv(variable);
    unsigned long count = text ? strtoul(text, NULL, 10) : 1;

    return count >= 1 && count <= most ? count : 1;
}

static unsigned device_count(void)
{
    return count_from_environment("VERBENA_DEVICES", MAX_DEVICES);
}

static unsigned port_count(void)
{
    return count_from_environment("VERBENA_PORTS", MAX_PORTS);
}

static bool covered(const char *path)
{
    static const char sysfs[] = "/sys/class/infiniband";
    static const char dev[] = "/dev/infiniband";

    return path && path[0] == '/' &&
           (!strncmp(path, sysfs, sizeof(sysfs) - 1) || !strncmp(path, dev, sizeof(dev) - 1));
}

static bool take_number(const char **text, unsigned *number)
{
    const char *at = *text;

    /* One digit: there are fewer than ten devices, ports and GIDs, and "01" does not exist. */
    if (*at < '0' || *at > '9' || (at[1] >= '0' && at[1] <= '9'))
        return false;
    *number = *at - '0';
    *text = at + 1;
    return true;
}

static unsigned *number_of(struct preload_node *node, char letter)
{
    return letter == 'd' ? &node->device : letter == 'p' ? &node->port : &node->gid;
}

/* Equal up to repeated and trailing slashes of the path. */
static bool matches(const char *pattern, const char *path, struct preload_node *node)
{
    for (;;) {
        if (*pattern == '%') {
            if (!take_number(&path, number_of(node, pattern[1])))
                return false;
            pattern += 2;
            continue;
        }
        if (*path == '/') {
            while (path[1] == '/')
                path++;
            if (!path[1])
                path++;
        }
        if (*pattern != *path)
            return false;
        if (!*pattern)
            return true;
        pattern++;
        path++;
    }
}

bool preload_lookup(const char *path, struct preload_node *node)
{
    if (!covered(path))
        return false;
    for (unsigned i = 0; i < ARRAY_LENGTH(rows); i++) {
        *node = (struct preload_node){ .kind = rows[i].kind, .row = i, .port = 1 };
        if (matches(rows[i].pattern, path, node))
            return node->device < device_count() && node->port >= 1 && node->port <= port_count() &&
                   node->gid < PRELOAD_GIDS;
    }
    return false;
}

static size_t expand(const char *pattern, struct preload_node node, char *out, size_t size)
{
    size_t length = 0;

    while (*pattern && length + 1 < size) {
        if (*pattern == '%') {
            out[length++] = '0' + *number_of(&node, pattern[1]);
            pattern += 2;
        } else {
            out[length++] = *pattern++;
        }
    }
    out[length] = '\0';
    return length;
}

int preload_content(const struct preload_node *node, char content[PRELOAD_CONTENT_SIZE])
{
    const struct row *row = &rows[node->row];
    struct preload_attrs attrs;

    if (!row->show)
        return expand(row->content, *node, content, PRELOAD_CONTENT_SIZE);
    return preload_query(node, &attrs) ? row->show(&attrs, content, PRELOAD_CONTENT_SIZE) : -1;
}

/* The last component of a child's pattern, or NULL if the row is not in the directory. */
static const char *child_component(const char *directory, const char *pattern)
{
    size_t length = strlen(directory);

    if (strncmp(pattern, directory, length) || pattern[length] != '/')
        return NULL;
    pattern += length + 1;
    return strchr(pattern, '/') ? NULL : pattern;
}

bool preload_entry(const struct preload_node *directory, unsigned index,
                   char name[PRELOAD_NAME_SIZE], enum preload_kind *kind)
{
    for (unsigned i = 0; i < ARRAY_LENGTH(rows); i++) {
        const char *component = child_component(rows[directory->row].pattern, rows[i].pattern);
        struct preload_node child = *directory;
        unsigned copies = 1;

        if (!component)
            continue;
        if (strstr(component, "%d")) {
            copies = device_count();
            child.device = index;
        } else if (strstr(component, "%p")) {
            copies = port_count();
            child.port = index + 1;
        } else if (strstr(component, "%g")) {
            copies = PRELOAD_GIDS;
            child.gid = index;
        }
        if (index < copies) {
            expand(component, child, name, PRELOAD_NAME_SIZE);
            *kind = rows[i].kind;
            return true;
        }
        index -= copies;
    }
    return false;
}
