/* SPDX-License-Identifier: BSD-2-Clause */
/* put: rank 0 puts into windows of the last rank. It prints how many ranks share its memory, how
 * many bytes were put and sent, and in microseconds the time of a message one way, and of a put
 * with its synchronization into a created and into an allocated window. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define BYTES 4096
#define TIMES 50

static char out[BYTES];
static int rank, last;

static double message_us(void)
{
    double start = MPI_Wtime();

    for (int i = 0; i < TIMES; i++) {
        if (!rank) {
            MPI_Send(out, BYTES, MPI_BYTE, last, 0, MPI_COMM_WORLD);
            MPI_Recv(out, BYTES, MPI_BYTE, last, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else if (rank == last) {
            MPI_Recv(out, BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(out, BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        }
    }
    return (MPI_Wtime() - start) * 1e6 / TIMES / 2;
}

static double put_us(MPI_Win window)
{
    double start;

    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    for (int i = 0; i < TIMES && !rank; i++) {
        MPI_Win_lock(MPI_LOCK_SHARED, last, 0, window);
        MPI_Put(out, BYTES, MPI_BYTE, last, 0, BYTES, MPI_BYTE, window);
        MPI_Win_unlock(last, window);
    }
    return (MPI_Wtime() - start) * 1e6 / TIMES;
}

int main(int argc, char **argv)
{
    static char memory[BYTES];
    MPI_Win created, allocated;
    double message, put_created, put_allocated;
    MPI_Comm node;
    char *base;
    int ranks, on_node;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    last = ranks - 1;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &on_node);
    MPI_Win_create(memory, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &created);
    MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &allocated);
    message = message_us();
    put_created = put_us(created);
    put_allocated = put_us(allocated);
    if (!rank)
        printf("node %d\nbytes %d\nmessage %.3f\ncreated %.3f\nallocated %.3f\n", on_node,
               4 * TIMES * BYTES, message, put_created, put_allocated);
    MPI_Win_free(&allocated);
    MPI_Win_free(&created);
    MPI_Comm_free(&node);
    MPI_Finalize();
    return 0;
}
