/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells the user why a thread of a deadlocked fabric waits. */
#ifndef CHECK_DEADLOCK_H
#define CHECK_DEADLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* The first note of such a report, by which the search recognises it. */
#define DEADLOCK_OUTSIDE_NOTE "a program that starts later could end this wait"

/* The calling thread has waited for `what` since virtual time `now`; fd -1: for no descriptor.
 * `outside`: a program that has not been started could end the wait. */
void deadlock_report(uint64_t now, const char *what, int fd, bool outside);

#endif
