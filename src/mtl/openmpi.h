/* SPDX-License-Identifier: BSD-2-Clause */
/* What differs between Open MPI 4 and 5, and Open MPI's terms in ours. */
#ifndef VERBENA_MTL_OPENMPI_H
#define VERBENA_MTL_OPENMPI_H

#include "mtl/match.h"

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

/* What a receive or a probe asks for. */
static inline struct match_key openmpi_key(const ompi_communicator_t *comm, int source, int tag)
{
    return (struct match_key){ openmpi_context(comm), source == MPI_ANY_SOURCE ? MATCH_ANY : source,
                               tag == MPI_ANY_TAG ? MATCH_ANY : tag };
}

#endif
