/* SPDX-License-Identifier: BSD-2-Clause */
/* Half the round trip of messages between two ranks, in microseconds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 200

static void round_trip(char *buffer, int size, int rank)
{
    if (rank == 0) {
        MPI_Send(buffer, size, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(buffer, size, MPI_CHAR, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(buffer, size, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(buffer, size, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv)
{
    int size = argc > 1 ? atoi(argv[1]) : 8, rank;
    char *buffer = calloc(1, size);
    double start;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < ROUNDS / 10; i++)
        round_trip(buffer, size, rank);
    start = MPI_Wtime();
    for (int i = 0; i < ROUNDS; i++)
        round_trip(buffer, size, rank);
    if (rank == 0)
        printf("%d bytes: %.3f us\n", size, (MPI_Wtime() - start) / ROUNDS / 2 * 1e6);
    MPI_Finalize();
    free(buffer);
    return 0;
}
