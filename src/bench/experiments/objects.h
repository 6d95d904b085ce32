/* Objects that are only made and released: what either costs. */
#ifndef BENCH_EXPERIMENTS_OBJECTS_H
#define BENCH_EXPERIMENTS_OBJECTS_H

#include "cycle.h"

enum {
    OBJECT_MAKE,
    OBJECT_RELEASE,
};

struct object_kind {
    const char *axis;
    bool many; /* the axis is how many are made in a row; else it is the depth of one */

    /* Returns NULL after bench_fail(). */
    void *(*make)(struct bench *bench, uint64_t depth);
    int (*release)(struct bench *bench, void *object);
};

extern const struct object_kind completion_queues;

/* 'limit' is what the device allows of the axis. */
int objects_measure(struct bench *bench, const struct object_kind *kind, uint64_t limit,
                    const struct cycle_span *spans, unsigned int span_count);

#endif
