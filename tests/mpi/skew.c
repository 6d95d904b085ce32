/* SPDX-License-Identifier: BSD-2-Clause */
/* skew: two hosts of two ranks exchange long messages in virtual time, while some ranks start a
 * little later; rank 0 prints the time of each exchange in microseconds. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>

#define RANKS 4
#define BYTES (2u << 20)

static const uint64_t late_us[][RANKS] = {
    { 0, 0, 0, 0 },
    { 5, 0, 0, 0 },
    { 0, 20, 0, 0 },
    { 0, 0, 50, 0 },
};

static unsigned char out[BYTES], in[BYTES];

static double exchange(int rank, uint64_t late_ns)
{
    void (*compute)(uint64_t) = (void (*)(uint64_t))dlsym(RTLD_DEFAULT, "verbena_compute");
    int peer = (rank + RANKS / 2) % RANKS;
    double start;

    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    if (late_ns)
        compute(late_ns);
    MPI_Sendrecv(out, BYTES, MPI_BYTE, peer, 0, in, BYTES, MPI_BYTE, peer, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    return (MPI_Wtime() - start) * 1e6;
}

int main(int argc, char **argv)
{
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    exchange(rank, 0); /* connects, and registers the memory */
    for (size_t i = 0; i < sizeof(late_us) / sizeof(*late_us); i++) {
        double us = exchange(rank, late_us[i][rank] * 1000);

        if (!rank)
            printf("%.0f\n", us);
    }
    MPI_Finalize();
    return 0;
}
