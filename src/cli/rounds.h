/* SPDX-License-Identifier: BSD-2-Clause */
/* verbena bench --rounds: measures several times, by commands of their own, into one file. */
#ifndef CLI_ROUNDS_H
#define CLI_ROUNDS_H

#include "options.h"

/* Returns CLI_OK, or CLI_USAGE after printing the reason. */
int rounds_check(const struct invocation *invocation);

/* 'words' are the options of the command line. Returns an exit status. */
int rounds_run(const struct invocation *invocation, char *const *words, int word_count);

#endif
