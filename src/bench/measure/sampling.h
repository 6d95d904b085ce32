/* SPDX-License-Identifier: BSD-2-Clause */
/* How often a point is measured: as often as the settings say, and on until --tolerance is met. */
#ifndef BENCH_MEASURE_SAMPLING_H
#define BENCH_MEASURE_SAMPLING_H

#include "bench/bench.h"

/* Both are collective and call their function in every rank; only rank 0's samples count. */

/* Each call of 'run' yields one sample, such as the bandwidth of a whole stream. */
int sampling_runs(struct bench *bench, int (*run)(void *context, double *value), void *context,
                  struct summary *out);

/* Each call of 'batch' runs 'warmup' iterations untimed and then the settings' iterations, one
 * sample each. The summary is that of the samples times 'scale'. */
int sampling_iterations(struct bench *bench,
                        int (*batch)(void *context, uint64_t warmup, struct histogram *samples),
                        void *context, double scale, struct summary *out);

#endif
