/* SPDX-License-Identifier: BSD-2-Clause */
/* Experiments of this group with a file of their own. */
#ifndef BENCH_EXPERIMENTS_SCALING_RUNS_H
#define BENCH_EXPERIMENTS_SCALING_RUNS_H

struct bench;
struct settings;

int all_to_all_run(struct bench *bench);
int fairness_run(struct bench *bench);
int hca_load_run(struct bench *bench);
int host_memory_run(struct bench *bench);
int icm_scatter_run(struct bench *bench);
int incast_run(struct bench *bench);
int multi_thread_run(struct bench *bench);
int multi_vi_run(struct bench *bench);
int shared_qp_run(struct bench *bench);
int swarm_run(struct bench *bench);
int victim_ranks(const struct settings *settings);
int victim_run(struct bench *bench);

#endif
