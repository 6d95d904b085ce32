/* SPDX-License-Identifier: BSD-2-Clause */
/* Experiments of this group with a file of their own. */
#ifndef BENCH_EXPERIMENTS_PORTS_RUNS_H
#define BENCH_EXPERIMENTS_PORTS_RUNS_H

struct bench;

int hca_memory_run(struct bench *bench);
int two_port_run(struct bench *bench);

#endif
