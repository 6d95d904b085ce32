/* SPDX-License-Identifier: BSD-2-Clause */
/* A core for each process, near the device. */
#ifndef BENCH_PIN_H
#define BENCH_PIN_H

#include "bench/bench.h"

/* Binds this process; 'place' counts the processes of the experiment on this host. Puts where it
 * runs into 'text'. Not being able to is no error. */
void pin_process(const struct bench *bench, int place, int processes, char *text, size_t size);

/* The same for processes of which one runs at a time: all of them on the given core. */
void pin_together(const struct bench *bench, int core, char *text, size_t size);

/* Lets this process use again whatever it could before: those it starts inherit it. */
void pin_undo(void);

#endif
