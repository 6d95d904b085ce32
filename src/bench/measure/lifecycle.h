/* SPDX-License-Identifier: BSD-2-Clause */
/* Timed calls: the lifecycle of an object, from its creation to its destruction, over and over.
 * Rank 0 runs it; the other ranks keep what it needs until it has finished. */
#ifndef BENCH_MEASURE_LIFECYCLE_H
#define BENCH_MEASURE_LIFECYCLE_H

#include "bench/bench.h"

#define LIFECYCLE_STEPS_MAX 8
#define LIFECYCLE_SPANS_MAX 8

/* Returns BENCH_OK, or BENCH_FAILED after bench_fail(). */
typedef int (*lifecycle_step)(struct bench *bench, void *object);

/* A reported time: from the start of step 'first' to the end of step 'last'. */
struct lifecycle_span {
    const char *name;
    unsigned int first;
    unsigned int last;
};

/* A list of spans as struct lifecycle takes it. */
#define LIFECYCLE_SPANS(...) ((const struct lifecycle_span[]){ __VA_ARGS__, { .name = NULL } })

/* When a step fails, the object is left as it is: its owner cleans up. */
struct lifecycle {
    const lifecycle_step *steps;        /* end with NULL */
    const struct lifecycle_span *spans; /* end with a name of NULL */
    void *object;
};

struct lifecycle_sweep {
    const char *axis;
    const char *axis_unit;
    const struct number_list *values;
    uint64_t limit;     /* of the device: larger values are left out */
    uint64_t *value;    /* where the steps find the current value of the axis */
    unsigned int calls; /* in a timed step, which is reported per call; 0: as many as the value */
    bool nanoseconds;   /* rather than microseconds */
    uint64_t max_total; /* limits the passes of a point: passes times value; 0: no limit */
};

/* Collective: one panel, with a curve for each span of each lifecycle. */
int lifecycle_measure(struct bench *bench, const struct lifecycle_sweep *sweep,
                      const struct lifecycle *lifecycles, unsigned int count);

#endif
