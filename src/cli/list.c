/* SPDX-License-Identifier: BSD-2-Clause */
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
#include "util/fabric_limits.h"
#include "util/nearest.h"

#include <stdlib.h>
#include <string.h>

struct listing {
    json_t *json; /* NULL: print a table */
    int rows;
    int node; /* -1: hardware, which has no node */
};

static json_t *port_json(const struct listing *listing, const struct probe_port *port)
{
    bool software = listing->node >= 0;
    json_t *object = json_pack("{s:s}", "kind", software ? "software" : "hardware");

    if (software)
        json_object_set_new(object, "node", json_integer(listing->node));
    json_object_set_new(object, "device", json_string(port->device));
    json_object_set_new(object, "port", json_integer(port->port));
    json_object_set_new(object, "lid", json_integer(port->lid));
    json_object_set_new(object, "gid", json_string(port->gid));
    json_object_set_new(object, "state", json_string(port->state));
    json_object_set_new(object, "link_layer", json_string(port->link_layer));
    json_object_set_new(object, "gbps", json_real(port->rate));
    return object;
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
        json_array_append_new(listing->json, port_json(listing, port));
    else
        print_row_table(listing, port);
    listing->rows++;
}

static void list_software(struct listing *listing, const struct launch *launch, int nodes)
{
    /* Without --nodes the running fabric decides: probe hosts until one is missing. */
    int last = nodes ? nodes : FABRIC_NODES_MAX;

    for (int node = 0; node < last; node++) {
        struct probe_target target = { .launch = launch, .node = node, .quiet = !nodes && node };
        int before = listing->rows;

        listing->node = node;
        if (probe_ports(&target, print_row, listing) || listing->rows == before)
            return;
    }
}

static int list_devices(const struct invocation *invocation)
{
    const char *nodes = option_value(invocation, "nodes");
    struct listing listing = { 0 };
    struct launch launch;
    int software;

    if (!launch_find(&launch))
        return CLI_FAILED;
    options_export(invocation);
    nodes = nodes ? nodes : getenv("VERBENA_NODES");
    if (option_value(invocation, "json"))
        listing.json = json_array();
    list_software(&listing, &launch, nodes ? atoi(nodes) : 0);
    software = listing.rows;
    listing.node = -1;
    probe_ports(&(struct probe_target){ .quiet = true }, print_row, &listing);
    if (listing.json)
        json_print(listing.json);
    if (!software) {
        cli_error("the software adapter does not start on this machine; run 'verbena doctor' for "
                  "the reason");
        return CLI_FAILED;
    }
    return CLI_OK;
}

static json_t *experiment_json(const struct experiment *experiment)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "name", experiment->name, "group",
                     experiment_group(experiment), "title", experiment->title, "source",
                     experiment->source, "options", experiment->options, "quick",
                     experiment->quick);
}

static void print_experiments_json(void)
{
    json_t *array = json_array();

    for_each_experiment (row)
        json_array_append_new(array, experiment_json(row));
    json_print(array);
}

static void print_experiments(void)
{
    const char *group = "";

    for_each_experiment (row) {
        if (strcmp(experiment_group(row), group))
            printf("%s%s\n", *group ? "\n" : "", experiment_group(row));
        group = experiment_group(row);
        printf("  %-20s %s\n  %-20s   %s\n", row->name, row->title, "", row->source);
    }
}

static int list_experiments(const struct invocation *invocation)
{
    if (option_value(invocation, "json"))
        print_experiments_json();
    else
        print_experiments();
    return CLI_OK;
}

int cli_list(const struct invocation *invocation)
{
    const char *what = invocation->operand_count ? invocation->operands[0] : "";
    struct nearest nearest;

    if (invocation->operand_count > 1)
        return cli_usage_error(invocation->command,
                               "name one of adapters, devices, experiments, papers");
    if (!strcmp(what, "devices"))
        return list_devices(invocation);
    if (!strcmp(what, "experiments"))
        return list_experiments(invocation);
    if (!strcmp(what, "adapters"))
        return list_adapters(invocation);
    if (!strcmp(what, "papers"))
        return list_papers(invocation);
    nearest_begin(&nearest, what, strlen(what));
    nearest_try_words(&nearest, "adapters devices experiments papers");
    return cli_usage_error(invocation->command,
                           "name what to list: adapters, devices, experiments or papers%s",
                           nearest_text(&nearest));
}
