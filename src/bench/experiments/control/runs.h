/* SPDX-License-Identifier: BSD-2-Clause */
/* Experiments of this group with a file of their own. */
#ifndef BENCH_EXPERIMENTS_CONTROL_RUNS_H
#define BENCH_EXPERIMENTS_CONTROL_RUNS_H

struct bench;

int mw_bind_run(struct bench *bench);
int poll_empty_run(struct bench *bench);

#endif
