/* SPDX-License-Identifier: BSD-2-Clause */
/* Experiments of this group with a file of their own. */
#ifndef BENCH_EXPERIMENTS_COMPARISON_RUNS_H
#define BENCH_EXPERIMENTS_COMPARISON_RUNS_H

struct bench;

int tcp_run(struct bench *bench);

#endif
