/* SPDX-License-Identifier: BSD-2-Clause */
/* Dragonflies (Kim and others 2008): the switches of a group are connected with each other, and the
 * groups, by global cables, each with all others. */
#include "sim/adapter/shape.h"

#define PORTS_MAX 4096

struct dragonfly {
    uint32_t hosts, switches, global; /* p, a, h: of a switch, of a group, of a switch */
    uint32_t groups;
};

static int read_dragonfly(struct dragonfly *fly, const struct shape_request *request)
{
    const char *at = request->text;
    uint64_t most;

    if (!shape_number(&at, '/', PORTS_MAX, &fly->hosts) ||
        !shape_number(&at, '/', PORTS_MAX, &fly->switches) ||
        !shape_number(&at, '/', PORTS_MAX, &fly->global))
        return shape_fail(
            request,
            "dragonfly:%s: expected hosts of a switch, switches of a group and global "
            "cables of a switch, such as 4/8/4",
            request->text);
    most = (uint64_t)fly->switches * fly->global + 1;
    if (most * fly->switches > SHAPE_SWITCHES_MAX && !*at)
        return shape_fail_switches(request, most * fly->switches);
    fly->groups = most;
    if (*at && (!shape_number(&at, '\0', most, &fly->groups) || *at || fly->groups < 2))
        return shape_fail(request,
                          "dragonfly:%s: %u switches with %u global cables each connect 2 to %llu "
                          "groups",
                          request->text, fly->switches, fly->global, (unsigned long long)most);
    if ((uint64_t)fly->groups * fly->switches > SHAPE_SWITCHES_MAX)
        return shape_fail_switches(request, (uint64_t)fly->groups * fly->switches);
    return 0;
}

static void connect_group(struct shape *shape, const struct dragonfly *fly, uint32_t first)
{
    for (uint32_t i = 0; i < fly->switches; i++) {
        for (uint32_t k = i + 1; k < fly->switches; k++)
            shape_add_cable(shape, &(struct shape_cable){ .a = first + i,
                                                          .b = first + k,
                                                          .from_a = SHAPE_LOCAL,
                                                          .from_b = SHAPE_LOCAL });
    }
}

/* Global port n of a group leads to the group that is 1 + n further, modulo the number of groups.
 * If there are more ports than other groups, they begin again. */
static void connect_groups(struct shape *shape, const struct dragonfly *fly, uint32_t group)
{
    uint32_t others = fly->groups - 1, ports = fly->switches * fly->global;

    for (uint32_t n = 0; n < ports; n++) {
        uint32_t other = (group + 1 + n % others) % fly->groups;
        uint32_t back = n / others * others + others - 1 - n % others;

        if (other > group && back < ports)
            shape_add_cable(shape,
                            &(struct shape_cable){ .a = group * fly->switches + n / fly->global,
                                                   .b = other * fly->switches + back / fly->global,
                                                   .from_a = SHAPE_GLOBAL,
                                                   .from_b = SHAPE_GLOBAL });
    }
}

int shape_dragonfly(struct shape *shape, const struct shape_request *request)
{
    struct dragonfly fly;

    if (read_dragonfly(&fly, request))
        return -1;
    shape->rule = SHAPE_DRAGONFLY;
    for (uint32_t i = 0; i < fly.groups * fly.switches; i++)
        shape_add_switch(shape, 1, "g%u.s%u", i / fly.switches, i % fly.switches);
    for (uint32_t group = 0; group < fly.groups; group++)
        connect_group(shape, &fly, group * fly.switches);
    for (uint32_t group = 0; group < fly.groups; group++)
        connect_groups(shape, &fly, group);
    return shape_attach_blocks(shape, request, fly.hosts);
}
