/* verbena mpirun: an MPI program over several rails. All that the ranks need goes to them through
 * the environment, so that any launcher will do, and what is spawned later has it, too. */
#include "commands.h"
#include "launch.h"
#include "line.h"
#include "model.h"
#include "mpi.h"
#include "probe.h"
#include "segment.h"
#include "start.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COMPONENTS "openmpi" /* beside libverbena.so */
#define COMPONENT  "mca_mtl_verbena.so"
#define NODES_MAX  256

extern char **environ;

struct placement {
    unsigned long ranks, nodes, per_node;
};

static unsigned long number_or(const struct invocation *invocation, const char *name,
                               unsigned long otherwise)
{
    const char *value = option_value(invocation, name);

    return value ? strtoul(value, NULL, 10) : otherwise;
}

static bool wants_real_device(const struct invocation *invocation)
{
    static const char *const software[] = { "adapter", "nodes", "ranks-per-node", "fabric" };

    for (size_t i = 0; i < sizeof(software) / sizeof(*software); i++) {
        if (option_value(invocation, software[i]))
            return false;
    }
    return probe_real_device();
}

/* By blocks: the first ranks on the first node. Modelled nodes have a rank each unless something
 * else is said, because ranks of one node do not use the adapter. */
static int place(const struct invocation *invocation, bool modelled, struct placement *placement)
{
    unsigned long ranks = number_or(invocation, "ranks", 1);
    unsigned long per_node = number_or(invocation, "ranks-per-node", 0);
    unsigned long nodes = number_or(invocation, "nodes", 0);

    if (!nodes)
        nodes = per_node ? (ranks + per_node - 1) / per_node : modelled ? ranks : 1;
    if (!per_node)
        per_node = (ranks + nodes - 1) / nodes;
    if (nodes > NODES_MAX)
        return cli_usage_error(invocation->command,
                               "%lu nodes are more than a fabric has (%d): more --ranks-per-node",
                               nodes, NODES_MAX);
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

/* Finds the component, and has Open MPI use it. */
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
        cli_error("%s/" COMPONENTS "/" COMPONENT " is not there: it is built where there are Open "
                  "MPI's headers, as in Debian's libopenmpi-dev",
                  launch->directory);
        return CLI_FAILED;
    }
    snprintf(path, sizeof(path), "%s/" COMPONENTS ":SYSTEM_DEFAULT", launch->directory);
    setenv("OMPI_MCA_mca_base_component_path", path, 1);
    setenv("OMPI_MCA_pml", "cm", 1);
    setenv("OMPI_MCA_mtl", "verbena", 1);
    for (size_t i = 0; i < sizeof(parameters) / sizeof(*parameters); i++) {
        const char *value = option_value(invocation, parameters[i].option);

        if (value)
            setenv(parameters[i].variable, value, 1);
    }
    return CLI_OK;
}

/* In virtual time one process runs at a time, and a hand-over is fastest on one core. */
static void share_one_core(void)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(sched_getcpu(), &set);
    sched_setaffinity(0, sizeof(set), &set);
    setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 1);
}

static int export_software(const struct invocation *invocation, const struct launch *launch)
{
    struct placement placement = { 0 };
    char fabric[32];
    bool modelled;

    snprintf(fabric, sizeof(fabric), "mpi-%d", getpid());
    setenv("VERBENA_FABRIC", fabric, 1);
    options_export(invocation);
    if (model_export(invocation))
        return CLI_USAGE;
    modelled = getenv("VERBENA_ADAPTER") != NULL;
    if (place(invocation, modelled, &placement))
        return CLI_USAGE;
    set_number("VERBENA_NODES", placement.nodes);
    set_number("VERBENA_RANKS_PER_NODE", placement.per_node);
    if (launch_environment(launch, modelled ? LAUNCH_MPI : NULL))
        return CLI_FAILED;
    if (modelled) {
        launch_fix_addresses();
        share_one_core();
    }
    return CLI_OK;
}

/* Environments are compared by their texts: who sets a variable may move it. */
static char *environment_text(void)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return NULL;
    fputc('\n', out);
    for (char **variable = environ; *variable; variable++)
        fprintf(out, "%s\n", *variable);
    fclose(out);
    return text;
}

static bool stands_in(const char *text, const char *variable)
{
    size_t length = strlen(variable);

    for (const char *found = text; (found = strstr(found, variable)); found++) {
        if (found[-1] == '\n' && found[length] == '\n')
            return true;
    }
    return false;
}

/* What somebody can type, or give to a batch system, to have the same. */
static void print(const struct line *line, const char *before)
{
    for (char **variable = environ; *variable; variable++) {
        const char *equals = strchr(*variable, '=');

        if (!equals || stands_in(before, *variable))
            continue;
        printf("export %.*s=", (int)(equals - *variable), *variable);
        line_put_word(stdout, equals + 1);
        putchar('\n');
    }
    for (int i = 0; i < line->count; i++) {
        fputs(i ? " " : "", stdout);
        line_put_word(stdout, line->words[i]);
    }
    putchar('\n');
}

static int make_line(const struct invocation *invocation, struct line *line)
{
    const char *launcher = option_value(invocation, "mpirun");
    const char *ranks = option_value(invocation, "ranks");

    if (line_add(line, launcher ? launcher : MPI_LAUNCHER) || line_add(line, "-n") ||
        line_add(line, ranks ? ranks : "1"))
        return CLI_USAGE;
    for (int i = 0; i < invocation->operand_count; i++) {
        if (line_add(line, invocation->operands[i]))
            return CLI_USAGE;
    }
    return CLI_OK;
}

static int run(const struct invocation *invocation, const struct line *line, const char *before)
{
    struct launch launch;
    bool software = !wants_real_device(invocation);
    int status;

    if (!launch_find(&launch))
        return CLI_FAILED;
    status = software ? export_software(invocation, &launch) : CLI_OK;
    if (!status)
        status = export_component(invocation, &launch);
    if (status)
        return status;
    mpi_permit();
    if (option_value(invocation, "print")) {
        print(line, before);
        return CLI_OK;
    }
    status = start_and_wait(line->words[0], (char **)line->words);
    if (software)
        segment_remove_unused();
    return status;
}

int command_mpirun(const struct invocation *invocation)
{
    struct line line = { .count = 0 };
    char *before;
    int status;

    if (!invocation->operand_count)
        return cli_usage_error(invocation->command, "no program given");
    if (make_line(invocation, &line))
        return CLI_USAGE;
    before = environment_text();
    if (!before) {
        cli_error("out of memory");
        return CLI_FAILED;
    }
    status = run(invocation, &line, before);
    free(before);
    return status;
}
