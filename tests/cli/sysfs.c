/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads a device's files in /sys and compares them with its verbs attributes. */
#include <dirent.h>
#include <dlfcn.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(condition)                                                                    \
    do {                                                                                    \
        if (!(condition)) {                                                                 \
            fprintf(stderr, "sysfs: line %d: %s, errno %d\n", __LINE__, #condition, errno); \
            exit(1);                                                                        \
        }                                                                                   \
    } while (0)

static const char *path_of(const char *file)
{
    static char path[256];

    snprintf(path, sizeof(path), "/sys/class/infiniband/verbena0/%s", file);
    return path;
}

static const char *content(const char *file)
{
    static char text[256];
    int fd = open(path_of(file), O_RDONLY);
    ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

    if (length < 0) {
        fprintf(stderr, "sysfs: %s: errno %d\n", file, errno);
        exit(1);
    }
    close(fd);
    text[length] = 0;
    return text;
}

static unsigned long number(const char *file)
{
    return strtoul(content(file), NULL, 0);
}

static void look_up_words(const char *text, unsigned count, __be16 *words)
{
    for (unsigned i = 0; i < count; i++) {
        char *end;
        words[i] = htobe16(strtoul(text, &end, 16));
        CHECK(*end == (i + 1 < count ? ':' : '\n'));
        text = end + 1;
    }
}

static int is_error_counter(const struct dirent *entry)
{
    return strstr(entry->d_name, "error") != NULL;
}

int main(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;
    int (*set_port)(struct ibv_context *, uint8_t, int) = dlsym(RTLD_DEFAULT, "verbena_set_port");
    struct ibv_device_attr device;
    struct ibv_port_attr port;
    union ibv_gid gid, shown;
    struct dirent **entries;
    __be64 guid;

    CHECK(context && set_port && !ibv_query_device(context, &device));
    CHECK(!ibv_query_port(context, 2, &port) && !ibv_query_gid(context, 2, 0, &gid));
    look_up_words(content("node_guid"), 4, (__be16 *)&guid);
    CHECK(guid == device.node_guid);
    CHECK(!strncmp(content("fw_ver"), device.fw_ver, strlen(device.fw_ver)));
    CHECK(number("ports/2/lid") == port.lid && number("ports/2/sm_lid") == port.sm_lid);
    CHECK(number("ports/2/lid_mask_count") == port.lmc);
    CHECK(number("ports/2/cap_mask") == port.port_cap_flags);
    CHECK(!strcmp(content("ports/2/rate"), "200 Gb/sec (4X HDR)\n"));
    look_up_words(content("ports/2/gids/0"), 8, (__be16 *)shown.raw);
    CHECK(!memcmp(&shown, &gid, sizeof(gid)));
    CHECK(!strcmp(content("ports/2/gid_attrs/types/0"), "IB/RoCE v1\n"));
    CHECK(!strcmp(content("ports/2/gids/7"), "0000:0000:0000:0000:0000:0000:0000:0000\n"));
    CHECK(number("ports/2/pkeys/0") == 0xffff);
    CHECK(!strcmp(content("ports/2/state"), "4: ACTIVE\n"));
    CHECK(!set_port(context, 2, 0));
    CHECK(!strcmp(content("ports/2/state"), "1: DOWN\n"));
    CHECK(!strcmp(content("ports/2/phys_state"), "2: Polling\n"));
    CHECK(!strcmp(content("ports/1/state"), "4: ACTIVE\n"));
    CHECK(open(path_of("ports/3/lid"), O_RDONLY) == -1 && errno == ENOENT);
    CHECK(open(path_of("ports/2/lid"), O_RDWR) == -1 && errno == EACCES);
    int count = scandir(path_of("ports/2/counters"), &entries, is_error_counter, alphasort);
    CHECK(number("ports/2/counters/port_xmit_data") == 0);
    CHECK(number("ports/2/counters/port_rcv_packets") == 0);
    CHECK(count > 1 && strcmp(entries[0]->d_name, entries[1]->d_name) < 0);
    CHECK(scandir(path_of("ports/2/lid"), &entries, NULL, NULL) == -1 && errno == ENOTDIR);
    CHECK(!ibv_close_device(context));
    return 0;
}
