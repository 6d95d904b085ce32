/* Calls whose durations are the result: the life of an object, from making it to destroying it,
 * over and over. Rank 0 does it; the others keep what it may need until it has finished. */
#ifndef BENCH_EXPERIMENTS_CYCLE_H
#define BENCH_EXPERIMENTS_CYCLE_H

#include "bench/bench.h"

#define CYCLE_STEPS_MAX 8
#define CYCLE_SPANS_MAX 8

/* Returns BENCH_OK, or BENCH_FAILED after bench_fail(). */
typedef int (*cycle_step)(struct bench *bench, void *object);

/* What is reported: the time from the beginning of one step to the end of another. */
struct cycle_span {
    const char *name;
    unsigned int first;
    unsigned int last;
};

/* When a step fails the object stays as it is: whoever owns it cleans up. */
struct cycle {
    const cycle_step *steps; /* end with NULL */
    const struct cycle_span *spans;
    unsigned int span_count;
    void *object;
};

struct cycle_sweep {
    const char *axis;
    const char *axis_unit;
    const struct number_list *values;
    uint64_t limit;  /* of the device: what is above it is left out */
    uint64_t *value; /* where the steps find the value of the axis */
    unsigned int
        calls;        /* that a timed step makes, the figure is for one; 0: as many as the value */
    bool nanoseconds; /* rather than microseconds */
    uint64_t most_total; /* of the values of all turns of a point, which limits the turns; 0: any */
};

/* Collective: one panel, with a curve for each span of each cycle. */
int cycle_measure(struct bench *bench, const struct cycle_sweep *sweep, const struct cycle *cycles,
                  unsigned int count);

#endif
