/* SPDX-License-Identifier: BSD-2-Clause */
/* MPI over rails: point-to-point messages and collective operations under each policy. */
#include "bench/experiments/groups.h"
#include "mpi_bench.h"

#define MPI_SWEEP            "--policies binding,round-robin,striping,epc,adaptive --qps 1,4"
#define MPI_COLLECTIVE_QUICK "--sizes 8,16K --iterations 20 --policies adaptive --qps 1"

static const struct mpi_bench_spec latency = { "latency", "latency", "us", BETTER_LOWER };
static const struct mpi_bench_spec bw = { "bw", "bandwidth", "MB/s", BETTER_HIGHER };
static const struct mpi_bench_spec bibw = { "bibw", "bandwidth", "MB/s", BETTER_HIGHER };
static const struct mpi_bench_spec msg_rate = { "msg-rate", "rate", "M/s", BETTER_HIGHER };
static const struct mpi_bench_spec overlap = { "overlap", "overlap", "%", BETTER_HIGHER };
static const struct mpi_bench_spec alltoall = { "alltoall", "time", "us", BETTER_LOWER };
static const struct mpi_bench_spec bcast = { "bcast", "time", "us", BETTER_LOWER };
static const struct mpi_bench_spec allgather = { "allgather", "time", "us", BETTER_LOWER };
static const struct mpi_bench_spec allreduce = { "allreduce", "time", "us", BETTER_LOWER };
static const struct mpi_bench_spec reduce_scatter = { "reduce-scatter", "time", "us",
                                                      BETTER_LOWER };
static const struct mpi_bench_spec barrier = { "barrier", "time", "us", BETTER_LOWER };

const struct experiment experiments_mpi[] = {
    {
        .name = "mpi-latency",
        .title = "How long does an MPI message take, under each policy?",
        .source = "12x figures 3 and 4; PCI Express figure 12",
        .options = "--sizes 1..4M --iterations 1000 --warmup 10 --repetitions 1 " MPI_SWEEP,
        .quick = "--sizes 8,64K --iterations 50 --policies adaptive --qps 1",
        .ranks = 1,
        .run = mpi_bench_run,
        .spec = &latency,
    },
    {
        .name = "mpi-bw",
        .title = "What is the bandwidth between two MPI processes, under each policy?",
        .source = "12x figures 5 and 6; PCI Express figure 13",
        .options =
            "--sizes 1..4M --iterations 20 --warmup 2 --window 64 --repetitions 1 " MPI_SWEEP,
        .quick = "--sizes 1K,64K --iterations 5 --policies adaptive --qps 1",
        .ranks = 1,
        .run = mpi_bench_run,
        .spec = &bw,
    },
    {
        .name = "mpi-bibw",
        .title =
            "What is the bandwidth if two MPI processes send to each other, under each policy?",
        .source = "12x figure 7; PCI Express figure 14",
        .options =
            "--sizes 1..4M --iterations 20 --warmup 2 --window 64 --repetitions 1 " MPI_SWEEP,
        .quick = "--sizes 1K,64K --iterations 5 --policies adaptive --qps 1",
        .ranks = 1,
        .run = mpi_bench_run,
        .spec = &bibw,
    },
    {
        .name = "mpi-msg-rate",
        .title = "How many MPI messages can be sent per second, under each policy?",
        .source = "12x, section 4.2",
        .options = "--sizes 1..8K --iterations 20 --warmup 2 --window 64 --repetitions 1 "
                   "--policies binding,round-robin,epc,adaptive --qps 1,4",
        .quick = "--sizes 8 --iterations 5 --policies adaptive --qps 1",
        .ranks = 1,
        .run = mpi_bench_run,
        .spec = &msg_rate,
    },
    {
        .name = "mpi-overlap",
        .title = "How much of the time of an exchange is left for computation?",
        .source = "Not of the papers",
        .options = "--sizes 1K..4M --iterations 100 --warmup 10 --repetitions 1 "
                   "--policies binding,striping,adaptive --qps 4",
        .quick = "--sizes 8,64K --iterations 20 --policies adaptive --qps 1",
        .ranks = 1,
        .run = mpi_bench_run,
        .spec = &overlap,
    },
    {
        .name = "mpi-alltoall",
        .title = "How long does MPI_Alltoall take, under each policy?",
        .source = "12x figure 8; PCI Express, collectives",
        .options =
            "--ranks 4 --sizes 1..1M --iterations 100 --warmup 10 --repetitions 1 " MPI_SWEEP,
        .quick = MPI_COLLECTIVE_QUICK,
        .ranks = 1,
        .run = mpi_bench_run,
        .spec = &alltoall,
    },
    {
        .name = "mpi-bcast",
        .title = "How long does MPI_Bcast take, under each policy?",
        .source = "PCI Express, collectives",
        .options =
            "--ranks 4 --sizes 1..1M --iterations 100 --warmup 10 --repetitions 1 " MPI_SWEEP,
        .quick = MPI_COLLECTIVE_QUICK,
        .ranks = 1,
        .run = mpi_bench_run,
        .spec = &bcast,
    },
    {
        .name = "mpi-allgather",
        .title = "How long does MPI_Allgather take, under each policy?",
        .source = "PCI Express, collectives",
        .options =
            "--ranks 4 --sizes 1..1M --iterations 100 --warmup 10 --repetitions 1 " MPI_SWEEP,
        .quick = MPI_COLLECTIVE_QUICK,
        .ranks = 1,
        .run = mpi_bench_run,
        .spec = &allgather,
    },
    {
        .name = "mpi-allreduce",
        .title = "How long does MPI_Allreduce take, under each policy?",
        .source = "Not of the papers",
        .options =
            "--ranks 4 --sizes 4..1M --iterations 100 --warmup 10 --repetitions 1 " MPI_SWEEP,
        .quick = MPI_COLLECTIVE_QUICK,
        .ranks = 1,
        .run = mpi_bench_run,
        .spec = &allreduce,
    },
    {
        .name = "mpi-reduce-scatter",
        .title = "How long does MPI_Reduce_scatter_block take, under each policy?",
        .source = "Not of the papers",
        .options =
            "--ranks 4 --sizes 4..1M --iterations 100 --warmup 10 --repetitions 1 " MPI_SWEEP,
        .quick = MPI_COLLECTIVE_QUICK,
        .ranks = 1,
        .run = mpi_bench_run,
        .spec = &reduce_scatter,
    },
    {
        .name = "mpi-barrier",
        .title = "How long does MPI_Barrier take?",
        .source = "Not of the papers",
        .options = "--ranks 4 --sizes 0 --iterations 1000 --warmup 10 --repetitions 1 "
                   "--policies binding,adaptive --qps 1",
        .quick = "--iterations 50 --policies adaptive",
        .ranks = 1,
        .run = mpi_bench_run,
        .spec = &barrier,
    },
    { .name = NULL },
};
