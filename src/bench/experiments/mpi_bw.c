#include "bench/experiments/mpi.h"

static int run(struct bench *bench)
{
    return mpi_measure(bench, &(struct mpi_spec){ .task = "bw",
                                                  .quantity = "bandwidth",
                                                  .unit = "MB/s",
                                                  .better = BETTER_HIGHER });
}

const struct experiment experiment_mpi_bw = {
    .name = "mpi-bw",
    .group = "mpi",
    .title = "How much passes one way between two MPI processes, under each policy?",
    .source = "12x figures 5 and 6; PCI Express figure 13",
    .options = "--sizes 1..4M --iterations 20 --warmup 2 --window 64 --repetitions 1 " MPI_SWEEP,
    .quick = "--sizes 1K,64K --iterations 5 --policies adaptive --qps 1",
    .ranks = 1,
    .run = run,
};
