/* verbena list devices: the software adapters of a fabric, host by host, then real devices.
 * verbena list experiments: what the suite can measure. */
#include "commands.h"
#include "bench/bench.h"
#include "bench/session/experiments.h"
#include "json.h"
#include "launch.h"
#include "list_adapters.h"
#include "list_papers.h"
#include "probe.h"

#include <stdlib.h>
#include <string.h>

#define NODES_MAX 256

struct listing {
    bool json;
    int rows;
    int node; /* -1: hardware, which has no node */
};

static void print_row_json(const struct listing *listing, const struct probe_port *port)
{
    fputs(listing->rows ? ",\n  {" : "\n  {", stdout);
    json_print_member("kind", listing->node < 0 ? "hardware" : "software", ", ");
    if (listing->node >= 0)
        printf("\"node\": %d, ", listing->node);
    json_print_member("device", port->device, ", ");
    printf("\"port\": %u, \"lid\": %u, ", port->port, port->lid);
    json_print_member("gid", port->gid, ", ");
    json_print_member("state", port->state, ", ");
    json_print_member("link_layer", port->link_layer, ", ");
    printf("\"gbps\": %g}", port->rate);
}

static void print_row_table(const struct listing *listing, const struct probe_port *port)
{
    char node[16] = "-";

    if (!listing->rows)
        printf("%-5s %-12s %-5s %-6s %-26s %-8s %-11s %s\n", "NODE", "DEVICE", "PORT", "LID", "GID",
               "STATE", "LINK", "RATE");
    if (listing->node >= 0)
        snprintf(node, sizeof(node), "%d", listing->node);
    printf("%-5s %-12s %-5u 0x%-4x %-26s %-8s %-11s %g Gb/s\n", node, port->device, port->port,
           port->lid, port->gid, port->state, port->link_layer, port->rate);
}

static void print_row(const struct probe_port *port, void *context)
{
    struct listing *listing = context;

    if (listing->json)
        print_row_json(listing, port);
    else
        print_row_table(listing, port);
    listing->rows++;
    fflush(stdout);
}

static void list_software(struct listing *listing, const struct launch *launch, int nodes)
{
    /* Without a number the fabric that runs now decides: hosts are tried until there is none. */
    int last = nodes ? nodes : NODES_MAX;

    for (int node = 0; node < last; node++) {
        struct probe_place place = { .launch = launch, .node = node, .quiet = !nodes && node };
        int before = listing->rows;

        listing->node = node;
        if (probe_ports(&place, print_row, listing) || listing->rows == before)
            return;
    }
}

static int list_devices(const struct invocation *invocation)
{
    const char *nodes = option_value(invocation, "nodes");
    struct listing listing = { .json = option_value(invocation, "json") };
    struct launch launch;
    int software;

    if (!launch_find(&launch))
        return CLI_FAILED;
    options_export(invocation);
    nodes = nodes ? nodes : getenv("VERBENA_NODES");
    if (listing.json)
        putchar('[');
    list_software(&listing, &launch, nodes ? atoi(nodes) : 0);
    software = listing.rows;
    listing.node = -1;
    probe_ports(&(struct probe_place){ .quiet = true }, print_row, &listing);
    if (listing.json)
        puts(listing.rows ? "\n]" : "]");
    if (!software) {
        cli_error("the software adapter does not start here; 'verbena doctor' says why");
        return CLI_FAILED;
    }
    return CLI_OK;
}

static void print_experiment_json(const struct experiment *experiment)
{
    fputs(experiment == experiment_next(NULL) ? "\n  {" : ",\n  {", stdout);
    json_print_member("name", experiment->name, ", ");
    json_print_member("group", experiment->group, ", ");
    json_print_member("title", experiment->title, ", ");
    json_print_member("source", experiment->source, ", ");
    json_print_member("options", experiment->options, ", ");
    json_print_member("quick", experiment->quick, "}");
}

static int list_experiments(const struct invocation *invocation)
{
    bool json = option_value(invocation, "json");
    const char *group = "";

    if (json)
        putchar('[');
    for_each_experiment(row) {
        if (json) {
            print_experiment_json(row);
            continue;
        }
        if (strcmp(row->group, group))
            printf("%s%s\n", *group ? "\n" : "", row->group);
        group = row->group;
        printf("  %-20s %s\n  %-20s   %s\n", row->name, row->title, "", row->source);
    }
    if (json)
        puts("\n]");
    return CLI_OK;
}

int cli_list(const struct invocation *invocation)
{
    const char *what = invocation->operand_count ? invocation->operands[0] : "";

    if (invocation->operand_count > 1)
        return cli_usage_error(invocation->command, "one kind of thing at a time");
    if (!strcmp(what, "devices"))
        return list_devices(invocation);
    if (!strcmp(what, "experiments"))
        return list_experiments(invocation);
    if (!strcmp(what, "adapters"))
        return list_adapters(invocation);
    if (!strcmp(what, "papers"))
        return list_papers(invocation);
    return cli_usage_error(invocation->command, "list what? There are: adapters, devices, experiments, "
                                                "papers");
}
