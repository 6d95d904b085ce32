/* SPDX-License-Identifier: BSD-2-Clause */
/* Experiments of this group with a file of their own. */
#ifndef BENCH_EXPERIMENTS_BASIC_RUNS_H
#define BENCH_EXPERIMENTS_BASIC_RUNS_H

struct bench;

int cpu_util_run(struct bench *bench);
int inline_run(struct bench *bench);
int latency_run(struct bench *bench);

#endif
