/* SPDX-License-Identifier: BSD-2-Clause */
/* Binds processes to cores near the device. */
#ifndef BENCH_PIN_H
#define BENCH_PIN_H

#include "bench/bench.h"

/* Binds this process, number 'index' of the experiment's processes on this host, to its own core
 * and describes the result in 'text'. Failing to bind is not an error. */
void pin_process(const struct bench *bench, int index, int processes, char *text, size_t size);

/* Binds this process to a core that all processes share, for virtual time. */
void pin_to_shared_core(const struct bench *bench, int core, char *text, size_t size);

/* Restores the original binding, which child processes inherit. */
void pin_restore(void);

#endif
