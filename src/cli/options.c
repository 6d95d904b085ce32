#include "options.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define FABRIC_NAME_MAX 64

void cli_error(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    fputs("verbena: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
}

int cli_usage_error(const struct command *command, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    fprintf(stderr, "verbena%s%s: ", command ? " " : "", command ? command->name : "");
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\nTry 'verbena%s%s --help'.\n", command ? " " : "",
            command ? command->name : "");
    va_end(arguments);
    return CLI_USAGE;
}

const struct command *command_find(const char *name)
{
    for (const struct command *row = cli_commands; row->name; row++) {
        if (!strcmp(row->name, name))
            return row;
    }
    return NULL;
}

bool option_shown(const struct option_row *row)
{
    return row->kind != OPTION_LATER;
}

static int option_index(const struct command *command, const char *name, size_t length)
{
    for (int i = 0; command->options[i].name; i++) {
        if (strlen(command->options[i].name) == length &&
            !strncmp(command->options[i].name, name, length))
            return i;
    }
    return -1;
}

const char *option_value(const struct invocation *invocation, const char *name)
{
    int index = option_index(invocation->command, name, strlen(name));

    return index < 0 ? NULL : invocation->value[index];
}

static bool number_fits(const struct option_row *row, const char *value)
{
    char *end;
    long number;

    errno = 0;
    number = strtol(value, &end, 10);
    return isdigit((unsigned char)*value) && !*end && !errno && number >= row->minimum &&
           number <= row->maximum;
}

static bool choice_fits(const struct option_row *row, const char *value)
{
    size_t length = strlen(value);

    if (!length || strchr(value, ' '))
        return false;
    for (const char *choice = row->choices; choice; choice = strchr(choice, ' ')) {
        choice += *choice == ' ';
        if (!strncmp(choice, value, length) && (choice[length] == ' ' || !choice[length]))
            return true;
    }
    return false;
}

static bool name_fits(const char *value)
{
    size_t length = strspn(value, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                  "0123456789_.-");

    return length && length <= FABRIC_NAME_MAX && !value[length];
}

static int value_check(const struct command *command, const struct option_row *row,
                       const char *value)
{
    switch (row->kind) {
    case OPTION_NUMBER:
        if (number_fits(row, value))
            return CLI_OK;
        return cli_usage_error(command, "--%s takes a number from %ld to %ld, not '%s'", row->name,
                               row->minimum, row->maximum, value);
    case OPTION_CHOICE:
        if (choice_fits(row, value))
            return CLI_OK;
        return cli_usage_error(command, "--%s takes one of '%s', not '%s'", row->name, row->choices,
                               value);
    case OPTION_NAME:
        if (name_fits(value))
            return CLI_OK;
        return cli_usage_error(command,
                               "--%s takes 1 to %d letters, digits, '_', '.' or '-', not '%s'",
                               row->name, FABRIC_NAME_MAX, value);
    case OPTION_PATH:
        return *value ? CLI_OK : cli_usage_error(command, "--%s takes a path", row->name);
    case OPTION_LATER:
        return cli_usage_error(command, "--%s is not in this version", row->name);
    case OPTION_FLAG:
        break;
    }
    return CLI_OK;
}

/* Takes one option, and the next word if that is its value; *used counts the words. */
static int option_take(const struct command *command, char **words, int count,
                       struct invocation *out, int *used)
{
    const char *name = words[0] + 2;
    const char *equals = strchr(name, '=');
    int index = option_index(command, name, equals ? (size_t)(equals - name) : strlen(name));
    const struct option_row *row = index < 0 ? NULL : &command->options[index];

    *used = 1;
    if (!row)
        return cli_usage_error(command, "unknown option '%s'", words[0]);
    if (row->kind == OPTION_LATER)
        return value_check(command, row, "");
    if (row->kind == OPTION_FLAG) {
        if (equals)
            return cli_usage_error(command, "--%s takes no value", row->name);
        out->value[index] = "1";
        return CLI_OK;
    }
    if (equals) {
        out->value[index] = equals + 1;
    } else {
        if (count < 2)
            return cli_usage_error(command, "--%s needs a value", row->name);
        out->value[index] = words[1];
        *used = 2;
    }
    return value_check(command, row, out->value[index]);
}

int options_parse(const struct command *command, int count, char **words, struct invocation *out,
                  bool *help)
{
    int used;

    memset(out, 0, sizeof(*out));
    out->command = command;
    out->operands = words;
    *help = false;
    for (int i = 0; i < count; i += used) {
        used = 1;
        if (!strcmp(words[i], "--help") || !strcmp(words[i], "-h")) {
            *help = true;
            return CLI_OK;
        }
        if (command->takes_program && (words[i][0] != '-' || !strcmp(words[i], "--"))) {
            i += words[i][0] == '-';
            out->operands = words + i;
            out->operand_count = count - i;
            return CLI_OK;
        }
        if (words[i][0] == '-') {
            if (words[i][1] != '-')
                return cli_usage_error(command, "unknown option '%s'", words[i]);
            if (option_take(command, words + i, count - i, out, &used))
                return CLI_USAGE;
        } else {
            /* Operands are gathered at the front: no option is read twice, for i only grows. */
            words[out->operand_count++] = words[i];
        }
    }
    return CLI_OK;
}

void options_help(const struct command *command, FILE *out)
{
    fprintf(out, "Usage: verbena %s [OPTION...]%s%s\n\n%s.\n", command->name,
            *command->operands ? " " : "", command->operands, command->summary);
    if (command->options[0].name)
        fputc('\n', out);
    for (const struct option_row *row = command->options; row->name; row++) {
        char left[64];

        if (!option_shown(row))
            continue;
        snprintf(left, sizeof(left), "--%s%s%s", row->name, row->argument ? " " : "",
                 row->argument ? row->argument : "");
        fprintf(out, "  %-20s %s", left, row->help);
        if (row->fallback)
            fprintf(out, " [%s]", row->fallback);
        fputc('\n', out);
    }
    fprintf(out, "  %-20s %s\n", "--help", "show this text");
}

void options_export(const struct invocation *invocation)
{
    const struct option_row *rows = invocation->command->options;

    for (int i = 0; rows[i].name; i++) {
        if (rows[i].environment && invocation->value[i])
            setenv(rows[i].environment, invocation->value[i], 1);
    }
}
