/* SPDX-License-Identifier: BSD-2-Clause */
/* Flows in a star: one between rank 0 and each of several other ranks. */
#ifndef BENCH_MEASURE_STAR_H
#define BENCH_MEASURE_STAR_H

#include "flow.h"

struct star {
    int first;          /* rank at the other end of flows[0]; the next ranks follow */
    unsigned int count; /* of flows */
    struct flow *flows;
};

/* Collective over all ranks. The spec's peer is ignored. */
int star_open(struct bench *bench, const struct flow_spec *spec, int first, unsigned int count,
              struct star *out);
void star_close(struct star *star);

/* The flow of a rank other than 0, or NULL if that rank is not part of the star. */
struct flow *star_flow(const struct bench *bench, const struct star *star);

#endif
