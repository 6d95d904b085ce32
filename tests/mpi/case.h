/* SPDX-License-Identifier: BSD-2-Clause */
/* The conformance program: cases that all ranks run together, and their common data. */
#ifndef MPI_CASE_H
#define MPI_CASE_H

#include "data.h"

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

struct mpi_case {
    const char *name;
    void (*run)(void);
    int ranks; /* minimum */
};

/* Each list ends with a row without a name. */
extern const struct mpi_case point_cases[];
extern const struct mpi_case match_cases[];
extern const struct mpi_case error_cases[];
extern const struct mpi_case type_cases[];
extern const struct mpi_case collective_cases[];
extern const struct mpi_case window_cases[];
extern const struct mpi_case window_thread_cases[];
extern const struct mpi_case thread_cases[];
extern const struct mpi_case dynamic_cases[];

extern int rank, ranks;
extern int thread_level;
extern char **arguments; /* of the program */

static inline int right_of(int of)
{
    return (of + 1) % ranks;
}

static inline int left_of(int of)
{
    return (of + ranks - 1) % ranks;
}

/* Sizes around every threshold between protocols. */
extern const size_t sizes[];
extern const size_t size_count;
#define LARGEST ((4u << 20) + 5)

#endif
