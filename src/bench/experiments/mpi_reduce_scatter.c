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
    .options = "--ranks 4 --sizes 4..1M --iterations 100 --warmup 10 --repetitions 1 "
               "--policies binding,round-robin,striping,epc,adaptive --qps 1,4",
    .quick = "--sizes 8,16K --iterations 20 --policies adaptive --qps 1",
    .ranks = 1,
    .run = run,
};
