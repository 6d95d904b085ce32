#include "bench/experiments/mpi.h"

static int run(struct bench *bench)
{
    return mpi_measure(bench, &(struct mpi_spec){ .task = "reduce-scatter",
                                                  .quantity = "time",
                                                  .unit = "us",
                                                  .better = BETTER_LOWER });
}

const struct experiment experiment_mpi_reduce_scatter = {
    .name = "mpi-reduce-scatter",
    .group = "mpi",
    .title = "How long does MPI_Reduce_scatter_block take, under each policy?",
    .source = "Not of the papers",
    .options = "--ranks 4 --sizes 4..1M --iterations 100 --warmup 10 --repetitions 1 " MPI_SWEEP,
    .quick = MPI_COLLECTIVE_QUICK,
    .ranks = 1,
    .run = run,
};
