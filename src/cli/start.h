/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_START_H
#define CLI_START_H

#include <stdbool.h>

/* Finds a program as execvp() does; false if there is none. 'path' holds PATH_MAX bytes. */
bool start_find(const char *name, char *path);

/* Returns CLI_OK if the program can be started. Otherwise prints the reason and returns a shell's
 * exit status. */
int start_check(const char *name);

/* Runs a program, forwards signals to it, and returns its exit status as a shell reports it. */
int start_and_wait(const char *path, char **words);

/* The last signal that was forwarded, or came when no program was running any more; 0: none. */
int start_signal(void);

#endif
