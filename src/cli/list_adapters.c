/* SPDX-License-Identifier: BSD-2-Clause */
/* verbena list adapters: the installed adapter files. */
#include "list_adapters.h"
#include "json.h"
#include "papers.h"

#include "reproduce/trust.h"
#include "sim/adapter/adapter_file.h"
#include "sim/adapter/parameters.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>

struct listing {
    json_t *json; /* NULL: print a table */
    int rows;
    int failed;
    struct paper_db papers;
    struct parameters adapter; /* of the current row */
};

static json_t *number_or_null(double number)
{
    return isnan(number) ? json_null() : json_real(number);
}

static json_t *trust_json(const struct trust *trust)
{
    return json_pack("{s:I, s:I, s:I, s:s, s:s, s:I, s:o, s:o, s:I, s:o, s:o}", "known",
                     (json_int_t)trust->known, "fitted", (json_int_t)trust->fitted, "assumed",
                     (json_int_t)trust->assumed, "assumed_in", trust->assumed_in, "fitted_to",
                     trust->fitted_to, "fitted_values", (json_int_t)trust->seen.count,
                     "fitted_median_percent", number_or_null(trust->seen.median),
                     "fitted_nine_in_ten_percent", number_or_null(trust->seen.nine_in_ten),
                     "left_out", (json_int_t)trust->unseen.count, "left_out_median_percent",
                     number_or_null(trust->unseen.median), "left_out_nine_in_ten_percent",
                     number_or_null(trust->unseen.nine_in_ten));
}

static json_t *adapter_json(const struct parameters *adapter, const struct trust *trust)
{
    return json_pack("{s:s, s:s, s:I, s:f, s:f, s:s, s:o}", "name", adapter->name, "title",
                     adapter->title, "ports", (json_int_t)adapter->link.ports, "link_gbps",
                     adapter->link.rate * 8, "bus_gb_s", adapter->bus.rate, "bus",
                     adapter->bus.half_duplex ? "half duplex" : "full duplex", "trust",
                     trust_json(trust));
}

static void print_errors(const char *what, const struct trust_errors *errors)
{
    if (errors->count)
        printf("  %s: %u, median %.1f%% off, nine in ten within %.0f%%\n", what, errors->count,
               errors->median, errors->nine_in_ten);
    else
        printf("  %s: none\n", what);
}

static void print_trust(const struct trust *trust)
{
    printf("  parameters: %u known, %u fitted", trust->known, trust->fitted);
    if (*trust->fitted_to)
        printf(" (%s)", trust->fitted_to);
    printf(", %u assumed", trust->assumed);
    if (*trust->assumed_in)
        printf(" (%s)", trust->assumed_in);
    putchar('\n');
    print_errors("values fitted to, with a record", &trust->seen);
    print_errors("values that no fit has seen, or left out of it", &trust->unseen);
}

static void print_row_table(const struct listing *listing, const struct trust *trust)
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
    print_trust(trust);
}

static void print_row(const char *name, void *context)
{
    struct listing *listing = context;
    char path[PATH_MAX], error[PATH_MAX + 512];
    struct trust trust;

    if (parameters_find(name, path, sizeof(path), error, sizeof(error)) ||
        parameters_read(path, NULL, &listing->adapter, error, sizeof(error))) {
        cli_error("%s", error);
        listing->failed++;
        return;
    }
    if (trust_read(&listing->papers, name, &trust)) {
        cli_error("%s: the file has gone", path);
        listing->failed++;
        return;
    }
    if (listing->json)
        json_array_append_new(listing->json, adapter_json(&listing->adapter, &trust));
    else
        print_row_table(listing, &trust);
    trust_free(&trust);
    listing->rows++;
}

int list_adapters(const struct invocation *invocation)
{
    struct listing listing = { 0 };
    char error[PATH_MAX + 512];

    if (papers_read_all(invocation, &listing.papers))
        return CLI_FAILED;
    if (option_value(invocation, "json"))
        listing.json = json_array();
    if (adapter_list(print_row, &listing, error, sizeof(error))) {
        cli_error("%s", error);
        listing.failed++;
    }
    if (listing.json)
        json_print(listing.json);
    paper_db_free(&listing.papers);
    return listing.failed ? CLI_FAILED : CLI_OK;
}
