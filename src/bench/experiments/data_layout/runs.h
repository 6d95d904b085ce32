/* SPDX-License-Identifier: BSD-2-Clause */
/* Experiments of this group with a file of their own. */
#ifndef BENCH_EXPERIMENTS_DATA_LAYOUT_RUNS_H
#define BENCH_EXPERIMENTS_DATA_LAYOUT_RUNS_H

struct bench;

int align_run(struct bench *bench);
int scatter_run(struct bench *bench);
int strided_run(struct bench *bench);

#endif
