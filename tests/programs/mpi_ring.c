/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends messages of growing size around a ring of ranks, both eagerly and by rendezvous, and checks
 * every byte; then one-sided writes (not with an argument) and a reduction. Prints "ring ok" once,
 * on rank 0.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_BYTES (4 << 20)

static int rank, ranks;

static unsigned char pattern(int source, int size, int at)
{
    return source * 31 + size * 7 + at * 13 + (at >> 8);
}

static void fail(const char *what, int size, int at)
{
    fprintf(stderr, "rank %d: %s of %d bytes differs at %d\n", rank, what, size, at);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void check(const unsigned char *buffer, int source, int size, const char *what)
{
    for (int i = 0; i < size; i++)
        if (buffer[i] != pattern(source, size, i))
            fail(what, size, i);
}

static void fill(unsigned char *buffer, int size)
{
    for (int i = 0; i < size; i++)
        buffer[i] = pattern(rank, size, i);
}

static void exchange(unsigned char *out, unsigned char *in, int size)
{
    int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;

    fill(out, size);
    MPI_Sendrecv(out, size, MPI_BYTE, right, size & 0xff, in, size, MPI_BYTE, left, size & 0xff,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check(in, left, size, "message");
}

static void put(unsigned char *out, unsigned char *in, MPI_Win window, int size)
{
    int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;

    fill(out, size);
    MPI_Win_fence(0, window);
    MPI_Put(out, size, MPI_BYTE, right, 0, size, MPI_BYTE, window);
    MPI_Win_fence(0, window);
    check(in, left, size, "put");
}

static void one_sided(unsigned char *out, unsigned char *in)
{
    MPI_Win window;

    MPI_Win_create(in, MAX_BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    for (int size = 8; size <= MAX_BYTES; size *= 16)
        put(out, in, window, size);
    MPI_Win_free(&window);
}

int main(int argc, char **argv)
{
    unsigned char *out, *in;
    int sum = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    out = malloc(MAX_BYTES);
    in = malloc(MAX_BYTES);
    for (int size = 1; size <= MAX_BYTES; size *= 4)
        exchange(out, in, size);
    for (int i = 0; i < 200; i++)
        exchange(out, in, 1 + i * 37);

    if (argc < 2)
        one_sided(out, in);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (sum != ranks * (ranks - 1) / 2)
        fail("reduction", sizeof(sum), 0);
    if (rank == 0)
        printf("ring ok: %d ranks\n", ranks);
    free(out);
    free(in);
    MPI_Finalize();
    return 0;
}
