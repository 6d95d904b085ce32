/* SPDX-License-Identifier: BSD-2-Clause */
/* Assigns the ranks of an MPI job to nodes of the fabric: sets VERBENA_NODE from the rank, the only
 * variable in which the environments of the ranks differ. */
#ifndef UTIL_RANK_ENV_H
#define UTIL_RANK_ENV_H

#include "util/util.h"

#include <stdio.h>
#include <stdlib.h>

static inline const char *rank_env_own(void)
{
    static const char *const variables[] = { "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                             "SLURM_PROCID" };

    for (size_t i = 0; i < ARRAY_SIZE(variables); i++) {
        const char *rank = getenv(variables[i]);

        if (rank && *rank)
            return rank;
    }
    return NULL;
}

static inline void rank_env_set(void)
{
    const char *per_node = getenv("VERBENA_RANKS_PER_NODE"), *nodes = getenv("VERBENA_NODES");
    const char *rank = rank_env_own();
    unsigned long each = per_node ? strtoul(per_node, NULL, 10) : 0;
    unsigned long count = nodes ? strtoul(nodes, NULL, 10) : 1;
    char node[24], local[24];
    unsigned long number;

    if (!each || !count || !rank)
        return;
    number = strtoul(rank, NULL, 10);
    snprintf(node, sizeof(node), "%lu", number / each % count);
    snprintf(local, sizeof(local), "%lu", number / (each * count) * each + number % each);
    setenv("VERBENA_NODE", node, 1);
    setenv("VERBENA_LOCAL_RANK", local, 1);
    setenv("VERBENA_RANK", rank, 1);
}

#endif
