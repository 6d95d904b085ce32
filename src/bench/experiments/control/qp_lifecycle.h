/* SPDX-License-Identifier: BSD-2-Clause */
/* Experiments that time parts of the lifecycle of a queue pair against its depth. */
#ifndef BENCH_EXPERIMENTS_CONTROL_QP_LIFECYCLE_H
#define BENCH_EXPERIMENTS_CONTROL_QP_LIFECYCLE_H

#include "bench/measure/lifecycle.h"

/* The steps of a queue pair that is connected, and of one that is not. */
enum {
    QP_CREATE,
    QP_TO_INIT,
    QP_TO_RTR,
    QP_TO_RTS,
    QP_DESTROY,
    QP_UNCONNECTED_DESTROY = QP_CREATE + 1,
};

/* The spans to time; NULL if the experiment does not need that lifecycle. */
struct qp_lifecycle_spec {
    const struct lifecycle_span *unconnected;
    const struct lifecycle_span *connected;
};

/* Collective. The last rank keeps the queue pair that rank 0 connects to. */
int qp_lifecycle_run(struct bench *bench);

#endif
