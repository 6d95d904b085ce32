/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fills the option rows into the templates of man pages:
 *
 *   @SYNOPSIS run@   @OPTIONS run@   @COMMANDS@   @ENVIRONMENT@   @CHECKS@   @PARAMETERS@
 * @POLICIES@ one line, roff
 *   @VERSION@                                      within a line
 */
#include "commands.h"
#include "doctor.h"
#include "help.h"
#include "rails/rails.h"
#include "sim/adapter/parameters.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* roff writes a hyphen that can be copied as "\-". */
static void put_roff(const char *text)
{
    for (; *text; text++) {
        if (*text == '-')
            putchar('\\');
        putchar(*text);
    }
}

static void put_synopsis(const struct command *command)
{
    printf(".B verbena %s\n", command->name);
    for (const struct option_row *row = command->options; row->name; row++) {
        fputs(".RB [ \\-\\-", stdout);
        put_roff(row->name);
        if (row->argument)
            printf("\n.IR %s ]\n", row->argument);
        else
            puts(" ]");
    }
    if (*command->operands) {
        put_roff(command->operands);
        putchar('\n');
    }
}

static void put_option(const struct option_row *row, const char *heading, void *context)
{
    const char **last = context;

    if (!*last || strcmp(*last, heading))
        printf(".SS %s\n", heading);
    *last = heading;
    fputs(".TP\n.BI \\-\\-", stdout);
    put_roff(row->name);
    if (row->argument)
        printf(" \" %s\"", row->argument);
    putchar('\n');
    put_roff(row->help);
    if (row->kind == OPTION_NUMBER && row->choices)
        printf(" (one of %s)", row->choices);
    else if (row->kind == OPTION_NUMBER)
        printf(" (%llu to %llu)", (unsigned long long)row->minimum,
               (unsigned long long)row->maximum);
    if (row->default_value) {
        fputs("; default: ", stdout);
        put_roff(row->default_value);
    }
    puts(".");
    if (row->environment)
        printf("Sets\n.BR %s .\n", row->environment);
}

static void put_options(const struct command *command)
{
    const char *last = NULL;

    help_each_row(command->options, put_option, &last);
}

static void put_commands(const struct command *unused)
{
    for (const struct command *row = cli_commands; row->name; row++) {
        if (row->internal)
            continue;
        printf(".TP\n.B verbena %s\n", row->name);
        put_roff(row->summary);
        puts(".");
    }
}

/* The options of "run" cover all variables of the library. */
static void put_environment(const struct command *unused)
{
    for (const struct option_row *row = cli_find_command("run")->options; row->name; row++) {
        if (!row->environment)
            continue;
        printf(".TP\n.B %s\n", row->environment);
        put_roff(row->help);
        if (row->default_value) {
            fputs("; default: ", stdout);
            put_roff(row->default_value);
        }
        puts(".");
    }
}

static void put_checks(const struct command *unused)
{
    for (const struct doctor_check *check = doctor_checks; check->name; check++) {
        printf(".TP\n.B %s\n", check->name);
        put_roff(check->question);
        puts(check->needed ? "\n(needed)." : ".");
    }
}

static void put_parameters(const struct command *unused)
{
    for (const struct parameter_row *row = parameter_rows; row->key; row++) {
        printf(".TP\n.B %s\n", row->key);
        put_roff(row->help);
        if (row->choices)
            printf("; one of \"%s\"", row->choices);
        else
            printf("; %s", parameter_unit_text(row->unit));
        if (row->default_value)
            printf("; default: %s.\n", row->default_value);
        else
            puts("; required.");
    }
}

static void put_version(const struct command *unused)
{
    fputs(VERBENA_VERSION, stdout);
}

static void put_policies(const struct command *unused)
{
    for (const struct rails_policy *const *policy = rails_policies; *policy; policy++) {
        fputs(".TP\n.B ", stdout);
        put_roff((*policy)->name);
        putchar('\n');
        put_roff((*policy)->summary);
        putchar('\n');
    }
}

static const struct placeholder {
    const char *name;
    void (*put)(const struct command *command);
    bool fills_line;
} placeholders[] = {
    { "SYNOPSIS", put_synopsis, true },     { "OPTIONS", put_options, true },
    { "COMMANDS", put_commands, true },     { "ENVIRONMENT", put_environment, true },
    { "PARAMETERS", put_parameters, true }, { "CHECKS", put_checks, true },
    { "VERSION", put_version, false },      { "POLICIES", put_policies, true },
};

/* Fills the placeholder "NAME" or "NAME COMMAND"; NULL if unknown. */
static const struct placeholder *fill_one(char *text)
{
    char *command = strchr(text, ' ');

    if (command)
        *command++ = '\0';
    for (size_t i = 0; i < sizeof(placeholders) / sizeof(*placeholders); i++) {
        if (strcmp(placeholders[i].name, text))
            continue;
        placeholders[i].put(command ? cli_find_command(command) : NULL);
        return &placeholders[i];
    }
    return NULL;
}

static int fill_line(char *line)
{
    char *open, *close;

    while ((open = strchr(line, '@')) && (close = strchr(open + 1, '@'))) {
        const struct placeholder *filled;

        *open = *close = '\0';
        fputs(line, stdout);
        filled = fill_one(open + 1);
        if (!filled) {
            cli_error("unknown placeholder '%s'", open + 1);
            return CLI_FAILED;
        }
        line = close + 1;
        if (filled->fills_line && *line == '\n')
            line++;
    }
    fputs(line, stdout);
    return CLI_OK;
}

int cli_fill(const struct invocation *invocation)
{
    const char *path = invocation->operand_count ? invocation->operands[0] : "";
    FILE *template = fopen(path, "r");
    char *line = NULL;
    size_t size = 0;
    int status = CLI_OK;

    if (!template) {
        cli_error("%s: %s", path, strerror(errno));
        return CLI_FAILED;
    }
    while (status == CLI_OK && getline(&line, &size, template) >= 0)
        status = fill_line(line);
    free(line);
    fclose(template);
    return status;
}
