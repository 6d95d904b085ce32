/* How often a point is measured: as the settings say, and longer if a tolerance was asked for. */
#ifndef BENCH_REPEAT_H
#define BENCH_REPEAT_H

#include "bench.h"

/* Both are collective, and call their function in every rank; what rank 0 measures counts. */

/* 'once' gives one value, such as the bandwidth of a whole run. */
int repeat_values(struct bench *bench, int (*once)(void *context, double *value), void *context,
                  struct summary *out);

/* 'batch' runs the warm-up it is told and then the settings' iterations, each a sample; the figures
 * are the samples times 'scale'. */
int repeat_samples(struct bench *bench,
                   int (*batch)(void *context, uint64_t warmup, struct histogram *samples),
                   void *context, double scale, struct summary *out);

#endif
