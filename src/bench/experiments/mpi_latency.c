#include "bench/experiments/mpi.h"

static int run(struct bench *bench)
{
    return mpi_measure(bench, &(struct mpi_spec){ .task = "latency",
                                                  .quantity = "latency",
                                                  .unit = "us",
                                                  .better = BETTER_LOWER });
}

const struct experiment experiment_mpi_latency = {
    .name = "mpi-latency",
    .group = "mpi",
    .title = "How long does an MPI message take, under each policy?",
    .source = "12x figures 3 and 4; PCI Express figure 12",
    .options = "--sizes 1..4M --iterations 1000 --warmup 10 --repetitions 1 " MPI_SWEEP,
    .quick = "--sizes 8,64K --iterations 50 --policies adaptive --qps 1",
    .ranks = 1,
    .run = run,
};
