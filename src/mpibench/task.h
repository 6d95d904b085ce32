/* What an MPI program can measure: one function each, called by all ranks together. */
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
    unsigned char *out, *in; /* room for 'reach' of the task */
};

struct task {
    const char *name;
    const char *quantity;                            /* and its unit, as a heading */
    int ranks;                                       /* at least */
    size_t (*reach)(const struct task_spec *spec);   /* bytes of each buffer */
    double (*measure)(const struct task_spec *spec); /* the figure, on rank 0 */
};

extern const struct task *const point_tasks[]; /* end with NULL */
extern const struct task *const collective_tasks[];

/* How often, so that long messages do not take for ever: at most 'spec->iterations', and about as
 * many as carry 'volume' bytes, but at least 'least'. */
uint64_t mpibench_rounds(const struct task_spec *spec, size_t bytes, size_t volume, uint64_t least);

/* Warm-up rounds for so many measured ones. */
uint64_t mpibench_warmup(const struct task_spec *spec, uint64_t rounds);

#endif
