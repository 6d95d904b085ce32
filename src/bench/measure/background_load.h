/* SPDX-License-Identifier: BSD-2-Clause */
/* Background load: further nodes write to rank 0 while it measures with rank 1. */
#ifndef BENCH_MEASURE_BACKGROUND_LOAD_H
#define BENCH_MEASURE_BACKGROUND_LOAD_H

#include "star.h"

#define BACKGROUND_LOAD_FIRST_RANK 2

/* Processes needed for the largest of the settings' numbers of nodes. */
int background_load_ranks(const struct settings *settings);

/* The peer of the measurement: ranks 0 and 1 measure with each other, the others with nobody. */
static inline int background_load_peer(const struct bench *bench)
{
    return bench->rank < BACKGROUND_LOAD_FIRST_RANK ? 1 - bench->rank : -1;
}

/* Collective: opens a flow from every further node to rank 0. */
int background_load_open(struct bench *bench, const struct flow_spec *spec, struct star *out);

/* Called by a further node: writes until rank 0 calls background_load_stop(). */
int background_load_run(struct flow *flow);

/* Called by rank 0: stops the first 'loaders' nodes. */
int background_load_stop(struct star *load, unsigned int loaders);

#endif
