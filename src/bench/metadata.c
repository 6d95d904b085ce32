/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/metadata.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static bool first_line(const char *path, char *line, size_t size)
{
    FILE *file = fopen(path, "r");
    bool read;

    if (!file)
        return false;
    read = fgets(line, size, file) != NULL;
    fclose(file);
    line[read ? strcspn(line, "\n") : 0] = '\0';
    return read;
}

/* Finds the value of a "name : value" line in /proc/cpuinfo or /proc/meminfo. */
static bool proc_value(const char *path, const char *name, char *value, size_t size)
{
    FILE *file = fopen(path, "r");
    char line[256];
    bool found = false;

    while (file && !found && fgets(line, sizeof(line), file)) {
        char *colon = strchr(line, ':');

        if (strncmp(line, name, strlen(name)) || !colon)
            continue;
        colon += 1 + strspn(colon + 1, " \t");
        colon[strcspn(colon, "\n")] = '\0';
        snprintf(value, size, "%s", colon);
        found = true;
    }
    if (file)
        fclose(file);
    return found;
}

void metadata_of_machine(struct metadata *metadata)
{
    struct utsname system;
    char text[256];

    if (!uname(&system)) {
        results_metadata_set(metadata, "host", "%s", system.nodename);
        results_metadata_set(metadata, "kernel", "%s %s", system.sysname, system.release);
        results_metadata_set(metadata, "architecture", "%s", system.machine);
    }
    if (proc_value("/proc/cpuinfo", "model name", text, sizeof(text)))
        results_metadata_set(metadata, "processor", "%s", text);
    results_metadata_set(metadata, "cores", "%ld", sysconf(_SC_NPROCESSORS_ONLN));
    if (proc_value("/proc/meminfo", "MemTotal", text, sizeof(text)))
        results_metadata_set(metadata, "memory", "%s", text);
    if (first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", text, sizeof(text)))
        results_metadata_set(metadata, "governor", "%s", text);
    results_metadata_set(metadata, "clock", "%s", clock_name());
}

static void driver_of(const struct adapter *adapter, struct metadata *metadata)
{
    char link[512], target[512];
    ssize_t length;

    snprintf(link, sizeof(link), "%s/device/driver", adapter->context->device->ibdev_path);
    length = readlink(link, target, sizeof(target) - 1);
    if (length < 0)
        return;
    target[length] = '\0';
    results_metadata_set(metadata, "driver", "%s",
                         strrchr(target, '/') ? strrchr(target, '/') + 1 : target);
}

/* The name of the adapter file without path and suffix. */
static const char *model_name(void)
{
    static char name[128];
    const char *path = getenv("VERBENA_ADAPTER"), *slash = path ? strrchr(path, '/') : NULL;

    snprintf(name, sizeof(name), "%s", slash ? slash + 1 : path ? path : "an adapter");
    if (strlen(name) > strlen(".adapter") &&
        !strcmp(name + strlen(name) - strlen(".adapter"), ".adapter"))
        name[strlen(name) - strlen(".adapter")] = '\0';
    return name;
}

void metadata_of_device(const struct adapter *adapter, bool software, struct metadata *metadata)
{
    const struct ibv_port_attr *port = &adapter->port_attributes;

    results_metadata_set(metadata, "name", "%s", ibv_get_device_name(adapter->context->device));
    if (vtime.on)
        results_metadata_set(metadata, "kind", "model of %s in virtual time", model_name());
    else
        results_metadata_set(metadata, "kind", "%s",
                             software ? "Verbena's software adapter, live" : "verbs device");
    if (!software)
        driver_of(adapter, metadata);
    results_metadata_set(metadata, "firmware", "%s", adapter->limits.fw_ver);
    results_metadata_set(metadata, "vendor", "0x%06x, part %u", adapter->limits.vendor_id,
                         adapter->limits.vendor_part_id);
    results_metadata_set(metadata, "ports", "%u", adapter->limits.phys_port_cnt);
    results_metadata_set(metadata, "link layer", "%s",
                         port->link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand");
    results_metadata_set(metadata, "active MTU", "%u", 128u << port->active_mtu);
    results_metadata_set(metadata, "active speed", "%u", port->active_speed);
    results_metadata_set(metadata, "active width", "%u", port->active_width);
}

static void list_text(const struct number_list *list, char *text, size_t size)
{
    size_t used = 0;

    for (unsigned int i = 0; i < list->count && used < size; i++) {
        char number[32];

        used += snprintf(text + used, size - used, "%s%s", i ? "," : "",
                         option_number_text(list->value[i], number, sizeof(number)));
    }
}

static void choices_text(const char *choices, uint64_t mask, char *text, size_t size)
{
    const char *word = choices;
    size_t used = 0;

    for (int i = 0; *word && used < size; i++) {
        size_t length = strcspn(word, " ");

        if (mask & (1ull << i))
            used +=
                snprintf(text + used, size - used, "%s%.*s", used ? "," : "", (int)length, word);
        word += length + (word[length] == ' ');
    }
}

static void value_text(const struct option_row *row, const void *value, char *text, size_t size)
{
    char number[32];

    switch (row->kind) {
    case OPTION_FLAG:
        snprintf(text, size, "%s", *(const bool *)value ? "yes" : "no");
        break;
    case OPTION_NUMBER:
        snprintf(text, size, "%s",
                 option_number_text(*(const uint64_t *)value, number, sizeof(number)));
        break;
    case OPTION_NUMBERS:
        list_text(value, text, size);
        break;
    case OPTION_REAL:
        snprintf(text, size, "%g", *(const double *)value);
        break;
    case OPTION_CHOICE:
        choices_text(row->choices, 1ull << *(const uint64_t *)value, text, size);
        break;
    case OPTION_CHOICES:
        choices_text(row->choices, *(const uint64_t *)value, text, size);
        break;
    default:
        snprintf(text, size, "%s", *(const char *const *)value ? *(const char *const *)value : "");
        break;
    }
}

void metadata_of_settings(const struct settings *settings, struct metadata *metadata)
{
    struct settings defaults;
    char text[2048], usual[2048];

    settings_init(&defaults);
    for (const struct option_row *row = settings_rows; row->name; row++) {
        text[0] = usual[0] = '\0';
        value_text(row, (const char *)settings + row->offset, text, sizeof(text));
        value_text(row, (const char *)&defaults + row->offset, usual, sizeof(usual));
        if (strcmp(text, usual))
            results_metadata_set(metadata, row->name, "%s", text);
    }
}
