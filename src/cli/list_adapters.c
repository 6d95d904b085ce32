/* SPDX-License-Identifier: BSD-2-Clause */
/* verbena list adapters: the installed adapter files. */
#include "list_adapters.h"
#include "json.h"

#include "sim/adapter/adapter_file.h"
#include "sim/adapter/parameters.h"

#include <limits.h>
#include <stdio.h>

struct listing {
    json_t *json; /* NULL: print a table */
    int rows;
    int failed;
    struct parameters adapter; /* of the current row */
};

static json_t *adapter_json(const struct parameters *adapter)
{
    return json_pack("{s:s, s:s, s:I, s:f, s:f, s:s}", "name", adapter->name, "title",
                     adapter->title, "ports", (json_int_t)adapter->link.ports, "link_gbps",
                     adapter->link.rate * 8, "bus_gb_s", adapter->bus.rate, "bus",
                     adapter->bus.half_duplex ? "half duplex" : "full duplex");
}

static void print_row_table(const struct listing *listing)
{
    const struct parameters *adapter = &listing->adapter;
    const char *duplex = adapter->bus.half_duplex ? "half" : "full";
    char link[32], bus[32];

    if (!listing->rows)
        printf("%-16s %-18s %-18s %s\n", "ADAPTER", "LINK", "BUS", "TITLE");
    snprintf(link, sizeof(link), "%llu x %.4g Gbit/s", (unsigned long long)adapter->link.ports,
             adapter->link.rate * 8);
    snprintf(bus, sizeof(bus), "%.4g GB/s %s", adapter->bus.rate, duplex);
    printf("%-16s %-18s %-18s %s\n", adapter->name, link, bus, adapter->title);
}

static void print_row(const char *name, void *context)
{
    struct listing *listing = context;
    char path[PATH_MAX], error[PATH_MAX + 512];

    if (parameters_find(name, path, sizeof(path), error, sizeof(error)) ||
        parameters_read(path, NULL, &listing->adapter, error, sizeof(error))) {
        cli_error("%s", error);
        listing->failed++;
        return;
    }
    if (listing->json)
        json_array_append_new(listing->json, adapter_json(&listing->adapter));
    else
        print_row_table(listing);
    listing->rows++;
}

int list_adapters(const struct invocation *invocation)
{
    struct listing listing = { 0 };
    char error[PATH_MAX + 512];

    if (option_value(invocation, "json"))
        listing.json = json_array();
    if (adapter_list(print_row, &listing, error, sizeof(error))) {
        cli_error("%s", error);
        listing.failed++;
    }
    if (listing.json)
        json_print(listing.json);
    return listing.failed ? CLI_FAILED : CLI_OK;
}
