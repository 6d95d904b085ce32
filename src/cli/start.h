#ifndef CLI_START_H
#define CLI_START_H

#include <stdbool.h>

/* Looks the name up as execvp() will; false if there is no such file. 'path' has room for
 * PATH_MAX. */
bool start_find(const char *name, char *path);

/* Returns CLI_OK if the program can be started, or else, having said why it cannot, the status that
 * a shell would have. */
int start_check(const char *name);

/* Runs a program with this environment, hands on the signals it is meant to get, and returns its exit
 * status as a shell would tell it. */
int start_and_wait(const char *path, char **words);

#endif
