/* SPDX-License-Identifier: BSD-2-Clause */
#include "bench/pin.h"

#include <hwloc.h>
#include <hwloc/openfabrics-verbs.h>
#include <stdlib.h>

/* Rank 0 runs several experiments and is bound again for each. */
static struct {
    hwloc_topology_t topology; /* NULL: not loaded */
    hwloc_bitmap_t cores;      /* that this process could use at startup */
} machine;

static bool load_topology(void)
{
    if (machine.topology)
        return true;
    if (hwloc_topology_init(&machine.topology))
        return false;
    if (hwloc_topology_load(machine.topology)) {
        hwloc_topology_destroy(machine.topology);
        machine.topology = NULL;
        return false;
    }
    machine.cores = hwloc_bitmap_alloc();
    if (hwloc_get_cpubind(machine.topology, machine.cores, HWLOC_CPUBIND_PROCESS))
        hwloc_bitmap_fill(machine.cores);
    return true;
}

void pin_restore(void)
{
    if (machine.topology)
        hwloc_set_cpubind(machine.topology, machine.cores, HWLOC_CPUBIND_PROCESS);
}

/* Returns the cores near the device if there are enough, or else all that this process may use. */
static hwloc_bitmap_t choose_cores(const struct bench *bench, int processes)
{
    hwloc_topology_t topology = machine.topology;
    hwloc_bitmap_t allowed = hwloc_bitmap_dup(hwloc_topology_get_allowed_cpuset(topology));
    hwloc_bitmap_t near = hwloc_bitmap_alloc();

    hwloc_bitmap_and(allowed, allowed, machine.cores);
    if (!hwloc_ibv_get_device_cpuset(topology, bench->adapter->context->device, near)) {
        hwloc_bitmap_and(near, near, allowed);
        if (hwloc_bitmap_weight(near) >= processes)
            hwloc_bitmap_copy(allowed, near);
    }
    hwloc_bitmap_free(near);
    return allowed;
}

static bool bind_to_core(int core)
{
    hwloc_bitmap_t one = hwloc_bitmap_alloc();
    bool bound;

    hwloc_bitmap_only(one, core);
    bound = !hwloc_set_cpubind(machine.topology, one, HWLOC_CPUBIND_PROCESS);
    hwloc_bitmap_free(one);
    return bound;
}

static int bind_to(hwloc_bitmap_t cores, int index)
{
    int core = hwloc_bitmap_first(cores);

    while (index-- > 0 && core >= 0)
        core = hwloc_bitmap_next(cores, core);
    return core >= 0 && bind_to_core(core) ? core : -1;
}

/* In virtual time one process runs at a time, and switching is fastest on one core. The name of the
 * fabric selects the core, so that different fabrics use different ones. */
static int bind_to_fabric_core(hwloc_bitmap_t cores)
{
    const char *fabric = getenv("VERBENA_FABRIC");
    uint32_t sum = 0;

    while (fabric && *fabric)
        sum = sum * 31 + (unsigned char)*fabric++;
    return bind_to(cores, sum % hwloc_bitmap_weight(cores));
}

void pin_process(const struct bench *bench, int index, int processes, char *text, size_t size)
{
    hwloc_bitmap_t cores;
    int core = -1;

    snprintf(text, size, "not pinned");
    if (bench->settings->pin == PIN_NONE || !load_topology())
        return;
    cores = choose_cores(bench, vtime.on ? 1 : processes);
    if (vtime.on) {
        if (bind_to_fabric_core(cores) >= 0)
            snprintf(text, size, "one core");
    } else if (hwloc_bitmap_weight(cores) >= processes) {
        core = bind_to(cores, index);
    } else {
        snprintf(text, size, "not pinned: more processes than cores");
    }
    hwloc_bitmap_free(cores);
    if (core >= 0)
        snprintf(text, size, "core %d", core);
}

void pin_to_shared_core(const struct bench *bench, int core, char *text, size_t size)
{
    bool bound =
        bench->settings->pin != PIN_NONE && core >= 0 && load_topology() && bind_to_core(core);

    snprintf(text, size, bound ? "one core for all" : "not pinned");
}
