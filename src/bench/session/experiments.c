/* SPDX-License-Identifier: BSD-2-Clause */
/* Every experiment, from the tables of the groups. Their order is that of 'verbena list
 * experiments' and of the quick tour. */
#include "bench/session/experiments.h"

#include "bench/experiments/groups.h"

#include <string.h>

static const struct {
    const char *name;
    const struct experiment *rows;
} groups[] = {
    { "control", experiments_control },
    { "basic", experiments_basic },
    { "translation", experiments_translation },
    { "scaling", experiments_scaling },
    { "data layout", experiments_data_layout },
    { "attributes", experiments_attributes },
    { "ports", experiments_ports },
    { "comparison", experiments_comparison },
    { "mpi", experiments_mpi },
};

#define GROUPS (sizeof(groups) / sizeof(*groups))

const struct experiment *experiment_next(const struct experiment *experiment)
{
    bool found = !experiment;

    for (size_t i = 0; i < GROUPS; i++) {
        for (const struct experiment *row = groups[i].rows; row->name; row++) {
            if (found)
                return row;
            found = row == experiment;
        }
    }
    return NULL;
}

const char *experiment_group(const struct experiment *experiment)
{
    for (size_t i = 0; i < GROUPS; i++) {
        for (const struct experiment *row = groups[i].rows; row->name; row++) {
            if (row == experiment)
                return groups[i].name;
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
