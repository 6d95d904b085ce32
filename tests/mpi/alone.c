/* SPDX-License-Identifier: BSD-2-Clause */
/* For programs with one case. */
#include "data.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void case_failed(const char *format, ...)
{
    va_list more;
    int rank;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    printf("FAIL %s: rank %d: ", program_invocation_short_name, rank);
    va_start(more, format);
    vprintf(format, more);
    va_end(more);
    putchar('\n');
    fflush(stdout);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}
