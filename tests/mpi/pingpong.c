/* SPDX-License-Identifier: BSD-2-Clause */
/* pingpong: the time of a message, in nanoseconds, between buffers of the heap, of the stack and of
 * the program itself. Heap buffers come and go, as those of benchmarks do. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIMES   3
#define LARGEST (1 << 20)
#define SMALLER (64 << 10)

static int rank;
static char fixed[2 * LARGEST];

static double one_way_ns(char *out, char *in, int size)
{
    double start;

    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    for (int i = 0; i < TIMES; i++) {
        if (rank) {
            MPI_Recv(in, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(out, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        } else {
            MPI_Send(out, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(in, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
    return (MPI_Wtime() - start) * 1e9 / TIMES / 2;
}

static void report(const char *where, int size, double ns)
{
    if (!rank)
        printf("%s %d %.0f\n", where, size, ns);
}

/* The text of an environment that is longer moves the stack. */
static void on_stack(void)
{
    char out[SMALLER], in[SMALLER];

    memset(out, 1, sizeof(out));
    for (int size = 1; size <= SMALLER; size *= 4)
        report("stack", size, one_way_ns(out, in, size));
}

int main(int argc, char **argv)
{
    char *kept = NULL;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int size = 1; size <= LARGEST; size *= 2) {
        char *out = malloc(size), *in = malloc(size + 100);

        memset(out, 1, size);
        report("heap", size, one_way_ns(out, in, size));
        free(kept);
        kept = out;
        free(in);
    }
    free(kept);
    for (int size = 1; size <= LARGEST; size *= 4)
        report("static", size, one_way_ns(fixed, fixed + LARGEST, size));
    on_stack();
    MPI_Finalize();
    return 0;
}
