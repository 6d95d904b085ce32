/* SPDX-License-Identifier: BSD-2-Clause */
/* Measurements of an MPI library: one function each, called by all ranks. */
#ifndef MPIBENCH_TASK_H
#define MPIBENCH_TASK_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

/* One size of one task. */
struct task_spec {
    size_t size;
    uint64_t iterations;
    uint64_t warmup;
    uint64_t window;
    int rank, ranks;
    unsigned char *out, *in; /* 'buffer_size' bytes each */
};

struct task {
    const char *name;
    const char *unit;
    int ranks; /* minimum */
    size_t (*buffer_size)(const struct task_spec *spec);
    double (*measure)(const struct task_spec *spec); /* returns the value on rank 0 */
};

/* Terminated by NULL. */
extern const struct task *const point_tasks[];
extern const struct task *const collective_tasks[];

/* The number of measured rounds of 'bytes' each: at most 'spec->iterations', and fewer for long
 * messages, about as many as carry 'volume' bytes, but at least 'minimum'. */
uint64_t mpibench_rounds(const struct task_spec *spec, size_t bytes, size_t volume,
                         uint64_t minimum);

/* The number of warm-up rounds before 'rounds' measured ones. */
uint64_t mpibench_warmup(const struct task_spec *spec, uint64_t rounds);

#endif
