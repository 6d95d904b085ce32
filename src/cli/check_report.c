/* SPDX-License-Identifier: BSD-2-Clause */
/* The page about a failed run of verbena check: why it failed, what that takes, what the programs
 * wrote, and the last messages on a timeline. */
#include "check_report.h"
#include "util/file.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define MESSAGES_SHOWN 60

struct message {
    char id[32], name[32];
    unsigned node;
    unsigned long long qpn, wr_id, bytes;
    double start, end; /* microseconds */
};

/* The last messages of the run, oldest first. */
struct timeline {
    struct message messages[MESSAGES_SHOWN];
    unsigned count;
};

void check_write_escaped(FILE *file, const char *text)
{
    for (; *text; text++) {
        if (strchr("<>&\"", *text))
            fprintf(file, "&#%d;", *text);
        else if ((unsigned char)*text >= 0x20 || *text == '\n')
            fputc(*text, file);
    }
}

void check_trace_path(const char *directory, char *path)
{
    snprintf(path, PATH_MAX, "%.*s/trace.json", PATH_MAX - 32, directory);
}

void check_write_variation(FILE *file, const struct check_search *search,
                           const struct check_variation *variation)
{
    if (variation->first)
        fprintf(file, "  first to start: %s\n", search->words[variation->first][0]);
    if (*variation->settings)
        fprintf(file, "  times: %s\n", variation->settings);
    if (*variation->faults)
        fprintf(file, "  links: %s\n", variation->faults);
    for (unsigned i = 0; i < variation->rows; i++)
        fprintf(file, "  fault: %s\n", variation->row[i]);
    if (!variation->first && !*variation->settings && !*variation->faults && !variation->rows)
        fprintf(file, "  nothing: the programs fail on the adapter as it is\n");
}

/* ---- the timeline ---- */

static const char *text_of(json_t *record, const char *key)
{
    const char *text = json_string_value(json_object_get(record, key));

    return text ? text : "";
}

static unsigned long long number_of(json_t *record, const char *key)
{
    return json_integer_value(json_object_get(record, key));
}

static void begin_message(struct timeline *timeline, json_t *record)
{
    json_t *arguments = json_object_get(record, "args");
    struct message *message;

    if (timeline->count == MESSAGES_SHOWN) {
        memmove(timeline->messages, timeline->messages + 1,
                --timeline->count * sizeof(timeline->messages[0]));
    }
    message = &timeline->messages[timeline->count++];
    snprintf(message->id, sizeof(message->id), "%s", text_of(record, "id"));
    snprintf(message->name, sizeof(message->name), "%s", text_of(record, "name"));
    message->node = number_of(record, "pid");
    message->qpn = number_of(arguments, "qpn");
    message->wr_id = number_of(arguments, "wr_id");
    message->bytes = number_of(arguments, "bytes");
    message->start = message->end = json_number_value(json_object_get(record, "ts"));
}

static void end_message(struct timeline *timeline, json_t *record)
{
    for (unsigned i = 0; i < timeline->count; i++) {
        struct message *message = &timeline->messages[i];

        if (!strcmp(message->id, text_of(record, "id")) &&
            !strcmp(message->name, text_of(record, "name")))
            message->end = json_number_value(json_object_get(record, "ts"));
    }
}

/* The stages of a message are spans of their own, without a QP. */
static void take_record(struct timeline *timeline, json_t *record)
{
    if (strcmp(text_of(record, "cat"), "message"))
        return;
    if (!strcmp(text_of(record, "ph"), "e"))
        end_message(timeline, record);
    else if (json_object_get(json_object_get(record, "args"), "qpn"))
        begin_message(timeline, record);
}

/* A trace has one record on each line; its end is missing if the run was ended. */
static void read_trace(const char *path, struct timeline *timeline)
{
    FILE *file = fopen(path, "re");
    char *line = NULL;
    size_t size = 0;
    ssize_t length;

    timeline->count = 0;
    while (file && (length = getline(&line, &size, file)) > 0) {
        line[strcspn(line, "\n")] = '\0';
        length = strlen(line);
        if (length && line[length - 1] == ',')
            line[length - 1] = '\0';
        json_t *record = json_loads(line, 0, NULL);
        take_record(timeline, record);
        json_decref(record);
    }
    free(line);
    if (file)
        fclose(file);
}

static int compare_starts(const void *a, const void *b)
{
    const struct message *left = a, *right = b;

    return (left->start > right->start) - (left->start < right->start);
}

