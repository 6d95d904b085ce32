/* SPDX-License-Identifier: BSD-2-Clause */
/* How long to wait for another rank. On a busy machine a rank is silent because it gets no core, not
 * because it hangs: only time counts in which the ranks of this host could have run. */
#ifndef BENCH_PATIENCE_H
#define BENCH_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

/* Besides this process, whose calling thread always counts, these processes do. */
void patience_watch(int pid);
void patience_forget(void);

/* A clock in ns that stands nearly still while the calling thread or a watched process waits for a
 * core. At least a tenth of the real time counts, so that a wait always ends. */
uint64_t patience_now(void);
/* Whether that much of its time has passed. */
bool patience_is_over(uint64_t since, uint64_t limit_ns);

/* How much of a time did not count, if the one that waited longest for a core waited this long. */
uint64_t patience_lost(uint64_t elapsed_ns, uint64_t waited_ns);

#endif
