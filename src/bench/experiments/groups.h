/* SPDX-License-Identifier: BSD-2-Clause */
/* The groups of experiments, one table each. A table ends with a row without a name. */
#ifndef BENCH_EXPERIMENTS_GROUPS_H
#define BENCH_EXPERIMENTS_GROUPS_H

#include "bench/bench.h"

extern const struct experiment experiments_control[];
extern const struct experiment experiments_basic[];
extern const struct experiment experiments_translation[];
extern const struct experiment experiments_scaling[];
extern const struct experiment experiments_data_layout[];
extern const struct experiment experiments_attributes[];
extern const struct experiment experiments_ports[];
extern const struct experiment experiments_comparison[];
extern const struct experiment experiments_mpi[];

#endif
