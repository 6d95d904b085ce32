/* SPDX-License-Identifier: BSD-2-Clause */
#include "probe.h"
#include "commands.h"
#include "launch.h"
#include "probe_memory.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* verbs.h defines this name as a macro. */
#undef ibv_query_port

static struct verbs_calls {
    struct ibv_device **(*get_device_list)(int *count);
    void (*free_device_list)(struct ibv_device **list);
    const char *(*get_device_name)(struct ibv_device *device);
    struct ibv_context *(*open_device)(struct ibv_device *device);
    int (*close_device)(struct ibv_context *context);
    int (*query_device)(struct ibv_context *context, struct ibv_device_attr *attributes);
    int (*query_port)(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attributes);
    int (*query_gid)(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid);
} verbs;

static const struct {
    const char *name;
    void **slot;
} verbs_names[] = {
    { "ibv_get_device_list", (void **)&verbs.get_device_list },
    { "ibv_free_device_list", (void **)&verbs.free_device_list },
    { "ibv_get_device_name", (void **)&verbs.get_device_name },
    { "ibv_open_device", (void **)&verbs.open_device },
    { "ibv_close_device", (void **)&verbs.close_device },
    { "ibv_query_device", (void **)&verbs.query_device },
    { "ibv_query_port", (void **)&verbs.query_port },
    { "ibv_query_gid", (void **)&verbs.query_gid },
};

/* Finds a preloaded adapter first, else the system's library. */
static bool verbs_load(void)
{
    void *library = RTLD_DEFAULT;

    if (!dlsym(RTLD_DEFAULT, "ibv_get_device_list"))
        library = dlopen("libibverbs.so.1", RTLD_NOW);
    for (size_t i = 0; i < sizeof(verbs_names) / sizeof(*verbs_names); i++) {
        *verbs_names[i].slot = dlsym(library, verbs_names[i].name);
        if (!*verbs_names[i].slot)
            return false;
    }
    return true;
}

static const char *state_name(enum ibv_port_state state)
{
    static const char *const names[] = { "nop", "down", "init", "armed", "active", "deferred" };

    return (size_t)state < sizeof(names) / sizeof(*names) ? names[state] : "unknown";
}

static const char *link_layer_name(uint8_t layer)
{
    return layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand";
}

static double rate_of(const struct ibv_port_attr *port)
{
    static const struct {
        uint8_t code;
        double lane;
    } speeds[] = { { 1, 2.5 }, { 2, 5 },   { 4, 10 },  { 8, 10 },
                   { 16, 14 }, { 32, 25 }, { 64, 50 }, { 128, 100 } };
    static const struct {
        uint8_t code;
        int lanes;
    } widths[] = { { 1, 1 }, { 2, 4 }, { 4, 8 }, { 8, 12 }, { 16, 2 } };
    double lane = 0;
    int lanes = 0;

    for (size_t i = 0; i < sizeof(speeds) / sizeof(*speeds); i++) {
        if (speeds[i].code == port->active_speed)
            lane = speeds[i].lane;
    }
    for (size_t i = 0; i < sizeof(widths) / sizeof(*widths); i++) {
        if (widths[i].code == port->active_width)
            lanes = widths[i].lanes;
    }
    return lane * lanes;
}

static void print_port(struct ibv_device *device, struct ibv_context *context, uint8_t number)
{
    struct ibv_port_attr port = { 0 };
    char text[INET6_ADDRSTRLEN] = "-";
    union ibv_gid gid;

    if (verbs.query_port(context, number, &port))
        return;
    if (!verbs.query_gid(context, number, 0, &gid))
        inet_ntop(AF_INET6, gid.raw, text, sizeof(text));
    printf("%s\t%u\t%u\t%s\t%s\t%s\t%g\n", verbs.get_device_name(device), number, port.lid, text,
           state_name(port.state), link_layer_name(port.link_layer), rate_of(&port));
}

static void print_device(struct ibv_device *device)
{
    struct ibv_context *context = verbs.open_device(device);
    struct ibv_device_attr attributes;

    if (!context)
        return;
    if (!verbs.query_device(context, &attributes)) {
        for (int number = 1; number <= attributes.phys_port_cnt; number++)
            print_port(device, context, number);
    }
    verbs.close_device(context);
}

static void count_port(const struct probe_port *port, void *count)
{
    ++*(int *)count;
}

bool probe_real_device(void)
{
    struct probe_target target = { .quiet = true };
    int count = 0;

    probe_ports(&target, count_port, &count);
    return count > 0;
}

int cli_probe(const struct invocation *invocation)
{
    struct ibv_device **list;
    int count = 0;

    if (invocation->operand_count && !strcmp(invocation->operands[0], "memory"))
        return probe_memory_print();
    if (!verbs_load())
        return CLI_FAILED;
    list = verbs.get_device_list(&count);
    if (!list)
        return CLI_FAILED;
    for (int i = 0; i < count; i++)
        print_device(list[i]);
    verbs.free_device_list(list);
    return CLI_OK;
}

static bool parse_port(const char *line, struct probe_port *port)
{
    return sscanf(line, "%63s\t%u\t%u\t%63s\t%31s\t%31s\t%lf", port->device, &port->port,
                  &port->lid, port->gid, port->state, port->link_layer, &port->rate) == 7;
}

/* Starts "verbena probe"; *output is the read end of its standard output. */
static pid_t probe_start(const struct probe_target *target, int *output)
{
    char node[16];
    int ends[2];
    pid_t child;

    if (pipe2(ends, O_CLOEXEC))
        return -1;
    child = fork();
    if (!child) {
        snprintf(node, sizeof(node), "%d", target->node);
        setenv("VERBENA_NODE", node, 1);
        if (target->launch && launch_environment(target->launch, NULL))
            _exit(CLI_FAILED);
        if (target->quiet)
            dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
        dup2(ends[1], STDOUT_FILENO);
        execl("/proc/self/exe", "verbena", "probe", (char *)NULL);
        _exit(CLI_NOT_FOUND);
    }
    close(ends[1]);
    if (child < 0)
        close(ends[0]);
    else
        *output = ends[0];
    return child;
}

int probe_ports(const struct probe_target *target, probe_each each, void *context)
{
    struct probe_port port;
    char line[256];
    int output, status;
    pid_t child = probe_start(target, &output);
    FILE *lines = child < 0 ? NULL : fdopen(output, "r");

    if (!lines)
        return CLI_FAILED;
    while (fgets(line, sizeof(line), lines)) {
        if (parse_port(line, &port))
            each(&port, context);
    }
    fclose(lines);
    if (waitpid(child, &status, 0) < 0)
        return CLI_FAILED;
    return launch_status(status);
}
