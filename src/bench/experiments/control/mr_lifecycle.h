/* SPDX-License-Identifier: BSD-2-Clause */
/* Experiments that time parts of the lifecycle of a memory region against its size. */
#ifndef BENCH_EXPERIMENTS_CONTROL_MR_LIFECYCLE_H
#define BENCH_EXPERIMENTS_CONTROL_MR_LIFECYCLE_H

#include "bench/measure/lifecycle.h"

/* The steps. */
enum {
    MR_MAP,
    MR_REGISTER,
    MR_DEREGISTER,
    MR_UNMAP,
};

/* The spans to time. */
struct mr_lifecycle_spec {
    const struct lifecycle_span *touched;   /* in memory that has been written to */
    const struct lifecycle_span *untouched; /* in memory without pages yet; or NULL */
};

int mr_lifecycle_run(struct bench *bench);

#endif
