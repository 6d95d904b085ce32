/* SPDX-License-Identifier: BSD-2-Clause */
/* Experiments that time the creation and destruction of verbs objects without further state. */
#ifndef BENCH_EXPERIMENTS_CONTROL_OBJECT_LIFECYCLE_H
#define BENCH_EXPERIMENTS_CONTROL_OBJECT_LIFECYCLE_H

#include "bench/measure/lifecycle.h"

/* The steps. */
enum {
    OBJECT_CREATE,
    OBJECT_DESTROY,
};

struct object_type;

extern const struct object_type object_cq;
extern const struct object_type object_pd;
extern const struct object_type object_srq;
extern const struct object_type object_ah;

struct object_lifecycle_spec {
    const struct object_type *type;
    const struct lifecycle_span *spans;
};

int object_lifecycle_run(struct bench *bench);

#endif
