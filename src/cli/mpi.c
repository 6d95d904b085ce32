/* SPDX-License-Identifier: BSD-2-Clause */
#include "mpi.h"

#include "guardian.h"
#include "launch.h"
#include "model.h"
#include "probe.h"
#include "record.h"
#include "start.h"

#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COMPONENTS "openmpi" /* beside libverbena.so */
#define COMPONENT  "mca_mtl_verbena.so"

static const struct {
    const char *name, *value;
} permissions[] = {
    { "OMPI_ALLOW_RUN_AS_ROOT", "1" },
    { "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1" },
    { "OMPI_MCA_rmaps_base_oversubscribe", "1" },
    { "PRTE_MCA_rmaps_default_mapping_policy", "slot:oversubscribe" }, /* Open MPI 5 */
};

static void permit(void)
{
    for (size_t i = 0; i < sizeof(permissions) / sizeof(*permissions); i++)
        setenv(permissions[i].name, permissions[i].value, 0);
}

struct placement {
    unsigned long ranks, nodes, per_node;
};

static bool is_given(const struct invocation *invocation, const char *const *names)
{
    for (; *names; names++) {
        if (option_value(invocation, *names))
            return true;
    }
    return false;
}

static const char *const software_options[] = { "adapter", "nodes", "ranks-per-node",
                                                "fabric",  "wire",  NULL };
static const char *const rail_options[] = { "policy", "qps", "ports", "devices", "record", NULL };

bool mpi_wants_rails(const struct invocation *invocation)
{
    return is_given(invocation, software_options) || is_given(invocation, rail_options);
}

/* Places ranks in blocks, the first ones on the first node. On modelled adapters the default is one
 * rank for each node, because ranks of one node do not use the adapter. */
static int place_ranks(const struct invocation *invocation, bool modelled,
                       struct placement *placement)
{
    unsigned long ranks = option_number(invocation, "ranks", 1);
    unsigned long per_node = option_number(invocation, "ranks-per-node", 0);
    unsigned long nodes = option_number(invocation, "nodes", 0);

    if (!nodes)
        nodes = per_node ? (ranks + per_node - 1) / per_node : modelled ? ranks : 1;
    if (!per_node)
        per_node = (ranks + nodes - 1) / nodes;
    if (nodes * per_node < ranks)
        return cli_usage_error(invocation->command,
                               "%lu nodes with %lu ranks each are too few for %lu ranks", nodes,
                               per_node, ranks);
    *placement = (struct placement){ .ranks = ranks, .nodes = nodes, .per_node = per_node };
    return CLI_OK;
}

static void set_number(const char *variable, unsigned long number)
{
    char text[24];

    snprintf(text, sizeof(text), "%lu", number);
    setenv(variable, text, 1);
}

/* Finds the MTL component and makes Open MPI use it. */
static int export_component(const struct invocation *invocation, const struct launch *launch)
{
    static const struct {
        const char *option, *variable;
    } parameters[] = {
        { "policy", "OMPI_MCA_mtl_verbena_policy" },
        { "qps", "OMPI_MCA_mtl_verbena_qps" },
        { "ports", "OMPI_MCA_mtl_verbena_ports" },
        { "devices", "OMPI_MCA_mtl_verbena_devices" },
    };
    char component[PATH_MAX], path[PATH_MAX + 32];

    if (snprintf(component, sizeof(component), "%s/" COMPONENTS "/" COMPONENT, launch->directory) >=
            (int)sizeof(component) ||
        access(component, R_OK)) {
        cli_error("%s/" COMPONENTS "/" COMPONENT " not found: Verbena was built without Open "
                  "MPI's headers. Install them (Debian: libopenmpi-dev) and build again",
                  launch->directory);
        return CLI_FAILED;
    }
    snprintf(path, sizeof(path), "%s/" COMPONENTS ":SYSTEM_DEFAULT", launch->directory);
    setenv("OMPI_MCA_mca_base_component_path", path, 1);
    /* Open MPI 5 would let PMIx search it, too, and PMIx warns of the files in it. PMIx gets a folder
     * without files: with an empty value, Open MPI 5.0.7 crashes if ranks run on other hosts. */
    setenv("PMIX_MCA_mca_base_component_path", "/sys", 0);
    setenv("OMPI_MCA_pml", "cm", 1);
    setenv("OMPI_MCA_mtl", "verbena", 1);
    for (size_t i = 0; i < sizeof(parameters) / sizeof(*parameters); i++) {
        const char *value = option_value(invocation, parameters[i].option);

        if (value)
            setenv(parameters[i].variable, value, 1);
    }
    return CLI_OK;
}

