/* verbena list adapters: the modelled platforms there are files for. */
#include "list_adapters.h"
#include "json.h"

#include "sim/adapter/adapter_file.h"
#include "sim/adapter/parameters.h"

#include <limits.h>
#include <stdio.h>

struct listing {
    bool json;
    int rows;
    int failed;
    struct parameters adapter; /* of the row */
};

static void print_row_json(const struct listing *listing)
{
    const struct parameters *adapter = &listing->adapter;

    fputs(listing->rows ? ",\n  {" : "\n  {", stdout);
    json_print_member("name", adapter->name, ", ");
    json_print_member("title", adapter->title, ", ");
    printf("\"ports\": %llu, \"link_gbps\": %.6g, \"bus_gb_s\": %.6g, ",
           (unsigned long long)adapter->link.ports, adapter->link.rate * 8, adapter->bus.rate);
    json_print_member("bus", adapter->bus.half_duplex ? "half duplex" : "full duplex", "}");
}

static void print_row_table(const struct listing *listing)
{
    const struct parameters *adapter = &listing->adapter;
    const char *duplex = adapter->bus.half_duplex ? "half" : "full";
    char link[32], bus[32];

    if (!listing->rows)
        printf("%-16s %-18s %-18s %s\n", "ADAPTER", "LINK", "BUS", "WHAT");
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
        print_row_json(listing);
    else
        print_row_table(listing);
    listing->rows++;
}

int list_adapters(const struct invocation *invocation)
{
    struct listing listing = { .json = option_value(invocation, "json") };
    char error[PATH_MAX + 512];

    if (listing.json)
        putchar('[');
    if (adapter_list(print_row, &listing, error, sizeof(error))) {
        cli_error("%s", error);
        listing.failed++;
    }
    if (listing.json)
        puts(listing.rows ? "\n]" : "]");
    return listing.failed ? CLI_FAILED : CLI_OK;
}
