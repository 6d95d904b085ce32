/* Other nodes that keep writing to rank 0 while it measures with rank 1. */
#ifndef BENCH_EXPERIMENTS_LOADING_H
#define BENCH_EXPERIMENTS_LOADING_H

#include "scaling.h"

#define FIRST_LOADER 2

/* Processes, for the largest of the numbers of further nodes. */
int loading_ranks(const struct settings *settings);

/* Who rank 0 and rank 1 measure with: each other. */
static inline int loading_peer(const struct bench *bench)
{
    return bench->rank < FIRST_LOADER ? 1 - bench->rank : -1;
}

/* Collective: flows from every further node to rank 0. */
int loading_open(struct bench *bench, const struct flow_spec *spec, struct star *out);

/* A further node: writes until rank 0 says that it is over. */
int loading_work(struct flow *flow);

/* Rank 0 says so to the first 'loaders' of them. */
int loading_end(struct star *load, unsigned int loaders);

#endif
