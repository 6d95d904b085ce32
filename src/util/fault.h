/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef UTIL_FAULT_H
#define UTIL_FAULT_H

/* Access to memory that the program may unmap, or whose file it may truncate, at any time. */

#include <stdbool.h>
#include <stddef.h>

/* Installs handlers for SIGSEGV and SIGBUS, once. Faults that are not ours go to the action that
 * the program had set before. Returns 0 or an errno value. */
int fault_init(void);

/* Calls access(context). Returns false if it was given up halfway, because `length` bytes at
 * `memory` cannot be accessed. It must hold no lock and do nothing but read and write. */
bool fault_survive(const void *memory, size_t length, void (*access)(void *context), void *context);

#endif
