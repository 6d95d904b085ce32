/* SPDX-License-Identifier: BSD-2-Clause */
#include "commands.h"
#include "help.h"
#include "util/nearest.h"

#include <errno.h>
#include <string.h>

static int unknown_command(const char *word)
{
    struct nearest nearest;

    nearest_begin(&nearest, word, strlen(word));
    for (const struct command *row = cli_commands; row->name; row++) {
        if (!row->internal)
            nearest_try(&nearest, row->name);
    }
    return cli_usage_error(NULL, "unknown command '%s'%s", word, nearest_text(&nearest));
}

int cli_help(const struct invocation *invocation)
{
    const struct command *command;

    if (!invocation->operand_count) {
        help_commands(stdout);
        return CLI_OK;
    }
    command = cli_find_command(invocation->operands[0]);
    if (!command)
        return unknown_command(invocation->operands[0]);
    help_command(command, stdout);
    return CLI_OK;
}

/* Output lost to a full disk is an error. */
static int finish_stdout(int status)
{
    const char *why = fflush(stdout)   ? strerror(errno)
                      : ferror(stdout) ? "not all of it could be written"
                                       : NULL;

    if (!why)
        return status;
    cli_error("standard output: %s", why);
    return status ? status : CLI_FAILED;
}

int main(int argc, char **argv)
{
    const struct command *command;
    struct invocation invocation;
    bool help;
    int status;

    if (argc < 2) {
        help_commands(stderr);
        return CLI_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
        help_commands(stdout);
        return CLI_OK;
    }
    if (!strcmp(argv[1], "--version")) {
        puts("verbena " VERBENA_VERSION);
        return CLI_OK;
    }
    command = cli_find_command(argv[1]);
    if (!command)
        return unknown_command(argv[1]);
    status = options_parse(command, argc - 2, argv + 2, &invocation, &help);
    if (status)
        return status;
    if (help) {
        help_command(command, stdout);
        return CLI_OK;
    }
    status = options_check_files(&invocation);
    if (!status)
        status = command->run(&invocation);
    return finish_stdout(status);
}
