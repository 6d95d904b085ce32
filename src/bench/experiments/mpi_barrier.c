#include "bench/experiments/mpi.h"

static int run(struct bench *bench)
{
    return mpi_measure(
        bench, &(struct mpi_spec){
                   .task = "barrier", .quantity = "time", .unit = "us", .better = BETTER_LOWER });
}

const struct experiment experiment_mpi_barrier = {
    .name = "mpi-barrier",
    .group = "mpi",
    .title = "How long does MPI_Barrier take?",
    .source = "Not of the papers",
    .options = "--ranks 4 --sizes 0 --iterations 1000 --warmup 10 --repetitions 1 "
               "--policies binding,adaptive --qps 1",
    .quick = "--iterations 50 --policies adaptive",
    .ranks = 1,
    .run = run,
};
