/* SPDX-License-Identifier: BSD-2-Clause */
/* Ctrl-C ends the measurement, not the program, so that results are kept. */
#ifndef BENCH_INTERRUPT_H
#define BENCH_INTERRUPT_H

#include <stdbool.h>

/* Records the first SIGINT, SIGTERM or SIGHUP. Another one, at least a second later, has its
 * default effect. Signals that were ignored at startup (nohup, '&' in a script) stay ignored. */
void interrupt_catch(void);
bool interrupt_seen(void);

/* Returns the recorded signal, or 0. */
int interrupt_signal(void);

/* Starts or stops a timer that interrupts blocking system calls with EINTR. Calls are counted. */
void interrupt_tick(bool on);

#endif
