/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UTIL_OPEN_MPI_H
#define UTIL_OPEN_MPI_H

/* An exiting rank waits two seconds for mpirun to notice. On a busy machine that can take longer,
 * and mpirun then fails with "exiting improperly" although every rank succeeded, unless this
 * variable is set. Safe for our own programs: they never exit early with status 0. */
#define OPEN_MPI_ALLOW_EXIT_WITHOUT_SYNC "OMPI_MCA_orte_allowed_exit_without_sync"

#endif
