/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BENCH_SESSION_EXPERIMENTS_H
#define BENCH_SESSION_EXPERIMENTS_H

#include "bench/bench.h"

/* The experiment after this one, in the order of 'verbena list experiments', or NULL after the last
 * one. NULL asks for the first one. */
const struct experiment *experiment_next(const struct experiment *experiment);
const struct experiment *experiment_find(const char *name);

/* The name of the group that the experiment belongs to. */
const char *experiment_group(const struct experiment *experiment);

#define for_each_experiment(row) \
    for (const struct experiment *row = experiment_next(NULL); row; row = experiment_next(row))

#endif
