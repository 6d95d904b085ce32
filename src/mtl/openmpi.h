/* SPDX-License-Identifier: BSD-2-Clause */
/* What differs between Open MPI 4 and 5. */
#ifndef VERBENA_MTL_OPENMPI_H
#define VERBENA_MTL_OPENMPI_H

#include <ompi_config.h>

#include <ompi/communicator/communicator.h>
#if OMPI_MAJOR_VERSION >= 5
#include <opal/mca/pmix/pmix-internal.h>
#define OPENMPI_MODEX_GLOBAL PMIX_GLOBAL
#else
#include <opal/mca/pmix/pmix.h>
#define OPENMPI_MODEX_GLOBAL OPAL_PMIX_GLOBAL
#endif

/* The same in all processes of the communicator: the module does not claim
 * MCA_MTL_BASE_FLAG_SUPPORTS_EXT_CID, so Open MPI 5 agrees on it, too. */
static inline uint32_t openmpi_context(const ompi_communicator_t *comm)
{
#if OMPI_MAJOR_VERSION >= 5
    return ompi_comm_get_local_cid(comm);
#else
    return ompi_comm_get_cid((ompi_communicator_t *)comm);
#endif
}

#endif
