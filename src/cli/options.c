/* SPDX-License-Identifier: BSD-2-Clause */
#include "options.h"
#include "line.h"
#include "sim/adapter/adapter_file.h"
#include "util/file.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

const struct command *cli_find_command(const char *name)
{
    for (const struct command *row = cli_commands; row->name; row++) {
        if (!strcmp(row->name, name))
            return row;
    }
    return NULL;
}

const char *option_value(const struct invocation *invocation, const char *name)
{
    const struct option_row *rows = invocation->command->options;
    const struct option_row *row = option_find(rows, name, strlen(name));

    return row ? invocation->value[row - rows] : NULL;
}

const char *option_value_or_default(const struct invocation *invocation, const char *name)
{
    const char *given = option_value(invocation, name);

    return given ? given
                 : option_find(invocation->command->options, name, strlen(name))->default_value;
}

uint64_t option_number(const struct invocation *invocation, const char *name, uint64_t otherwise)
{
    const char *text = option_value_or_default(invocation, name), *end;
    uint64_t number;

    return text && option_read_number(text, &end, &number) && !*end ? number : otherwise;
}

/* Parses one option, with its value in the next word if needed; *used is the number of words. */
static int option_take(const struct command *command, char **words, int count,
                       struct invocation *out, int *used)
{
    const struct option_row *row = option_of_word(command->options, words[0]);
    const char *equals = words[0][1] == '-' ? strchr(words[0], '=') : NULL;
    const char *value = "1";
    char error[512];

    *used = 1;
    if (!row) {
        option_unknown(command->options, 0, words[0], error, sizeof(error));
        return cli_usage_error(command, "%s", error);
    }
    if (row->kind == OPTION_FLAG && equals)
        return cli_usage_error(command, "--%s takes no value", row->name);
    if (equals) {
        value = equals + 1;
    } else if (row->kind != OPTION_FLAG) {
        if (count < 2)
            return cli_usage_error(command, "--%s needs a value", row->name);
        value = words[1];
        *used = 2;
    }
    if (option_store(row, value, NULL, error, sizeof(error)))
        return cli_usage_error(command, "%s", error);
    out->value[row - command->options] = value;
    return CLI_OK;
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
        if (words[i][0] == '-' && words[i][1]) {
            if (option_take(command, words + i, count - i, out, &used))
                return CLI_USAGE;
        } else {
            /* Collect operands at the front; words behind i are not overwritten. */
            words[out->operand_count++] = words[i];
        }
    }
    return CLI_OK;
}

static bool is_read(const struct invocation *invocation, const char *path)
{
    const char *adapter = option_value(invocation, "adapter");

    for (int i = 0; i < invocation->operand_count; i++) {
        if (file_same(path, invocation->operands[i]))
            return true;
    }
    return adapter && adapter_name_is_path(adapter) && file_same(path, adapter);
}

int options_check_files(const struct invocation *invocation)
{
    const struct option_row *rows = invocation->command->options;

    for (int i = 0; rows[i].name; i++) {
        const char *path = invocation->value[i] ? invocation->value[i] : rows[i].default_value;

        if (!rows[i].writes || !path)
            continue;
        if (file_is_stdout(path) && !rows[i].takes_dash)
            return cli_usage_error(invocation->command,
                                   "--%s takes the name of a file: it cannot write to standard "
                                   "output",
                                   rows[i].name);
        if (is_read(invocation, path))
            return cli_usage_error(invocation->command,
                                   "--%s %s would overwrite an input file: choose another "
                                   "name",
                                   rows[i].name, path);
        for (int k = 0; k < i; k++) {
            const char *other = rows[k].writes ? invocation->value[k] : NULL;

            if (other && (file_same(path, other) || (!strcmp(path, other) && access(path, F_OK))))
                return cli_usage_error(invocation->command, "--%s and --%s name the same file, %s",
                                       rows[k].name, rows[i].name, path);
        }
    }
    return CLI_OK;
}

void options_export(const struct invocation *invocation)
{
    const struct option_row *rows = invocation->command->options;

    char number[24];

    for (int i = 0; rows[i].name; i++) {
        const char *value = invocation->value[i];

        if (!rows[i].environment || !value)
            continue;
        /* The library does not parse suffixes. */
        if (rows[i].kind == OPTION_NUMBER) {
            snprintf(number, sizeof(number), "%llu",
                     (unsigned long long)option_number(invocation, rows[i].name, 0));
            value = number;
        }
        setenv(rows[i].environment, value, 1);
    }
}

char *options_invocation_text(const struct invocation *invocation, const char *without)
{
    const struct option_row *rows = invocation->command->options;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return NULL;
    fprintf(out, "verbena %s", invocation->command->name);
    for (int i = 0; i < invocation->operand_count; i++) {
        fputc(' ', out);
        line_put_word(out, invocation->operands[i]);
    }
    for (int i = 0; rows[i].name; i++) {
        if (!invocation->value[i] || (without && !strcmp(rows[i].name, without)))
            continue;
        fprintf(out, " --%s", rows[i].name);
        if (rows[i].kind != OPTION_FLAG) {
            fputc(' ', out);
            line_put_word(out, invocation->value[i]);
        }
    }
    fclose(out);
    return text;
}
