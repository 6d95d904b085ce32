/* SPDX-License-Identifier: BSD-2-Clause */
#include "comm.h"

#include "work.h"

#include <string.h>

static const char *const pattern_names[COMM_PATTERNS] = {
    [COMM_BLOCKING_SEND] = "blocking send",
    [COMM_BLOCKING_RECEIVE] = "blocking receive",
    [COMM_NONBLOCKING_RECEIVE] = "non-blocking receive",
    [COMM_COLLECTIVE] = "collective",
};

static struct comm_account account;

const char *comm_pattern_name(enum comm_pattern pattern)
{
    return pattern_names[pattern];
}

void comm_account_clear(void)
{
    memset(&account, 0, sizeof(account));
}

struct comm_account comm_account_now(void)
{
    return account;
}

static uint64_t bytes_of(int64_t count, MPI_Datatype type)
{
    int size;

    MPI_Type_size(type, &size);
    return (uint64_t)count * size;
}

static void count_message(enum comm_pattern pattern, uint64_t bytes)
{
    account.messages[pattern]++;
    account.bytes[pattern] += bytes;
}

static double begin(void)
{
    nas_work_charge();
    return MPI_Wtime();
}

int comm_rank(MPI_Comm comm)
{
    int rank;

    MPI_Comm_rank(comm, &rank);
    return rank;
}

int comm_size(MPI_Comm comm)
{
    int size;

    MPI_Comm_size(comm, &size);
    return size;
}

void comm_send(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    double start = begin();

    MPI_Send(data, count, type, to, tag, comm);
    account.seconds += MPI_Wtime() - start;
    count_message(COMM_BLOCKING_SEND, bytes_of(count, type));
}

void comm_recv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm)
{
    double start = begin();

    MPI_Recv(data, count, type, from, tag, comm, MPI_STATUS_IGNORE);
    account.seconds += MPI_Wtime() - start;
    count_message(COMM_BLOCKING_RECEIVE, bytes_of(count, type));
}

void comm_irecv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                MPI_Request *request)
{
    double start = begin();

    MPI_Irecv(data, count, type, from, tag, comm, request);
    account.seconds += MPI_Wtime() - start;
    count_message(COMM_NONBLOCKING_RECEIVE, bytes_of(count, type));
}

void comm_waitall(MPI_Request *requests, int count)
{
    double start = begin();

    for (int i = 0; i < count; i++)
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    account.seconds += MPI_Wtime() - start;
}

void comm_allreduce(void *data, int count, MPI_Datatype type, MPI_Comm comm)
{
    double start = begin();

    MPI_Allreduce(MPI_IN_PLACE, data, count, type, MPI_SUM, comm);
    account.seconds += MPI_Wtime() - start;
    count_message(COMM_COLLECTIVE, bytes_of(count, type));
}

void comm_reduce(int root, void *data, int count, MPI_Datatype type, MPI_Comm comm)
{
    double start = begin();
    int rank = comm_rank(comm);

    MPI_Reduce(rank == root ? MPI_IN_PLACE : data, data, count, type, MPI_SUM, root, comm);
    account.seconds += MPI_Wtime() - start;
    count_message(COMM_COLLECTIVE, bytes_of(count, type));
}

void comm_allgather(const void *mine, int count, MPI_Datatype type, void *all, MPI_Comm comm)
{
    double start = begin();

    MPI_Allgather(mine, count, type, all, count, type, comm);
    account.seconds += MPI_Wtime() - start;
    count_message(COMM_COLLECTIVE, bytes_of(count, type));
}

void comm_alltoall(const void *out, int count, MPI_Datatype type, void *in, MPI_Comm comm)
{
    double start = begin();

    MPI_Alltoall(out, count, type, in, count, type, comm);
    account.seconds += MPI_Wtime() - start;
    count_message(COMM_COLLECTIVE, bytes_of((int64_t)count * (comm_size(comm) - 1), type));
}

void comm_alltoallv(const void *out, const int *out_counts, const int *out_starts, void *in,
                    const int *in_counts, const int *in_starts, MPI_Datatype type, MPI_Comm comm)
{
    double start = begin();
    int rank = comm_rank(comm), size = comm_size(comm);
    int64_t others = 0;

    MPI_Alltoallv(out, out_counts, out_starts, type, in, in_counts, in_starts, type, comm);
    account.seconds += MPI_Wtime() - start;
    for (int i = 0; i < size; i++)
        others += i == rank ? 0 : out_counts[i];
    count_message(COMM_COLLECTIVE, bytes_of(others, type));
}
