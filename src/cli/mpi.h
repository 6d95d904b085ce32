/* SPDX-License-Identifier: BSD-2-Clause */
/* Starting MPI programs. */
#ifndef CLI_MPI_H
#define CLI_MPI_H

#include "line.h"
#include "options.h"

#include <stdbool.h>

#define MPI_LAUNCHER "mpirun.openmpi"

/* Whether options are given that only the MTL component or software adapters understand. */
bool mpi_wants_rails(const struct invocation *invocation);

/* Sets the environment so that the ranks use the MTL component. Sets '*software' if they run on
 * software or modelled adapters, not on a real device. */
int mpi_export_rails(const struct invocation *invocation, bool *software);

/* Runs the line and returns its exit status. Permits Open MPI, through the environment, to run as
 * root and with more processes than cores; keeps variables that are set already. */
int mpi_run(const struct line *line, bool software);

#endif
