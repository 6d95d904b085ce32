#ifndef CLI_START_H
#define CLI_START_H

/* Runs a program with this environment, hands on the signals it is meant to get, and returns its exit
 * status as a shell would tell it. */
int start_and_wait(const char *path, char **words);

#endif
