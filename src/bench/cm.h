/* SPDX-License-Identifier: BSD-2-Clause */
/* Connecting by rdma_cm, for networks that want it (routes set by the administrator, partitions)
 * and to see that it works. */
#ifndef BENCH_CM_H
#define BENCH_CM_H

#include "bench/endpoint.h"

/* Collective, as endpoints_connect(), and in its place. */
int cm_connect(struct bench *bench, int peer, struct endpoint *endpoints, unsigned int count);

#endif
