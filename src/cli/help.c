/* SPDX-License-Identifier: BSD-2-Clause */
#include "help.h"

#include <string.h>

#define COLUMNS         100
#define INDENT          2
#define GAP             2
#define DEFAULT_HEADING "Options"

static const struct option_row help_row = { .name = "help", .help = "show this text" };

static const char *heading_of(const struct option_row *rows, const struct option_row *row)
{
    for (; row >= rows; row--) {
        if (row->heading)
            return row->heading;
    }
    return DEFAULT_HEADING;
}

static bool appears_before(const struct option_row *rows, const struct option_row *row,
                           const char *heading)
{
    while (--row >= rows) {
        if (!strcmp(heading_of(rows, row), heading))
            return true;
    }
    return false;
}

void help_each_row(const struct option_row *rows,
                   void (*each)(const struct option_row *row, const char *heading, void *context),
                   void *context)
{
    for (const struct option_row *first = rows; first->name; first++) {
        const char *heading = heading_of(rows, first);

        if (appears_before(rows, first, heading))
            continue;
        for (const struct option_row *row = first; row->name; row++) {
            if (!strcmp(heading_of(rows, row), heading))
                each(row, heading, context);
        }
    }
}

struct table {
    FILE *out;
    int option_width, default_width;
    const char *heading; /* the last one printed */
};

static int option_text(const struct option_row *row, char *text, size_t size)
{
    char letter[8] = "";

    if (row->letter)
        snprintf(letter, sizeof(letter), "-%c, ", row->letter);
    return snprintf(text, size, "%s--%s%s%s", letter, row->name, row->argument ? " " : "",
                    row->argument ? row->argument : "");
}

static void measure(struct table *table, const struct option_row *rows)
{
    for (const struct option_row *row = rows; row->name; row++) {
        char text[64];
        int length = option_text(row, text, sizeof(text));
        int value = row->default_value ? strlen(row->default_value) : 0;

        table->option_width = length > table->option_width ? length : table->option_width;
        table->default_width = value > table->default_width ? value : table->default_width;
    }
}

/* Breaks the text at blanks; it begins in column 'left', and so do its further lines. */
static void put_wrapped(FILE *out, const char *text, int left)
{
    int column = left;

    while (*text) {
        int length = strcspn(text, " ");

        if (column > left && column + 1 + length > COLUMNS) {
            fprintf(out, "\n%*s", left, "");
            column = left;
        }
        column += fprintf(out, "%s%.*s", column > left ? " " : "", length, text);
        text += length;
        text += strspn(text, " ");
    }
    fputc('\n', out);
}

static void put_row(const struct option_row *row, const char *heading, void *context)
{
    struct table *table = context;
    const char *value = row->default_value ? row->default_value : "";
    int left = INDENT + table->option_width + GAP;
    char text[64];

    if (!table->heading || strcmp(heading, table->heading)) {
        fprintf(table->out, "\n%s", heading);
        if (!table->heading && table->default_width)
            fprintf(table->out, "%*s", left - (int)strlen(heading) + (int)strlen("Default"),
                    "Default");
        fputc('\n', table->out);
        table->heading = heading;
    }
    option_text(row, text, sizeof(text));
    fprintf(table->out, "%*s%-*s", INDENT, "", left - INDENT, text);
    if (table->default_width) {
        fprintf(table->out, "%-*s", table->default_width + GAP, value);
        left += table->default_width + GAP;
    }
    put_wrapped(table->out, row->help, left);
}

void help_command(const struct command *command, FILE *out)
{
    struct table table = { .out = out, .default_width = 0 };

    fprintf(out, "Usage: verbena %s [OPTION...]%s%s\n\n%s.\n", command->name,
            *command->operands ? " " : "", command->operands, command->summary);
    measure(&table, command->options);
    if (table.default_width && table.default_width < (int)strlen("Default"))
        table.default_width = strlen("Default");
    measure(&table, (const struct option_row[]){ help_row, { .name = NULL } });
    help_each_row(command->options, put_row, &table);
    put_row(&help_row, table.heading ? table.heading : DEFAULT_HEADING, &table);
}

void help_commands(FILE *out)
{
    int width = 0;

    fputs("Usage: verbena COMMAND [OPTION...]\n\n"
          "Run InfiniBand programs on software adapters, without RDMA hardware.\n",
          out);
    for (const struct command *row = cli_commands; row->name; row++) {
        int length = row->internal ? 0 : strlen(row->name);

        width = length > width ? length : width;
    }
    for (const struct command *row = cli_commands; row->name; row++) {
        if (row->internal)
            continue;
        if (row->heading)
            fprintf(out, "\n%s\n", row->heading);
        fprintf(out, "%*s%-*s", INDENT, "", width + GAP, row->name);
        put_wrapped(out, row->summary, INDENT + width + GAP);
    }
    fputs("\n'verbena COMMAND --help' shows the options of a command.\n", out);
}