static void write_timeline(FILE *page, struct timeline *timeline)
{
    double from, to = 0;

    if (!timeline->count)
        return;
    qsort(timeline->messages, timeline->count, sizeof(timeline->messages[0]), compare_starts);
    from = timeline->messages[0].start;
    for (unsigned i = 0; i < timeline->count; i++)
        to = timeline->messages[i].end > to ? timeline->messages[i].end : to;
    fprintf(page, "<h2>The last messages</h2>\n<table><tr><th>begin, µs<th>node<th>QP<th>wr_id"
                  "<th>operation<th>bytes<th>µs<th class=\"bar\"></tr>\n");
    for (unsigned i = 0; i < timeline->count; i++) {
        const struct message *message = &timeline->messages[i];
        double span = to > from ? to - from : 1;

        fprintf(page, "<tr><td>%.3f<td>%u<td>0x%llx<td>0x%llx<td>", message->start, message->node,
                message->qpn, message->wr_id);
        check_write_escaped(page, message->name);
        fprintf(page,
                "<td>%llu<td>%.3f<td class=\"bar\"><div style=\"margin-left:%.2f%%;width:%.2f%%\">"
                "</div></tr>\n",
                message->bytes, message->end - message->start,
                (message->start - from) / span * 100, (message->end - message->start) / span * 100);
    }
    fprintf(page, "</table>\n");
}

/* ---- the page ---- */

static const char style[] =
    "body{font:15px/1.45 sans-serif;max-width:80em;margin:2em auto;padding:0 1em}"
    "pre{background:#f4f4f4;padding:.7em;overflow:auto}table{border-collapse:collapse}"
    "td,th{text-align:right;padding:.1em .6em;white-space:nowrap}.bar{width:40em;text-align:left}"
    ".bar div{background:#36c;height:.8em;min-width:2px}";

static void write_block(FILE *page, const char *heading, const char *text)
{
    fprintf(page, "<h2>");
    check_write_escaped(page, heading);
    fprintf(page, "</h2>\n<pre>");
    check_write_escaped(page, text);
    fprintf(page, "</pre>\n");
}

static void write_variation(FILE *page, const struct check_search *search,
                            const struct check_variation *variation)
{
    struct file_text text;
    char *lines;

    if (!file_begin(&text))
        return;
    check_write_variation(text.stream, search, variation);
    fprintf(text.stream, "  seed: %llu\n", (unsigned long long)variation->seed);
    lines = file_take(&text);
    write_block(page, "What it takes to fail", lines ? lines : "");
    free(lines);
}

/* Keeps a file of the run, and shows it. */
static int keep(FILE *page, const char *heading, const char *from, const char *directory,
                const char *name)
{
    char path[PATH_MAX], error[PATH_MAX + 128];
    size_t length;
    char *text = file_read(from, FILE_DATA_MAX, &length, error, sizeof(error));
    int result;

    if (!text)
        return 0; /* nothing was found, or nothing was written */
    snprintf(path, sizeof(path), "%.*s/%.31s", PATH_MAX - 64, directory, name);
    result = file_write(path, text, length);
    if (heading)
        write_block(page, heading, text);
    free(text);
    return result;
}

int check_report(const struct check_search *search, const struct check_variation *variation,
                 const struct check_verdict *verdict, unsigned number, const char *directory)
{
    static struct timeline timeline;
    char path[PATH_MAX], name[32];
    struct file_text page;
    int result = 0;

    if (!file_begin(&page))
        return -1;
    fprintf(page.stream, "<!DOCTYPE html><html lang=\"en\"><meta charset=\"utf-8\">"
                         "<title>verbena check</title><style>%s</style>\n<h1>%s</h1>\n<p>", style,
            verdict->kind);
    check_write_escaped(page.stream, verdict->reason);
    fprintf(page.stream, "</p>\n");
    write_variation(page.stream, search, variation);
    for (unsigned i = 0; i < search->programs; i++) {
        check_output_path(search, number, i, path);
        snprintf(name, sizeof(name), "output-%u.txt", i);
        result |= keep(page.stream, search->commands[i], path, directory, name);
    }
    check_findings_path(search, number, path);
    result |= keep(page.stream, NULL, path, directory, "findings.jsonl");
    check_trace_path(directory, path);
    read_trace(path, &timeline);
    write_timeline(page.stream, &timeline);
    fprintf(page.stream, "<p>The whole run: <a href=\"trace.json\">trace.json</a>, for "
                         "<a href=\"https://ui.perfetto.dev\">Perfetto</a>. What was found, one line of "
                         "JSON each: <a href=\"findings.jsonl\">findings.jsonl</a>.</p></html>\n");
    snprintf(path, sizeof(path), "%.*s/index.html", PATH_MAX - 32, directory);
    return file_end(&page, path) | result;
}
