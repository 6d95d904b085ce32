/* SPDX-License-Identifier: BSD-2-Clause */
/* Ctrl-C ends the measurement, not the program: what was measured is kept. */
#ifndef BENCH_INTERRUPT_H
#define BENCH_INTERRUPT_H

#include <stdbool.h>

/* The first SIGINT, SIGTERM or SIGHUP is noted; another one, a second later or more, has its usual
 * effect. Those that this process was started to ignore (nohup, '&' in a script) stay ignored. */
void interrupt_catch(void);
bool interrupt_seen(void);

/* The signal that was noted, or 0. */
int interrupt_signal(void);

/* System calls that sleep return now and then with EINTR, from the first "on" to the last "off". */
void interrupt_tick(bool on);

#endif
