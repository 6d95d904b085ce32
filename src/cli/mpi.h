/* Starting MPI programs. */
#ifndef CLI_MPI_H
#define CLI_MPI_H

#define MPI_LAUNCHER "mpirun.openmpi"

/* Open MPI refuses to run as root, or more processes than cores, unless it is told to; other
 * libraries do not look at what this puts into the environment. What stands there already stays. */
void mpi_permit(void);

#endif
