/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line: commands, and the options of each as rows. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include "util/option.h"

#include <stdio.h>

#define CLI_OPTIONS_MAX 128

enum {
    CLI_OK = 0,
    CLI_FAILED = 1,
    CLI_USAGE = 2,
    CLI_LIMIT = 3, /* the work was done, but exceeded a limit of the user */
    CLI_NOT_EXECUTABLE = 126,
    CLI_NOT_FOUND = 127,
    CLI_SIGNALLED = 128,
};

struct command;

struct invocation {
    const struct command *command;
    const char *value[CLI_OPTIONS_MAX]; /* by row of command->options; NULL if not given */
    int operand_count;
    char **operands;
};

struct command {
    const char *name;
    const char *operands; /* as the synopsis shows them */
    const char *summary;
    const char *heading; /* subject of this command and those behind it; NULL: as before */
    const struct option_row *options; /* ends with a row without a name */
    int (*run)(const struct invocation *invocation);
    bool takes_program; /* operands are the command line of another program */
    bool internal;      /* hidden from users */
};

/* Ends with a row without a name. */
extern const struct command cli_commands[];

const struct command *cli_find_command(const char *name);

/* Returns CLI_OK, or CLI_USAGE after printing the reason. Sets *help if --help was given. */
int options_parse(const struct command *command, int count, char **words, struct invocation *out,
                  bool *help);

/* Rejects an output file that is also an input file, or that two options name. Returns CLI_OK, or
 * CLI_USAGE after printing the reason. */
int options_check_files(const struct invocation *invocation);
const char *option_value(const struct invocation *invocation, const char *name);

/* The value given, or the default of the row, which must exist. */
const char *option_value_or_default(const struct invocation *invocation, const char *name);
/* The value as a number; 'otherwise' if neither a value nor a default exists. */
uint64_t option_number(const struct invocation *invocation, const char *name, uint64_t otherwise);

/* Exports the options meant for the library to the environment. */
void options_export(const struct invocation *invocation);

/* The command line, quoted for the shell, without option 'without'; to be freed. NULL: out of
 * memory. */
char *options_invocation_text(const struct invocation *invocation, const char *without);

int cli_usage_error(const struct command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void cli_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
