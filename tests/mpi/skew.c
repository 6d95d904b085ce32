/* skew: two hosts of two ranks exchange long messages in virtual time, and some of them begin a
 * little later than the others; rank 0 prints how long each exchange took, in microseconds. */
#include "data.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define RANKS 4
#define BYTES (2u << 20)

static const uint64_t late_us[][RANKS] = {
    { 0, 0, 0, 0 },
    { 5, 0, 0, 0 },
    { 0, 20, 0, 0 },
    { 0, 0, 50, 0 },
};

void case_failed(const char *format, ...)
{
    va_list more;

    va_start(more, format);
    printf("FAIL skew: ");
    vprintf(format, more);
    va_end(more);
    putchar('\n');
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

static double exchange(int rank, uint64_t late_ns, unsigned char *buffer)
{
    void (*compute)(uint64_t) = (void (*)(uint64_t))dlsym(RTLD_DEFAULT, "verbena_compute");
    int peer = (rank + RANKS / 2) % RANKS;
    double start;

    expect(compute != NULL, "this is not virtual time");
    MPI_Barrier(MPI_COMM_WORLD);
    start = MPI_Wtime();
    if (late_ns)
        compute(late_ns);
    MPI_Sendrecv(buffer, BYTES, MPI_BYTE, peer, 0, buffer + BYTES, BYTES, MPI_BYTE, peer, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    return (MPI_Wtime() - start) * 1e6;
}

int main(int argc, char **argv)
{
    unsigned char *buffer = allocate(2 * BYTES);
    int rank, ranks;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    expect(ranks == RANKS, "%d ranks are wanted, not %d", RANKS, ranks);
    exchange(rank, 0, buffer); /* connects, and registers the memory */
    for (size_t i = 0; i < sizeof(late_us) / sizeof(*late_us); i++) {
        double us = exchange(rank, late_us[i][rank] * 1000, buffer);

        if (!rank)
            printf("%.0f\n", us);
    }
    MPI_Finalize();
    free(buffer);
    return 0;
}
