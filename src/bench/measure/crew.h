/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads of every rank that start together. */
#ifndef BENCH_MEASURE_CREW_H
#define BENCH_MEASURE_CREW_H

#include "bench/bench.h"

/* Collective. Calls 'work' in 'count' threads of each rank, with their numbers from 0 on. Returns
 * BENCH_OK if all of them did, with the time from the start of the first thread of this rank to the
 * end of its last one. */
int crew_run(struct bench *bench, unsigned int count,
             int (*work)(void *context, unsigned int number), void *context, uint64_t *ticks);

#endif
