/* SPDX-License-Identifier: BSD-2-Clause */
/* Experiments of this group with a file of their own. */
#ifndef BENCH_EXPERIMENTS_ATTRIBUTES_RUNS_H
#define BENCH_EXPERIMENTS_ATTRIBUTES_RUNS_H

struct bench;

int post_list_run(struct bench *bench);
int registration_cache_run(struct bench *bench);
int service_run(struct bench *bench);
int sl_run(struct bench *bench);
int srq_run(struct bench *bench);

#endif
