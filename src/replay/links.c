/* SPDX-License-Identifier: BSD-2-Clause */
#include "replay/links.h"

#include "hca/segment.h"
#include "replay/settings.h"
#include "sim/model/hca.h"
#include "util/file.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS 6

/* One direction of a cable. */
struct row {
    char from[SHAPE_NAME_BYTES], to[SHAPE_NAME_BYTES];
    const struct link *link;
    bool of_node; /* leaves a node, not a switch */
};

struct rows {
    struct row *rows;
    size_t count;
    uint64_t total_ns;
};

/* ---- collecting ---- */

static struct row *add(struct rows *rows, const struct link *link, const char *from, const char *to)
{
    struct row *row = &rows->rows[rows->count++];

    *row = (struct row){ .link = link };
    memcpy(row->from, from, sizeof(row->from));
    memcpy(row->to, to, sizeof(row->to));
    return row;
}

static void add_trunk(void *rows, const struct link *link, const char *from, const char *to)
{
    add(rows, link, from, to);
}

static void count_trunk(void *count, const struct link *link, const char *from, const char *to)
{
    (void)link;
    (void)from;
    (void)to;
    ++*(size_t *)count;
}

/* Links of adapters, then those between switches. */
static bool collect(struct rows *rows)
{
    size_t count = 2 * (size_t)model->port_count;

    switch_each_trunk(count_trunk, &count);
    rows->rows = malloc(count * sizeof(*rows->rows));
    if (!rows->rows)
        return false;
    for (uint32_t i = 1; i < model->port_count; i++) {
        const struct sim_port *port = &model->ports[i];
        const char *at = model->fabric.switches[model->fabric.port_switch[i]].name;
        char node[SHAPE_NAME_BYTES] = "";

        snprintf(node, sizeof(node), seg->devices * seg->ports > 1 ? "node%u.%u" : "node%u",
                 port->hca->node, port->hca->device * seg->ports + port->number);
        add(rows, &port->out, node, at)->of_node = true;
        add(rows, port->in, at, node);
    }
    switch_each_trunk(add_trunk, rows);
    return true;
}

static double busy(const struct rows *rows, const struct row *row)
{
    return rows->total_ns ? (double)row->link->server.busy / rows->total_ns : 0;
}

/* ---- forms ---- */

static void write_text(FILE *out, const struct rows *rows)
{
    fprintf(out, "%-20s %-20s %10s %14s %7s %12s\n", "FROM", "TO", "PACKETS", "BYTES", "BUSY",
            "QUEUE BYTES");
    for (size_t i = 0; i < rows->count; i++) {
        const struct row *row = &rows->rows[i];

        fprintf(out, "%-20s %-20s %10" PRIu64 " %14" PRIu64 " %6.1f%% %12" PRIu64 "%s\n", row->from,
                row->to, row->link->server.jobs, row->link->bytes, 100 * busy(rows, row),
                row->link->queue_max, row->link->failed ? " failed" : "");
    }
}

static void write_csv(FILE *out, const struct rows *rows)
{
    fputs("from,to,packets,bytes,busy,queue_max_bytes,failed\n", out);
    for (size_t i = 0; i < rows->count; i++) {
        const struct row *row = &rows->rows[i];

        fprintf(out, "%s,%s,%" PRIu64 ",%" PRIu64 ",%.6f,%" PRIu64 ",%d\n", row->from, row->to,
                row->link->server.jobs, row->link->bytes, busy(rows, row), row->link->queue_max,
                row->link->failed);
    }
}

static void write_json(FILE *out, const struct rows *rows)
{
    json_t *list = json_array();

    for (size_t i = 0; i < rows->count; i++) {
        const struct row *row = &rows->rows[i];

        json_array_append_new(list, json_pack("{s:s, s:s, s:I, s:I, s:f, s:I, s:b}", "from",
                                              row->from, "to", row->to, "packets",
                                              (json_int_t)row->link->server.jobs, "bytes",
                                              (json_int_t)row->link->bytes, "busy", busy(rows, row),
                                              "queue_max_bytes", (json_int_t)row->link->queue_max,
                                              "failed", row->link->failed));
    }
    json_dumpf(list, out, JSON_INDENT(1) | JSON_REAL_PRECISION(DIGITS));
    fputc('\n', out);
    json_decref(list);
}

/* ---- the heat map: a line for each switch, then for each node; a cell for each link that leaves
 * it ---- */

static int compare_origin(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    int order = x->of_node - y->of_node;

    if (!order)
        order = strverscmp(x->from, y->from);
    return order ? order : strverscmp(x->to, y->to);
}

static void write_cell(FILE *out, const struct rows *rows, const struct row *row)
{
    double share = busy(rows, row);
    int other = 255 - (int)(share > 1 ? 255 : share * 255);

    fprintf(out,
            "<td style=\"background:rgb(255,%d,%d)\" title=\"%s to %s: %" PRIu64
            " packets, %" PRIu64 " bytes, busy %.1f%%, longest queue %" PRIu64
            " bytes%s\">%s%.0f</td>",
            other, other, row->from, row->to, row->link->server.jobs, row->link->bytes, 100 * share,
            row->link->queue_max, row->link->failed ? ", failed" : "",
            row->link->failed ? "&#x2715; " : "", 100 * share);
}

static void write_html(FILE *out, const struct rows *rows)
{
    qsort(rows->rows, rows->count, sizeof(*rows->rows), compare_origin);
    fprintf(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Links: %s, %s</title>\n"
        "<style>body{font:14px sans-serif;background:#fff;color:#111}td{font-size:11px;"
        "padding:2px 5px;text-align:right;border:1px solid #ddd}th{text-align:left;"
        "padding-right:8px;font-weight:normal}</style>\n"
        "<h1>Links of %s, %s</h1>\n"
        "<p>Each cell is a link that leaves the switch or node of its line: how busy it was, in "
        "percent of %.3f us. A &#x2715; marks a cable that failed. Point at a cell for "
        "where it leads, bytes, and its longest queue.</p>\n<table>",
        model->parameters.name, model->parameters.fabric.shape, model->parameters.name,
        model->parameters.fabric.shape, rows->total_ns / 1e3);
    for (size_t i = 0; i < rows->count; i++) {
        if (!i || strcmp(rows->rows[i].from, rows->rows[i - 1].from))
            fprintf(out, "%s<tr><th>%s</th>", i ? "</tr>\n" : "\n", rows->rows[i].from);
        write_cell(out, rows, &rows->rows[i]);
    }
    fputs("</tr>\n</table></html>\n", out);
}

/* ---- the file ---- */

static void (*const writers[])(FILE *out, const struct rows *rows) = {
    [LINKS_TEXT] = write_text,
    [LINKS_CSV] = write_csv,
    [LINKS_JSON] = write_json,
    [LINKS_HTML] = write_html,
};

static int fail(const char *path, char *error, size_t size)
{
    snprintf(error, size, "--links: %s: %s", path, strerror(errno));
    return -1;
}

int links_write(const char *path, uint64_t total_ns, char *error, size_t size)
{
    struct rows rows = { .total_ns = total_ns };
    struct file_text file;
    FILE *out = collect(&rows) ? file_begin(&file) : NULL;

    if (out)
        writers[replay_settings_form(path)](out, &rows);
    free(rows.rows);
    return !out || file_end(&file, path) ? fail(path, error, size) : 0;
}
