/* SPDX-License-Identifier: BSD-2-Clause */
/* The null engine: queue pairs that complete everything at once and move nothing. What an
 * experiment's loop takes on it is the harness's own share of every figure. */
#ifndef BENCH_NULL_H
#define BENCH_NULL_H

/* Nanoseconds per round of the ping-pong loop. */
double null_pingpong_ns(void);

#endif
