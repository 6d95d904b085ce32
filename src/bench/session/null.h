/* SPDX-License-Identifier: BSD-2-Clause */
/* The null engine: queue pairs that complete everything at once and move no data. The time of a
 * loop on it is the harness overhead. */
#ifndef BENCH_NULL_H
#define BENCH_NULL_H

/* Nanoseconds per round of the ping-pong loop. */
double null_pingpong_ns(void);

#endif
