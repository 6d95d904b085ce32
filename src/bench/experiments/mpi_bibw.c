#include "bench/experiments/mpi.h"

static int run(struct bench *bench)
{
    return mpi_measure(bench, &(struct mpi_spec){ .task = "bibw",
                                                  .quantity = "bandwidth",
                                                  .unit = "MB/s",
                                                  .better = BETTER_HIGHER });
}

const struct experiment experiment_mpi_bibw = {
    .name = "mpi-bibw",
    .group = "mpi",
    .title = "How much passes both ways between two MPI processes, under each policy?",
    .source = "12x figure 7; PCI Express figure 14",
    .options = "--sizes 1..4M --iterations 20 --warmup 2 --window 64 --repetitions 1 " MPI_SWEEP,
    .quick = "--sizes 1K,64K --iterations 5 --policies adaptive --qps 1",
    .ranks = 1,
    .run = run,
};
