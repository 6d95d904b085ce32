#include "bench/experiments/mpi.h"

static int run(struct bench *bench)
{
    return mpi_measure(bench, &(struct mpi_spec){ .task = "overlap",
                                                  .quantity = "overlap",
                                                  .unit = "%",
                                                  .better = BETTER_HIGHER });
}

const struct experiment experiment_mpi_overlap = {
    .name = "mpi-overlap",
    .group = "mpi",
    .title = "How much of the time of an exchange is left for computing?",
    .source = "Not of the papers",
    .options = "--sizes 1K..4M --iterations 100 --warmup 10 --repetitions 1 "
               "--policies binding,striping,adaptive --qps 4",
    .quick = "--sizes 8,64K --iterations 20 --policies adaptive --qps 1",
    .ranks = 1,
    .run = run,
};
