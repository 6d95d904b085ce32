/* Experiments with MPI: a program of its own measures, started once for each curve. */
#ifndef BENCH_EXPERIMENTS_MPI_H
#define BENCH_EXPERIMENTS_MPI_H

#include "bench/bench.h"

#define MPI_SWEEP            "--policies binding,round-robin,striping,epc,adaptive --qps 1,4"
#define MPI_COLLECTIVE_QUICK "--sizes 8,16K --iterations 20 --policies adaptive --qps 1"

struct mpi_spec {
    const char *task; /* of verbena-mpi-bench */
    const char *quantity;
    const char *unit;
    enum better better;
};

/* A curve for each policy and number of queue pairs, against the size of messages. */
int mpi_measure(struct bench *bench, const struct mpi_spec *spec);

#endif
