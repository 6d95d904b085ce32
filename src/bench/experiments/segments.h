/* What 'multi-sge' and 'max-sge' have in common: a curve for each number of segments, against the
 * size. */
#ifndef BENCH_EXPERIMENTS_SEGMENTS_H
#define BENCH_EXPERIMENTS_SEGMENTS_H

#include "sweep.h"

/* The sweep points into it. */
struct segment_sweep {
    struct sweep sweep;
    struct number_list counts; /* of the curves; the sweep's context */
    struct curve_names names;
};

/* Collective. A curve for each of the settings' numbers of segments that the devices can do. */
int segment_sweep_init(struct bench *bench, const char *one, const char *many,
                       bool (*point)(const struct sweep *sweep, unsigned int curve, uint64_t size,
                                     struct flow_spec *spec),
                       struct segment_sweep *out);

#endif
