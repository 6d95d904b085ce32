/* Where the library is, and the environment that makes a program use it. */
#ifndef CLI_LAUNCH_H
#define CLI_LAUNCH_H

#include <limits.h>
#include <stdbool.h>

struct launch {
    char directory[PATH_MAX]; /* of libverbena.so */
    char dropins[PATH_MAX];   /* of the versioned libraries; empty if not usable */
    char why_no_dropins[PATH_MAX + 128];
};

/* Finds the library beside or below this program; false, having said so, if it is not there. */
bool launch_find(struct launch *launch);

/* Sets LD_PRELOAD and LD_LIBRARY_PATH of this process, for the program it will execute; 'guest': one
 * that knows nothing of virtual time, but shall live in it. */
int launch_environment(const struct launch *launch, bool guest);

/* Finds a program that is not meant to be typed, below this one; false, having said so, if it is not
 * there. 'path' has room for PATH_MAX. */
bool launch_program(const char *name, char *path);

/* Exit status of a finished child as a shell would tell it. */
int launch_status(int wait_status);

#endif
