/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef MPI_SPAWNED_H
#define MPI_SPAWNED_H

/* The argument of a process that a test has spawned, and what it does. */
#define SPAWNED "spawned"
void be_spawned(void);

#endif
