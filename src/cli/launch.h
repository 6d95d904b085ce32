/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the library, and sets the environment that makes a program use it. */
#ifndef CLI_LAUNCH_H
#define CLI_LAUNCH_H

#include <limits.h>
#include <stdbool.h>

struct launch {
    char directory[PATH_MAX]; /* of libverbena.so */
    char dropins[PATH_MAX];   /* of the drop-in libraries; empty if not usable */
    char why_no_dropins[PATH_MAX + 128];
};

/* Finds the library relative to this program. False, after printing an error, if it is missing. */
bool launch_find(struct launch *launch);

/* Libraries to preload in virtual time: into guests, and into MPI programs, whose MTL component
 * handles virtual time itself. */
#define LAUNCH_GUEST "libverbena-guest.so"
#define LAUNCH_MPI   "libverbena-mpi.so"

/* Sets LD_PRELOAD and LD_LIBRARY_PATH of this process, for the program it will execute. 'beside' is
 * one of the libraries above, or NULL. */
int launch_environment(const struct launch *launch, const char *beside);

/* Preloaded into guests whose copies take virtual time. */
#define LAUNCH_COPIES "libverbena-copies.so"
int launch_preload(const struct launch *launch, const char *name);

/* Disables address randomisation: a modelled adapter caches translations by address, so equal
 * addresses give equal times. Where the system denies it, times differ slightly between runs. */
void launch_fix_addresses(void);

/* Finds a program in libexec. False, after printing an error, if it is missing. 'path' holds
 * PATH_MAX bytes. */
bool launch_program(const char *name, char *path);

/* Finds an installed data file or directory, likewise. */
bool launch_file(const char *name, char *path);

/* The exit status of a child, as a shell reports it. */
int launch_status(int wait_status);

#endif
