#ifndef UTIL_OPEN_MPI_H
#define UTIL_OPEN_MPI_H

/* A rank that leaves waits two seconds for its launcher to take note. On a machine so busy that
 * this takes longer, mpirun ends with "exiting improperly" after all has gone well, unless this is
 * set. For programs of our own, which never leave early with status 0. */
#define OPEN_MPI_MAY_LEAVE "OMPI_MCA_orte_allowed_exit_without_sync"

#endif
