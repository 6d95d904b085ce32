/* SPDX-License-Identifier: BSD-2-Clause */
/* What a program computes between its calls costs no virtual time, or the CPU time it really used,
 * times a factor. */
#ifndef SIM_SCHED_COMPUTE_H
#define SIM_SCHED_COMPUTE_H

#include <stddef.h>
#include <stdint.h>

/* Parses "none" or "copies" (factor 0; sim/guest/copies.c charges for copies), "measured" or
 * "measured=FACTOR". Returns 0, or -1 with the reason in 'error'. */
int compute_read(const char *text, double *factor, char *error, size_t size);

/* Sets the factor of this process. */
void compute_set(double factor);

/* The thread returns to its program: CPU time counts from here on. */
void compute_begin(void);
/* The thread calls into the library: returns what it has computed, in ns of virtual time. */
uint64_t compute_end(void);

/* Interrupts the count, to decide what the thread has been doing since it began... */
void compute_sample(void);
/* ...it computed: count the sample and continue; */
void compute_resume(void);
/* ...it only waited: drop the sample and continue. */
void compute_discard(void);

#endif
