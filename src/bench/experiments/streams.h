/* What 'bw' and 'bibw' have in common. */
#ifndef BENCH_EXPERIMENTS_STREAMS_H
#define BENCH_EXPERIMENTS_STREAMS_H

#include "bench/stream.h"

/* Bandwidth against size, a curve for each operation and window style that was asked for. */
int streams_by_size(struct bench *bench, bool both_ways);

/* Bandwidth of writes against the window, at the largest size. */
int streams_by_window(struct bench *bench);

#endif
