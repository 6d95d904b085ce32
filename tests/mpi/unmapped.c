/* SPDX-License-Identifier: BSD-2-Clause */
/* unmapped: rank 0 accumulates to memory of rank 1 that is gone, and gets an error. What rank 1
 * then accumulates itself must not wait for rank 0; it prints "accumulated". */
#include "data.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define BYTES (16 << 10) /* longer than a buffer of the component, too short for two rails */

static int rank;

int main(int argc, char **argv)
{
    int *numbers = allocate(BYTES), one = 1, code;
    int *memory = mmap(NULL, 2 * BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MPI_Win window;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    expect(memory != MAP_FAILED, "no memory");
    MPI_Win_create(memory, 2 * BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
    MPI_Win_lock_all(0, window);
    if (rank == 1)
        munmap((char *)memory + BYTES, BYTES);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        code = MPI_Accumulate(numbers, BYTES / sizeof(int), MPI_INT, 1, BYTES, BYTES / sizeof(int),
                              MPI_INT, MPI_SUM, window);
        expect(code != MPI_SUCCESS, "memory that is gone was changed");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        code = MPI_Accumulate(&one, 1, MPI_INT, 1, 0, 1, MPI_INT, MPI_SUM, window);
        MPI_Win_flush(1, window);
        expect(code == MPI_SUCCESS && *memory == 1, "code %d, %d in memory", code, *memory);
        puts("accumulated");
    }
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    MPI_Finalize();
    free(numbers);
    return 0;
}
