#include <stdlib.h>
#include <string.h>

#include "preload/paths.h"

#define ARRAY_LENGTH(array) (sizeof(array) / sizeof((array)[0]))

#define MAX_DEVICES         8
#define MAX_PORTS           4

#define HCA                 "/sys/class/infiniband/verbena%d"

/*
 * '%d' stands for a device number from 0, '%p' for a port number from 1. The network interface is
 * the one whose addresses rdma_cm accepts.
 */
static const struct row {
    const char *pattern;
    enum preload_kind kind;
    const char *content;
} rows[] = {
    { "/sys/class/infiniband", PRELOAD_DIRECTORY, NULL },
    { HCA, PRELOAD_DIRECTORY, NULL },
    { HCA "/node_type", PRELOAD_FILE, "1: CA\n" },
    { HCA "/board_id", PRELOAD_FILE, "verbena-live\n" },
    { HCA "/device", PRELOAD_DIRECTORY, NULL },
    { HCA "/device/numa_node", PRELOAD_FILE, "-1\n" },
    { HCA "/device/net", PRELOAD_DIRECTORY, NULL },
    { HCA "/device/net/lo", PRELOAD_DIRECTORY, NULL },
    { HCA "/ports", PRELOAD_DIRECTORY, NULL },
    { HCA "/ports/%p", PRELOAD_DIRECTORY, NULL },
    { HCA "/ports/%p/state", PRELOAD_FILE, "4: ACTIVE\n" },
    { HCA "/ports/%p/link_layer", PRELOAD_FILE, "InfiniBand\n" },
    { "/sys/class/infiniband_verbs", PRELOAD_DIRECTORY, NULL },
    { "/sys/class/infiniband_verbs/abi_version", PRELOAD_FILE, "6\n" },
    { "/sys/class/infiniband_verbs/uverbs%d", PRELOAD_DIRECTORY, NULL },
    { "/sys/class/infiniband_verbs/uverbs%d/abi_version", PRELOAD_FILE, "1\n" },
    { "/sys/class/infiniband_verbs/uverbs%d/ibdev", PRELOAD_FILE, "verbena%d\n" },
    { "/dev/infiniband", PRELOAD_DIRECTORY, NULL },
    { "/dev/infiniband/rdma_cm", PRELOAD_DEVICE, NULL },
    { "/dev/infiniband/uverbs%d", PRELOAD_DEVICE, NULL },
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

    /* At most one digit: neither devices nor ports reach ten, and "01" is no name. */
    if (*at < '0' || *at > '9' || (at[1] >= '0' && at[1] <= '9'))
        return false;
    *number = *at - '0';
    *text = at + 1;
    return true;
}

/* Equal up to repeated and trailing slashes of the path. */
static bool matches(const char *pattern, const char *path, struct preload_node *node)
{
    for (;;) {
        if (*pattern == '%') {
            if (!take_number(&path, pattern[1] == 'd' ? &node->device : &node->port))
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
            return node->device < device_count() && node->port >= 1 && node->port <= port_count();
    }
    return false;
}

static size_t expand(const char *pattern, unsigned device, unsigned port, char *out, size_t size)
{
    size_t length = 0;

    while (*pattern && length + 1 < size) {
        if (*pattern == '%') {
            out[length++] = '0' + (pattern[1] == 'd' ? device : port);
            pattern += 2;
        } else {
            out[length++] = *pattern++;
        }
    }
    out[length] = '\0';
    return length;
}

size_t preload_content(const struct preload_node *node, char content[PRELOAD_CONTENT_SIZE])
{
    const char *text = rows[node->row].content;

    return expand(text ? text : "", node->device, node->port, content, PRELOAD_CONTENT_SIZE);
}

/* The last component of a child's pattern, or NULL if the row is no child of the directory. */
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
        unsigned device = directory->device, port = directory->port, copies = 1;

        if (!component)
            continue;
        if (strstr(component, "%d")) {
            copies = device_count();
            device = index;
        } else if (strstr(component, "%p")) {
            copies = port_count();
            port = index + 1;
        }
        if (index < copies) {
            expand(component, device, port, name, PRELOAD_NAME_SIZE);
            *kind = rows[i].kind;
            return true;
        }
        index -= copies;
    }
    return false;
}
