/* Starting MPI programs. */
#ifndef CLI_MPI_H
#define CLI_MPI_H

#include "line.h"
#include "options.h"

#include <stdbool.h>

#define MPI_LAUNCHER "mpirun.openmpi"

/* Whether options say something that only the component or software adapters understand. */
bool mpi_wants_rails(const struct invocation *invocation);

/* Has the ranks use the component, over a real device or, if '*software' is set to true, on
 * software or modelled adapters: all through the environment. */
int mpi_export_rails(const struct invocation *invocation, bool *software);

/* Runs the line and returns its exit status. Open MPI refuses to run as root, or more processes
 * than cores, unless it is told to in the environment, which happens here; what stands there
 * already stays. */
int mpi_run(const struct line *line, bool software);

#endif
