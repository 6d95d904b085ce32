/* SPDX-License-Identifier: BSD-2-Clause */
/* Scatter/gather entries: a curve for each number of them, against the message size. */
#ifndef BENCH_EXPERIMENTS_DATA_LAYOUT_SGE_SWEEP_H
#define BENCH_EXPERIMENTS_DATA_LAYOUT_SGE_SWEEP_H

#include "bench/bench.h"

struct sge_sweep_spec;

/* Messages are gathered from several segments and scattered to as many. */
extern const struct sge_sweep_spec sge_sweep_segments;

/* Queue pairs are created for several entries, of which messages use one. */
extern const struct sge_sweep_spec sge_sweep_capability;

int sge_sweep_run(struct bench *bench);

#endif
