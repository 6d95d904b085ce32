/* SPDX-License-Identifier: BSD-2-Clause */
/* Experiments that start verbena-mpi-bench, an MPI program, once for each curve. */
#ifndef BENCH_EXPERIMENTS_MPI_MPI_BENCH_H
#define BENCH_EXPERIMENTS_MPI_MPI_BENCH_H

#include "bench/bench.h"

struct mpi_bench_spec {
    const char *task; /* of verbena-mpi-bench */
    const char *quantity;
    const char *unit;
    enum better better;
};

/* A curve for each policy and number of queue pairs, against the message size. */
int mpi_bench_run(struct bench *bench);

#endif
