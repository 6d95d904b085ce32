/* SPDX-License-Identifier: BSD-2-Clause */
/* What a program does between its calls takes no virtual time, or the processor time that it really
 * used, times a factor. */
#ifndef SIM_COMPUTE_H
#define SIM_COMPUTE_H

#include <stddef.h>
#include <stdint.h>

/* Reads "none", "measured" or "measured=FACTOR"; 0 stands for none. Returns 0, or -1 with what is
 * wrong in 'error'. */
int compute_read(const char *text, double *factor, char *error, size_t size);

/* Of this process. */
void compute_set(double factor);

/* This thread is back in its program; what it did since the last call of these was not computing.
 */
void compute_begin(void);
/* It has called: what it has computed since then, in ns of virtual time. */
uint64_t compute_end(void);
/* It is looked at, and goes on computing; or it only waited since it was looked at before. */
void compute_look(void);
void compute_go_on(void);
void compute_waited(void);

#endif
