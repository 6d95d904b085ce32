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

/* What is loaded beside the adapter in virtual time: into programs that know nothing of it, and
 * into MPI programs, whose component does. */
#define LAUNCH_GUEST "libverbena-guest.so"
#define LAUNCH_MPI   "libverbena-mpi.so"

/* Sets LD_PRELOAD and LD_LIBRARY_PATH of this process, for the program it will execute; 'beside' is
 * one of the above, or NULL. */
int launch_environment(const struct launch *launch, const char *beside);

/* A modelled adapter keeps the places of pages in its memory: the same program must have the same
 * ones every time. Where that is refused, times may differ a little from run to run. */
void launch_fix_addresses(void);

/* Finds a program that is not meant to be typed, below this one; false, having said so, if it is
 * not there. 'path' has room for PATH_MAX. */
bool launch_program(const char *name, char *path);

/* The same for a file or a directory that came with this program. */
bool launch_file(const char *name, char *path);

/* Exit status of a finished child as a shell would tell it. */
int launch_status(int wait_status);

#endif
