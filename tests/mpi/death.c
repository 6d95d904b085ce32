/* SPDX-License-Identifier: BSD-2-Clause */
/* death: the last rank takes a lock and dies. Everything that rank 0 does with it then must fail,
 * with a text that says so; rank 0 prints "survived" and the number of such errors. */
#include "data.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BYTES (1 << 20)

static int rank, ranks, errors;

void case_failed(const char *format, ...)
{
    va_list more;

    printf("FAIL death: rank %d: ", rank);
    va_start(more, format);
    vprintf(format, more);
    va_end(more);
    printf("\n");
    fflush(stdout);
    _exit(1);
}

static void expect_error(int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING];
    int length, class;

    expect(code != MPI_SUCCESS, "%s succeeded", what);
    MPI_Error_string(code, text, &length);
    MPI_Error_class(code, &class);
    expect(class == MPI_ERR_OTHER && strstr(text, "MPI_ERR_PROC_FAILED"), "%s: class %d, %s", what,
           class, text);
    errors++;
}

static void use_messages(char *bytes)
{
    expect_error(MPI_Recv(bytes, 1, MPI_BYTE, ranks - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE),
                 "a receive");
    expect_error(MPI_Send(bytes, 1, MPI_BYTE, ranks - 1, 1, MPI_COMM_WORLD), "a send");
    expect_error(MPI_Send(bytes, BYTES, MPI_BYTE, ranks - 1, 1, MPI_COMM_WORLD), "a long send");
    expect_error(MPI_Barrier(MPI_COMM_WORLD), "a barrier");
}

/* The dead rank holds the lock of rank 0. */
static void use_window(MPI_Win window, char *bytes)
{
    int code;

    expect_error(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window), "a lock that the dead rank holds");
    code = MPI_Win_lock(MPI_LOCK_SHARED, ranks - 1, MPI_MODE_NOCHECK, window);
    expect(code == MPI_SUCCESS, "a lock without a message failed");
    code = MPI_Put(bytes, 1, MPI_BYTE, ranks - 1, 0, 1, MPI_BYTE, window);
    expect_error(code == MPI_SUCCESS ? MPI_Win_flush(ranks - 1, window) : code, "a put");
    expect_error(MPI_Accumulate(bytes, 1, MPI_BYTE, ranks - 1, 0, 1, MPI_BYTE, MPI_BOR, window),
                 "an accumulate");
}

int main(int argc, char **argv)
{
    char *bytes = allocate(BYTES), *memory;
    MPI_Win window;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
    if (rank == ranks - 1)
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == ranks - 1)
        kill(getpid(), SIGKILL);
    use_messages(bytes);
    use_window(window, bytes);
    printf("survived %d\n", errors);
    fflush(stdout);
    /* MPI_Finalize() would wait for the dead rank. */
    _exit(0);
}
