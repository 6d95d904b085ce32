/* SPDX-License-Identifier: BSD-2-Clause */
/* Collectives: the time of one call on the slowest rank. */
#include "task.h"

#define VOLUME (64u << 20)

static size_t one_vector(const struct task_spec *spec)
{
    return spec->size;
}

static size_t one_for_each(const struct task_spec *spec)
{
    return spec->size * spec->ranks;
}

static double slowest(const struct task_spec *spec, void (*call)(const struct task_spec *))
{
    uint64_t rounds = mpibench_rounds(spec, spec->size * spec->ranks, VOLUME, 10);
    double start, mine, longest = 0;

    for (uint64_t i = mpibench_warmup(spec, rounds); i; i--)
        call(spec);
    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    for (uint64_t i = 0; i < rounds; i++)
        call(spec);
    mine = (MPI_Wtime() - start) / rounds;
    MPI_Reduce(&mine, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    return longest * 1e6;
}

static int floats(const struct task_spec *spec)
{
    return spec->size / sizeof(float);
}

static void call_alltoall(const struct task_spec *spec)
{
    MPI_Alltoall(spec->out, spec->size, MPI_BYTE, spec->in, spec->size, MPI_BYTE, MPI_COMM_WORLD);
}

static void call_bcast(const struct task_spec *spec)
{
    MPI_Bcast(spec->out, spec->size, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void call_allgather(const struct task_spec *spec)
{
    MPI_Allgather(spec->out, spec->size, MPI_BYTE, spec->in, spec->size, MPI_BYTE, MPI_COMM_WORLD);
}

static void call_allreduce(const struct task_spec *spec)
{
    MPI_Allreduce(spec->out, spec->in, floats(spec), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void call_reduce_scatter(const struct task_spec *spec)
{
    MPI_Reduce_scatter_block(spec->out, spec->in, floats(spec), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void call_barrier(const struct task_spec *spec)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

static double alltoall(const struct task_spec *spec)
{
    return slowest(spec, call_alltoall);
}

static double bcast(const struct task_spec *spec)
{
    return slowest(spec, call_bcast);
}

static double allgather(const struct task_spec *spec)
{
    return slowest(spec, call_allgather);
}

static double allreduce(const struct task_spec *spec)
{
    return slowest(spec, call_allreduce);
}

static double reduce_scatter(const struct task_spec *spec)
{
    return slowest(spec, call_reduce_scatter);
}

static double barrier(const struct task_spec *spec)
{
    return slowest(spec, call_barrier);
}

static const struct task alltoall_task = { "alltoall", "us", 1, one_for_each, alltoall };
static const struct task bcast_task = { "bcast", "us", 1, one_vector, bcast };
static const struct task allgather_task = { "allgather", "us", 1, one_for_each, allgather };
static const struct task allreduce_task = { "allreduce", "us", 1, one_vector, allreduce };
static const struct task reduce_scatter_task = { "reduce-scatter", "us", 1, one_for_each,
                                                 reduce_scatter };
static const struct task barrier_task = { "barrier", "us", 1, one_vector, barrier };

const struct task *const collective_tasks[] = {
    &alltoall_task, &bcast_task, &allgather_task, &allreduce_task, &reduce_scatter_task,
    &barrier_task,  NULL
};
