#include "bench/experiments/mpi.h"

static int run(struct bench *bench)
{
    return mpi_measure(
        bench, &(struct mpi_spec){
                   .task = "allreduce", .quantity = "time", .unit = "us", .better = BETTER_LOWER });
}

const struct experiment experiment_mpi_allreduce = {
    .name = "mpi-allreduce",
    .group = "mpi",
    .title = "How long does MPI_Allreduce take, under each policy?",
    .source = "Not of the papers",
    .options = "--ranks 4 --sizes 4..1M --iterations 100 --warmup 10 --repetitions 1 " MPI_SWEEP,
    .quick = MPI_COLLECTIVE_QUICK,
    .ranks = 1,
    .run = run,
};
