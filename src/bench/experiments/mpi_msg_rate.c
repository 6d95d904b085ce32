#include "bench/experiments/mpi.h"

static int run(struct bench *bench)
{
    return mpi_measure(bench, &(struct mpi_spec){ .task = "msg-rate",
                                                  .quantity = "rate",
                                                  .unit = "M/s",
                                                  .better = BETTER_HIGHER });
}

const struct experiment experiment_mpi_msg_rate = {
    .name = "mpi-msg-rate",
    .group = "mpi",
    .title = "How many MPI messages pass in a second, under each policy?",
    .source = "12x, section 4.2",
    .options = "--sizes 1..8K --iterations 20 --warmup 2 --window 64 --repetitions 1 "
               "--policies binding,round-robin,epc,adaptive --qps 1,4",
    .quick = "--sizes 8 --iterations 5 --policies adaptive --qps 1",
    .ranks = 1,
    .run = run,
};
