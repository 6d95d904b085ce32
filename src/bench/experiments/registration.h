/* The life of a memory region, for the experiments that time parts of it against the size. */
#ifndef BENCH_EXPERIMENTS_REGISTRATION_H
#define BENCH_EXPERIMENTS_REGISTRATION_H

#include "cycle.h"

enum {
    REGION_MAP,
    REGION_REGISTER,
    REGION_DEREGISTER,
    REGION_UNMAP,
};

/* 'used' is a span of a life in memory that has been written to; 'fresh', unless NULL, one of a
 * life in memory that nobody has touched. */
int region_lives(struct bench *bench, const struct cycle_span *used,
                 const struct cycle_span *fresh);

#endif
