/* SPDX-License-Identifier: BSD-2-Clause */
/* Bandwidth one way and both ways. */
#ifndef BENCH_EXPERIMENTS_BASIC_BANDWIDTH_H
#define BENCH_EXPERIMENTS_BASIC_BANDWIDTH_H

#include "bench/bench.h"

struct bandwidth_spec {
    bool both_ways;
    bool by_window; /* measure the bandwidth of writes against the window as well */
};

/* Bandwidth against the message size, with a curve for each operation and window style that the
 * user chose. */
int bandwidth_run(struct bench *bench);

#endif