/* In virtual time one process runs at a time, and switching is fastest on one core. */
static void share_one_core(void)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(sched_getcpu(), &set);
    sched_setaffinity(0, sizeof(set), &set);
    setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 1);
    setenv("PRTE_MCA_hwloc_default_binding_policy", "none", 1); /* Open MPI 5 */
}

/* One-sided communication between hosts must go over rails: osc/rdma and osc/ucx would copy memory
 * within the machine. osc/sm serves windows within a host; in virtual time only those that
 * MPI_Win_allocate_shared() creates. Open MPI 4 also has osc/pt2pt, for other PMLs and adapters
 * without atomics. A choice of the user is kept. */
static void export_windows(bool modelled, unsigned long nodes)
{
    if (modelled || nodes > 1)
        setenv("OMPI_MCA_osc", "^rdma,ucx", 0);
}

/* coll/han, the first choice of Open MPI 5, asks PMIx which processes share a host. PMIx knows one
 * machine only. */
static void export_collectives(unsigned long nodes)
{
    if (nodes > 1)
        setenv("OMPI_MCA_coll", "^han", 0);
}

/* Each host is one node. Its processes name their fabric themselves: interfaces of one network may
 * have different names. */
static int export_wire(const struct invocation *invocation, const struct launch *launch)
{
    int status;

    if (option_value(invocation, "nodes") || option_value(invocation, "ranks-per-node"))
        return cli_usage_error(invocation->command,
                               "--nodes and --ranks-per-node divide one machine; with --wire, name "
                               "hosts and their slots with --hostfile");
    options_export(invocation);
    status = model_export(invocation);
    if (status)
        return status;
    export_windows(false, 2);
    return launch_environment(launch, NULL) ? CLI_FAILED : CLI_OK;
}

static int export_software(const struct invocation *invocation, const struct launch *launch)
{
    struct placement placement = { 0 };
    static char fabric[32];
    bool modelled;
    int status;

    if (option_value(invocation, "wire"))
        return export_wire(invocation, launch);
    snprintf(fabric, sizeof(fabric), "mpi-%d", getpid());
    setenv("VERBENA_FABRIC", fabric, 1);
    options_export(invocation);
    if (!strcmp(getenv("VERBENA_FABRIC"), fabric))
        guardian_end_orphans(fabric);
    status = model_export(invocation);
    if (status)
        return status;
    modelled = getenv("VERBENA_ADAPTER") != NULL;
    model_export_seed();
    if (place_ranks(invocation, modelled, &placement))
        return CLI_USAGE;
    set_number("VERBENA_NODES", placement.nodes);
    set_number("VERBENA_RANKS_PER_NODE", placement.per_node);
    export_windows(modelled, placement.nodes);
    export_collectives(placement.nodes);
    if (launch_environment(launch, modelled ? LAUNCH_MPI : NULL))
        return CLI_FAILED;
    if (modelled) {
        launch_fix_addresses();
        share_one_core();
    }
    return CLI_OK;
}

int mpi_export_rails(const struct invocation *invocation, bool *software)
{
    struct launch launch;
    int status;

    *software = is_given(invocation, software_options) || !probe_real_device();
    if (!launch_find(&launch))
        return CLI_FAILED;
    status = *software ? export_software(invocation, &launch) : CLI_OK;
    if (!status)
        status = record_export(invocation);
    if (!status)
        status = export_component(invocation, &launch);
    if (!status)
        permit();
    return status;
}

int mpi_run(const struct line *line, bool software)
{
    int status;

    permit();
    if (software)
        guardian_begin();
    status = start_and_wait(line->words[0], (char **)line->words);
    if (software)
        guardian_end(status);
    return record_finish(model_finish(status));
}
