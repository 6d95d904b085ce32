/* SPDX-License-Identifier: BSD-2-Clause */
/* Every experiment, from the tables of the groups. Their order is that of 'verbena list
 * experiments' and of the quick tour. */
#include "bench/session/experiments.h"

#include "bench/experiments/groups.h"

#include <string.h>

static const struct experiment *const groups[] = {
    experiments_control, experiments_basic,       experiments_translation,
    experiments_scaling, experiments_data_layout, experiments_attributes,
    experiments_ports,   experiments_comparison,  experiments_mpi,
};

#define GROUPS (sizeof(groups) / sizeof(*groups))

const struct experiment *experiment_next(const struct experiment *experiment)
{
    bool found = !experiment;

    for (size_t i = 0; i < GROUPS; i++) {
        for (const struct experiment *row = groups[i]; row->name; row++) {
            if (found)
                return row;
            found = row == experiment;
        }
    }
    return NULL;
}

const struct experiment *experiment_find(const char *name)
{
    for_each_experiment (row) {
        if (!strcmp(row->name, name))
            return row;
    }
    return NULL;
}
