/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_HELP_H
#define CLI_HELP_H

#include "options.h"

/* The options of a command by subject, with their defaults in one column. */
void help_command(const struct command *command, FILE *out);

/* All commands, by subject. */
void help_commands(FILE *out);

/* Calls 'each' for every row of the table, ordered by subject: subjects in the order in which they
 * first appear, rows of a subject in the order of the table. */
void help_each_row(const struct option_row *rows,
                   void (*each)(const struct option_row *row, const char *heading, void *context),
                   void *context);

#endif
