#include "bench/experiments/mpi.h"

static int run(struct bench *bench)
{
    return mpi_measure(
        bench, &(struct mpi_spec){
                   .task = "alltoall", .quantity = "time", .unit = "us", .better = BETTER_LOWER });
}

const struct experiment experiment_mpi_alltoall = {
    .name = "mpi-alltoall",
    .group = "mpi",
    .title = "How long does MPI_Alltoall take, under each policy?",
    .source = "12x figure 8; PCI Express, collectives",
    .options = "--ranks 4 --sizes 1..1M --iterations 100 --warmup 10 --repetitions 1 " MPI_SWEEP,
    .quick = MPI_COLLECTIVE_QUICK,
    .ranks = 1,
    .run = run,
};
